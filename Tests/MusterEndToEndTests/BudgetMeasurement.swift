import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// How well byte budgets are kept by any number of workers: within 5 % over 10 s. Run by hand with `MUSTER_MEASURE=budgets`, since a
    /// busy machine distorts the times.
    @Suite struct BudgetMeasurement {
        /// What the budget belongs to.
        enum Payer: String, CaseIterable, Sendable {
            case group, origin, fleet
        }

        private static let isWanted = ProcessInfo.processInfo.environment["MUSTER_MEASURE"] == "budgets"
        private static let rate = Int64.mebibytes(8)
        private static let settling = Duration.seconds(2)
        private static let interval = Duration.seconds(10)
        private static let bounds = 0.95...1.05

        @Test(.enabled(if: isWanted), arguments: Payer.allCases, [1, 2, 4, 8])
        func bytesOverTenSecondsAreThoseOfTheBudget(payer: Payer, count: Int) async throws {
            try await Self.run(payer) { fleet in
                var workers: [TestProcess] = []
                for number in 0..<count { workers.append(try await fleet.startWorker("w\(number)", slots: 4)) }
                let share = try await Self.measure(workers)
                print("budgets: \(payer.rawValue), \(count) workers: \(share) of the rate")
                #expect(Self.bounds.contains(share))
            }
        }

        /// The rate that one worker no longer uses goes to the other.
        @Test(.enabled(if: isWanted), arguments: Payer.allCases)
        func shareOfAWorkerThatLeavesGoesToTheOther(payer: Payer) async throws {
            try await Self.run(payer) { fleet in
                let (first, second) = (
                    try await fleet.startWorker("w0", slots: 4), try await fleet.startWorker("w1", slots: 4)
                )
                let before = try await Self.measure([first, second])
                _ = try await fleet.muster(["drain", "w0"])
                try await first.waitForExit()
                let after = try await Self.measure([second])
                print("budgets: \(payer.rawValue), two workers: \(before) of the rate; when one has left: \(after)")
                #expect(Self.bounds.contains(before) && Self.bounds.contains(after))
            }
        }

        /// Three workers that need little beside one that could use everything.
        @Test(.enabled(if: isWanted), arguments: Payer.allCases)
        func rateThatSlowWorkersDoNotUseGoesToAFastOne(payer: Payer) async throws {
            try await Self.run(payer) { fleet in
                var workers = [try await fleet.startWorker("fast", slots: 4)]
                for number in 0..<3 {
                    workers.append(
                        try await fleet.startWorker("slow\(number)", slots: 4, options: ["--rate", "400KiB/s"]))
                }
                // Finding out what a slow worker needs takes some seconds.
                let share = try await Self.measure(workers, after: .seconds(8))
                print("budgets: \(payer.rawValue), one fast and three slow workers: \(share) of the rate")
                #expect(Self.bounds.contains(share))
            }
        }

        /// Workers that are stopped and wake up within the life of their session and after it, die, leave and come: the rate is
        /// not exceeded in any ten seconds, and reached again in the end.
        @Test(.enabled(if: isWanted)) func rateHoldsWhileWorkersStopWakeUpDieAndCome() async throws {
            // The files are too large to be finished meanwhile: a file that is copied when it is finished would be written twice.
            try await Self.run(.fleet, fileSize: .mebibytes(1_024), files: 16) { fleet in
                var workers: [TestProcess] = []
                for number in 0..<4 { workers.append(try await fleet.startWorker("w\(number)", slots: 4)) }
                try await Task.sleep(for: Self.settling)
                var samples: [(time: ContinuousClock.Instant, bytes: Int64)] = []
                var gone: Int64 = 0
                for step in 0..<180 {
                    switch step {
                    case 20: try workers[0].signal(SIGSTOP)
                    case 32: try workers[0].signal(SIGCONT)
                    case 48: try workers[1].signal(SIGSTOP)
                    case 84: try workers[1].signal(SIGCONT)
                    case 100:
                        gone += Self.written(by: [workers[2]])
                        try await fleet.kill(workers.remove(at: 2))
                    case 120: workers.append(try await fleet.startWorker("w4", slots: 4))
                    case 128: workers.append(try await fleet.startWorker("w5", slots: 4))
                    default: break
                    }
                    samples.append((.now, gone + Self.written(by: workers)))
                    try await Task.sleep(for: .milliseconds(250))
                }
                let shares = samples.indices.dropLast(40).map { first in
                    let (from, to) = (samples[first], samples[first + 40])
                    return Double(to.bytes - from.bytes) / (Double(Self.rate) * ((to.time - from.time) / .seconds(1)))
                }
                let (least, most, last) = (
                    try #require(shares.min()), try #require(shares.max()), try #require(shares.last)
                )
                print(
                    "budgets: workers that stop, wake up, die and come: \(least) to \(most) of the rate, \(last) in the end"
                )
                #expect(most <= Self.bounds.upperBound)
                #expect(Self.bounds.contains(last))
            }
        }

        /// Runs a fleet with that budget and with more to fetch than the time allows.
        private static func run(
            _ payer: Payer, fileSize: Int64 = .mebibytes(64), files: Int = 64, _ body: (Fleet) async throws -> Void
        ) async throws {
            let root = try TemporaryDirectory()
            let file = try FileDescriptor.open(
                root.path.appending("file"), .writeOnly, options: .create,
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
            try file.closeAfter { try file.resize(to: fileSize) }
            let nginx = try await NginxServer.start(documentRoot: root.path)
            let options = ["--max-connections-per-origin", "64", "--minimum-chunk", "8MiB"]
            try await Fleet.run(options: options + (payer == .fleet ? ["--max-rate", "\(rate)"] : [])) { fleet in
                let client = await fleet.client()
                if payer == .origin {
                    _ = try await client.setOrigin(nginx.url, OriginPatch(bytesPerSecond: .set(rate)))
                }
                let limits = payer == .group ? GroupLimits(bytesPerSecond: rate) : nil
                let tasks = (0..<files).map { TaskRequest(urls: ["\(nginx.url)/file?n=\($0)"], path: "\($0)") }
                _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, limits: limits, tasks: tasks))
                try await body(fleet)
            }
            try await nginx.stop()
        }

        /// The bytes that workers write in ten seconds, after a time to settle, as a fraction of the rate. They write what they take from
        /// their connections.
        private static func measure(
            _ workers: [TestProcess], after settling: Duration = settling
        ) async throws -> Double {
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
