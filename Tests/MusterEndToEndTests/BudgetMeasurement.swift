import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// How well byte budgets are kept by any number of workers. A measurement by hand, with `MUSTER_MEASURE=budgets`: it is about
    /// time, which a busy machine bends, so that it prints a table and expects little.
    @Suite struct BudgetMeasurement {
        /// Whose budget it is.
        enum Payer: String, CaseIterable, Sendable {
            case group, origin, fleet
        }

        private static let isWanted = ProcessInfo.processInfo.environment["MUSTER_MEASURE"] == "budgets"
        private static let rate = Int64.mebibytes(8)
        private static let settling = Duration.seconds(2)
        private static let interval = Duration.seconds(10)

        @Test(.enabled(if: isWanted), arguments: Payer.allCases, [1, 2, 4, 8])
        func bytesOverTenSecondsAreThoseOfTheBudget(payer: Payer, count: Int) async throws {
            try await Self.run(payer) { fleet in
                var workers: [TestProcess] = []
                for number in 0..<count { workers.append(try await fleet.startWorker("w\(number)", slots: 4)) }
                let share = try await Self.measure(workers)
                print("budgets: \(payer.rawValue), \(count) workers: \(share) of the rate")
                // A bucket holds a second's worth besides.
                #expect(share <= 1.1)
            }
        }

        /// What one worker doesn't use any more goes to the other.
        @Test(.enabled(if: isWanted), arguments: Payer.allCases)
        func shareOfAWorkerThatLeavesGoesToTheOther(payer: Payer) async throws {
            try await Self.run(payer) { fleet in
                let (first, second) = (
                    try await fleet.startWorker("w0", slots: 4), try await fleet.startWorker("w1", slots: 4)
                )
                let before = try await Self.measure([first, second])
                _ = try await fleet.muster(["drain", "w0"])
                try await first.waitForExit()
                print(
                    "budgets: \(payer.rawValue), two workers: \(before) of the rate; when one has left:",
                    try await Self.measure([second]))
            }
        }

        /// A fleet with that budget and more to fetch than it has time for.
        private static func run(_ payer: Payer, _ body: (Fleet) async throws -> Void) async throws {
            let root = try TemporaryDirectory()
            let bytes = ScriptedOrigin.Content.seeded(seed: 1, size: .mebibytes(64)).allBytes
            try Data(bytes).write(to: URL(filePath: root.path.appending("file").string))
            let nginx = try await NginxServer.start(documentRoot: root.path)
            let options = ["--max-connections-per-origin", "64", "--minimum-chunk", "8MiB"]
            try await Fleet.run(options: options + (payer == .fleet ? ["--max-rate", "\(rate)"] : [])) { fleet in
                let client = await fleet.client()
                if payer == .origin {
                    _ = try await client.setOrigin(nginx.url, OriginPatch(bytesPerSecond: .set(rate)))
                }
                let limits = payer == .group ? GroupLimits(bytesPerSecond: rate) : nil
                let tasks = (0..<64).map { TaskRequest(urls: ["\(nginx.url)/file?n=\($0)"], path: "\($0)") }
                _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, limits: limits, tasks: tasks))
                try await body(fleet)
            }
            try await nginx.stop()
        }

        /// What workers write in ten seconds after two, as a part of the rate: what they take from their connections, they write.
        private static func measure(_ workers: [TestProcess]) async throws -> Double {
            try await Task.sleep(for: settling)
            let (start, before) = (ContinuousClock.now, written(by: workers))
            try await Task.sleep(for: interval)
            let (bytes, time) = (written(by: workers) - before, ContinuousClock.now - start)
            return Double(bytes) / (Double(rate) * (time / .seconds(1)))
        }

        private static func written(by workers: [TestProcess]) -> Int64 {
            workers.reduce(0) { $0 + (ProcessTree.bytesWritten(by: $1.processID) ?? 0) }
        }
    }
}
