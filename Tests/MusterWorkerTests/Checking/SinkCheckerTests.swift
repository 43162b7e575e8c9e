import Dispatch
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// What the thread of a worker's checks tells, and when it does not (adr/0048).
@Suite struct SinkCheckerTests {
    /// A page that needs no pace: nothing is to be looked at.
    private static func nothing(_ step: Int64) -> CheckOrder {
        var order = CheckOrder(sink: "test", epoch: 7, step: step, kind: .parts)
        order.parts = []
        return order
    }

    /// Has a checker busy with a file, asks for another look, perhaps stops it, and lets the checker go on. Returns what was told.
    private static func told(stopping: Bool) async throws -> [CheckStep] {
        try await ScratchSink.with { scratch in
            let gate = DispatchSemaphore(value: 0)
            // The first look waits where it asks for the time.
            let checker = try SinkChecker(
                pace: CheckPace {
                    gate.wait()
                    return 0
                })
            let told = Observed<[CheckStep]>([])
            let tell: @Sendable (MachineInput) -> Void = { input in
                if case .checked(let report) = input { told.update { $0.append(report.name) } }
            }
            var busy = CheckOrder(sink: "test", epoch: 7, step: 1, kind: .files)
            busy.files = [CheckedFile(task: TaskID(1), version: 1, run: 1, path: "a", size: 1)]
            checker.look(at: busy, in: scratch.sink, tell: tell)
            checker.look(at: nothing(2), in: scratch.sink, tell: tell)
            if stopping { checker.stop() }
            gate.signal()
            if !stopping { try await told.wait(for: "what the last look saw") { !$0.isEmpty } }
            // Its thread does what waits before it ends.
            await checker.shutdown()
            return told.value
        }
    }

    @Test func onlyTheLastLookTells() async throws {
        #expect(try await Self.told(stopping: false) == [Self.nothing(2).name])
    }

    @Test func aLookThatWasStoppedTellsNothing() async throws {
        #expect(try await Self.told(stopping: true) == [])
    }
}
