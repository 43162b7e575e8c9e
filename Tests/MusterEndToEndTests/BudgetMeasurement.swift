import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
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
        func bytesOverTenSecondsAreThoseOfTheBudget(payer: Payer, workers: Int) async throws {
            try await Self.run(payer) { fleet, origin in
                for number in 0..<workers { try await fleet.startWorker("w\(number)", slots: 2) }
                let share = try await Self.measure(origin)
                print("budgets: \(payer.rawValue), \(workers) workers: \(share) of \(Self.rate) bytes/s")
                #expect(share < 1.5)
            }
        }

        /// What one worker doesn't use any more goes to the others.
        @Test(.enabled(if: isWanted), arguments: Payer.allCases)
        func shareOfAWorkerThatLeavesGoesToTheOthers(payer: Payer) async throws {
            try await Self.run(payer) { fleet, origin in
                let first = try await fleet.startWorker("w0", slots: 2)
                try await fleet.startWorker("w1", slots: 2)
                print("budgets: \(payer.rawValue), two workers: \(try await Self.measure(origin))")
                try await fleet.kill(first)
                print("budgets: \(payer.rawValue), one of them killed: \(try await Self.measure(origin))")
                print("budgets: \(payer.rawValue), 10 s later: \(try await Self.measure(origin))")
            }
        }

        /// A fleet with that budget and more to fetch than it has time for.
        private static func run(
            _ payer: Payer, _ body: (Fleet, ScriptedOrigin) async throws -> Void
        ) async throws {
            let origin = try await ScriptedOrigin.start()
            let files = origin.serveFiles("f", sizes: Array(repeating: .mebibytes(64), count: 64))
            try await Fleet.run(options: payer == .fleet ? ["--max-rate", "\(rate)"] : []) { fleet in
                let client = await fleet.client()
                if payer == .origin {
                    _ = try await client.setOrigin(origin.url, OriginPatch(bytesPerSecond: .set(rate)))
                }
                let limits = payer == .group ? GroupLimits(bytesPerSecond: rate) : nil
                let tasks = files.map(\.task)
                _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, limits: limits, tasks: tasks))
                try await body(fleet, origin)
            }
            await origin.stop()
        }

        /// What is sent in ten seconds after two, as a part of the rate.
        private static func measure(_ origin: ScriptedOrigin) async throws -> Double {
            try await Task.sleep(for: settling)
            let (start, before) = (ContinuousClock.now, sent(origin))
            try await Task.sleep(for: interval)
            let (bytes, time) = (sent(origin) - before, ContinuousClock.now - start)
            return Double(bytes) / (Double(rate) * (time / .seconds(1)))
        }

        private static func sent(_ origin: ScriptedOrigin) -> Int64 {
            origin.requests.reduce(0) { $0 + $1.bodyBytesSent }
        }
    }
}
