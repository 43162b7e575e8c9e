import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import SystemPackage
import Testing

extension EndToEnd {
    /// Random files, origins that do random things, and workers that die at random: whatever happens, a file that is reported as there is
    /// right, a missing one has a reason, and everything ends.
    @Suite struct Fuzz {
        /// How many histories there are: `MUSTER_FUZZ_HISTORIES`, or enough for a minute.
        private static var histories: Int {
            ProcessInfo.processInfo.environment["MUSTER_FUZZ_HISTORIES"].flatMap { Int($0) } ?? 2_000
        }

        @Test func noHistoryEndsWithWrongBytesOrWithoutAnEnd() async throws {
            var random = SeededGenerator.forTest()
            // Many origins, so that what the fleet learns of an origin from one history's refusals delays few other histories.
            var origins: [ScriptedOrigin] = []
            for _ in 0..<32 { origins.append(try await ScriptedOrigin.start()) }
            let histories = (0..<Self.histories).map { FuzzHistory(number: $0, origins: origins, using: &random) }
            let deaths = SeededGenerator(seed: random.next())
            try await Fleet.run(
                timeToLive: "2s", options: ["--retry-base", "20ms", "--retry-maximum", "500ms"]
            ) { [origins] fleet in
                var fetch = FetchOptions()
                fetch.firstByteTimeoutSeconds = 1
                fetch.lowSpeedBytesPerSecond = 1_024
                fetch.lowSpeedSeconds = 1
                for name in ["a", "b", "c"] { try await fleet.startWorker(name, slots: 16) }
                _ = try await fleet.client().createGroup(GroupRequest(name: "fuzz", fetch: fetch))
                _ = try await fleet.client().addTasks(histories.map(\.task), to: "fuzz")
                _ = try await fleet.client().apply(.seal, to: "fuzz")
                let killed = try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask { try await Self.killWorkers(of: fleet, origins, deaths) }
                    defer { group.cancelAll() }
                    try await fleet.waitForEnd(of: "fuzz", limit: .seconds(600))
                    group.cancelAll()
                    return try await group.next() ?? 0
                }
                try await Self.judge(histories, fleet: fleet, killed: killed)
            }
        }

        /// Kills one worker after the other, each after a random number of requests to a random origin, and starts it again.
        /// Returns how many were killed until it was cancelled.
        private static func killWorkers(
            of fleet: Fleet, _ origins: [ScriptedOrigin], _ seed: SeededGenerator
        ) async throws -> Int {
            var random = seed
            var killed = 0
            while !Task.isCancelled, let origin = origins.randomElement(using: &random) {
                let target = (origin.requests.last?.number ?? 0) + Int.random(in: 2...12, using: &random)
                do {
                    try await origin.waitForRequest(limit: .seconds(600)) { $0.number >= target }
                    let name = ["a", "b", "c"][Int.random(in: 0..<3, using: &random)]
                    try await fleet.replaceWorker(name)
                    killed += 1
                } catch {
                    // The group has ended meanwhile.
                    guard Task.isCancelled else { throw error }
                }
            }
            return killed
        }

        /// The oracle.
        private static func judge(_ histories: [FuzzHistory], fleet: Fleet, killed: Int) async throws {
            var outcomes: [String: Int] = [:]
            var documents: [String: TaskDocument] = [:]
            var after: String?
            repeat {
                let page = try await fleet.client().tasks(of: "fuzz", after: after, limit: 1_000)
                for task in page.items { documents[task.key] = task }
                after = page.next
            } while after != nil
            for (number, history) in histories.enumerated() {
                guard let task = documents["h\(number)"] else { throw Unexpected("no task h\(number)") }
                switch task.state {
                case .succeeded:
                    let found = try FileDigest.sha256(fleet.sink.appending(task.path))
                    #expect(history.right.contains(found), "wrong bytes in h\(number): \(history.script)")
                    outcomes["succeeded", default: 0] += 1
                case .failed:
                    #expect(task.failure != nil, "h\(number) failed for no reason: \(history.script)")
                    outcomes[task.failure.map { "\($0.kind.rawValue)" } ?? "no reason", default: 0] += 1
                case .queued, .active, .paused, .finalizing, .cancelled:
                    Issue.record("h\(number) is \(task.state) in a group that has ended: \(history.script)")
                }
            }
            let changed = try await fleet.log().count { $0.type == "dev.muster.task.changed.v1" }
            print(
                "fuzz: \(histories.count) histories, \(killed) workers killed, \(changed) contents changed, \(outcomes)"
            )
            #expect(outcomes["succeeded", default: 0] > histories.count / 2)
            #expect(killed > 0)
        }
    }
}
