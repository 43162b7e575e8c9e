import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterSystem
import MusterTestSupport
import Testing

@testable import MusterCoordinator

@Suite("The table of rounds")
struct RoundTableTests {
    private struct Broken: Error {}

    /// Runs a table until `body` returns.
    private static func with(
        _ rounds: [Round], lanes: Int, metrics: CoordinatorMetrics = CoordinatorMetrics(),
        onFailure: @escaping @Sendable (any Error) -> Void = { _ in }, _ body: @Sendable () async throws -> Void
    ) async throws {
        let table = RoundTable(
            rounds: rounds, lanes: lanes, metrics: metrics,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            clock: .system, onFailure: onFailure)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await table.run() }
            try await body()
            group.cancelAll()
        }
    }

    private static func counting(_ name: RoundName, _ runs: Observed<Int>) -> Round {
        Round(name, every: .milliseconds(1)) { runs.update { $0 += 1 } }
    }

    @Test func roundThatAlwaysFailsLeavesTheOthersRunningAndIsCounted() async throws {
        let metrics = CoordinatorMetrics()
        let failures = Observed(0)
        let runs = Observed(0)
        let failing = Round(.originRates, every: .milliseconds(1)) {
            failures.update { $0 += 1 }
            throw Broken()
        }
        // In one lane the two take turns.
        try await Self.with([failing, Self.counting(.sessions, runs)], lanes: 1, metrics: metrics) {
            try await failures.wait(for: "failures") { $0 > 3 }
            let before = runs.value
            try await runs.wait(for: "further runs of the other round") { $0 > before + 3 }
        }
        let text = metrics.render()
        #expect(!text.contains("muster_round_failures_total{round=\"originRates\"} 0\n"))
        #expect(text.contains("muster_round_failures_total{round=\"sessions\"} 0\n"))
        #expect(!text.contains("muster_rounds_total{round=\"sessions\"} 0\n"))
        for name in ["muster_rounds_total", "muster_round_failures_total"] {
            let explanations = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE \(name) ") }
            #expect(explanations.count == 1)
        }
    }

    @Test func roundThatHangsStopsNoOther() async throws {
        let hangs = Bell()
        let isHanging = Observed(false)
        let runs = Observed(0)
        let hanging = Round(.wishes, every: .milliseconds(1)) {
            isHanging.update { $0 = true }
            // It hangs until the test is over.
            await hangs.wait(since: 0)
        }
        let rounds = [hanging, Self.counting(.sessions, runs), Self.counting(.backoffs, Observed(0))]
        try await Self.with(rounds, lanes: RoundTable.lanes(connections: 4)) {
            try await isHanging.wait(for: "the round that hangs") { $0 }
            let before = runs.value
            try await runs.wait(for: "further runs of another round") { $0 > before + 3 }
        }
    }

    @Test func anOutageIsHeardOfWhicheverRoundFoundIt() async throws {
        let outages = Observed(0)
        let away = Round(.purges, every: .milliseconds(1)) {
            throw PostgresError.connection(.init(kind: .unreachable, message: "away"))
        }
        try await Self.with([away], lanes: 2, onFailure: { _ in outages.update { $0 += 1 } }) {
            try await outages.wait(for: "outages") { $0 > 1 }
        }
    }

    @Test func graceIsOwedUntilItWasGiven() async throws {
        let grace = SessionGrace()
        await #expect(throws: Broken.self) { try await grace.settle { _ in throw Broken() } }
        var given: [Bool] = []
        try await grace.settle { given.append($0) }
        try await grace.settle { given.append($0) }
        grace.notice()
        try await grace.settle { isStart in
            // The database goes away again while the grace is being given.
            if given.count == 1 { grace.notice() }
            given.append(isStart)
        }
        #expect(given == [true, false, false])
    }

    @Test func theTableOfACoordinatorHasEveryRoundOnce() async throws {
        let names = Observed<[RoundName]>([])
        try await RunningCoordinator.with(configure: { configuration in
            configuration.adjustRounds = { rounds in
                names.update { $0 = rounds.map(\.name) }
                return rounds
            }
        }) { _ in
            try await names.wait(for: "the table") { !$0.isEmpty }
        }
        #expect(
            names.value.sorted { $0.rawValue < $1.rawValue } == RoundName.allCases.sorted { $0.rawValue < $1.rawValue })
    }

    /// The whole coordinator: a round that fails and one that hangs, and a session that ends all the same.
    @Test func aCoordinatorGoesOnBesideRoundsThatFailAndHang() async throws {
        let hangs = Bell()
        try await RunningCoordinator.with(configure: { configuration in
            configuration.sessionTimeToLive = .seconds(1)
            configuration.adjustRounds = { rounds in
                rounds.map { round in
                    switch round.name {
                    case .wishes: Round(.wishes, every: round.period) { throw Broken() }
                    case .chains:
                        Round(.chains, every: round.period) {
                            await hangs.wait(since: 0)
                        }
                    case .polls, .sessions, .backoffs, .hours, .groupDeadlines, .recalls, .purges, .repeats,
                        .taskDeadlines, .clock, .originRates, .work, .preemption, .shrinking, .events, .slow, .stalled,
                        .names, .checks, .uploads,
                        .retention:
                        round
                    }
                }
            }
        }) { coordinator in
            _ = try await coordinator.client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
            try await eventually("the end of the session") {
                let text = String(decoding: try await coordinator.raw("GET", "/metrics").body, as: UTF8.self)
                return text.contains("muster_sessions_expired_total 1\n")
                    && !text.contains("muster_round_failures_total{round=\"wishes\"} 0\n")
            }
        }
    }
}
