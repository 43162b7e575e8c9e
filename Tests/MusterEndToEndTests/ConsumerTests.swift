import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Readers of the log in processes of their own.
    @Suite struct Consumers {
        /// A script with curl, killed (SIGKILL) at random moments and started again, deals with every position in order, while
        /// one of two coordinators is killed as well.
        @Test func scriptThatIsKilledAtRandomDealsWithEverythingInOrder() async throws {
            var generator = SeededGenerator.forTest()
            try await Fleet.run(coordinators: 2) { fleet in
                let coordinators = await fleet.coordinators
                let client = await fleet.client()
                let count: Int64 = 80
                let reader = ScriptReader(url: coordinators[1].url, file: fleet.scratch.appending("seen"), pageSize: 3)
                let lives = try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for number in 0..<count {
                            if number == count / 2 { try await fleet.kill(coordinators[0].process) }
                            _ = try await client.createGroup(
                                GroupRequest(name: "g\(number)", sealed: true), idempotencyKey: "g\(number)")
                        }
                    }
                    let lives = try await reader.live(until: Observed(count), pages: 1...5, using: &generator)
                    try await group.waitForAll()
                    return lives
                }
                reader.check(last: count)
                #expect(lives > 3)
            }
        }
    }
}
