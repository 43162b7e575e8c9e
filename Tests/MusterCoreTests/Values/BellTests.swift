import Testing

@testable import MusterCore

/// The bell that wakes tasks that wait for an event.
@Suite(.timeLimit(.minutes(1))) struct BellTests {
    private static let forever = Duration.seconds(3_600)

    @Test func ringBetweenTheLookAndTheWaitIsNotMissed() async {
        let bell = Bell()
        let rings = bell.rings
        bell.ring()
        await bell.wait(since: rings, limit: Self.forever, clock: .continuous)
        #expect(bell.rings == rings + 1)
    }

    @Test func everyWaiterIsWokenByTheBell() async {
        let bell = Bell()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { await bell.wait(since: 0, limit: Self.forever, clock: .continuous) } }
            while bell.sleeping < 8 { await Task.yield() }
            bell.ring()
        }
    }

    @Test func waitThatIsCancelledIsOver() async {
        let bell = Bell()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await bell.wait(since: 0, limit: Self.forever, clock: .continuous) }
            while bell.sleeping < 1 { await Task.yield() }
            group.cancelAll()
        }
        #expect(bell.rings == 0)
    }
}
