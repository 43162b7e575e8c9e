import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// A guard against plans that are good for what the planner believes alone. Statistics are old, or half of them are: between two tables of one round of
/// ANALYZE, after an import, and where a table was emptied and filled again. Claims and reports must do with whatever is believed then.
@Suite(.serialized) struct StatisticsTests {
    /// What the planner believes of a table.
    private enum Belief {
        /// What is there.
        case truth
        /// Nothing: what it was never told.
        case unknown
        /// That it has hardly a row.
        case empty
        /// That it has a million rows on each page.
        case full

        /// What is written down of a table for that; nil: what ANALYZE writes.
        private var looks: String? {
            switch self {
            case .truth: nil
            case .unknown: "reltuples = -1, relpages = 0"
            case .empty: "reltuples = 0, relpages = 1"
            case .full: "reltuples = 1000000, relpages = 1"
            }
        }

        /// The statement that has it believed.
        func statement(_ tables: [String]) -> SQL {
            guard let looks else { return SQL(unsafeRaw: "ANALYZE \(tables.joined(separator: ", "))") }
            let ids = tables.map { "'\($0)'::regclass" }.joined(separator: ", ")
            return SQL(
                unsafeRaw: """
                    WITH forgotten AS (DELETE FROM pg_statistic WHERE starelid IN (\(ids)))
                    UPDATE pg_class SET \(looks) WHERE oid IN (\(ids))
                    """)
        }
    }

    private static let tables = ["groups", "tasks", "sources", "ready_chunks", "leases", "origins", "sessions"]
    private static let batch = 32

    /// What is believed of all tables, and of some another thing.
    private static let beliefs: [(Belief, [(Belief, String)])] =
        [(.truth, []), (.unknown, []), (.empty, []), (.full, [])]
        + tables.flatMap { table -> [(Belief, [(Belief, String)])] in
            [
                (.truth, [(.empty, table)]), (.truth, [(.full, table)]), (.unknown, [(.truth, table)]),
                (.empty, [(.truth, table)]), (.empty, [(.full, table)]),
            ]
        }
        // The first table of a round of ANALYZE is known, and leases have left much room where they were.
        + [(.unknown, [(.truth, "groups"), (.full, "leases")])]

    @Test func claimsAndReportsReadTheSameWhateverStatisticsSay() async throws {
        var policy = Store.Policy()
        policy.connectionsPerOrigin = 256
        policy.leasesPerSession = 512
        try await StoreCosts.run(policy: policy) { costs in
            let fixture = costs.fixture
            try await fixture.makeGroup("g", Wanted.many(4_000), isSealed: true, reuses: true)
            var worker = try await fixture.makeWorker()
            for (all, others) in Self.beliefs {
                try await fixture.run("VACUUM leases, ready_chunks, pending_events")
                try await fixture.run(all.statement(Self.tables))
                for (belief, table) in others { try await fixture.run(belief.statement([table])) }
                var leases: [GrantedLease] = []
                let claim = try await costs.costs { leases = try await worker.claim(Int32(Self.batch)) }
                try #require(leases.count == Self.batch)
                let state = "\(all), but \(others)"
                print("reads of a claim of \(Self.batch) (\(state)): \(claim.reads)")
                // 915 to 994.
                #expect(claim.reads <= 1_240, "\(state)")
                let failed = leases[0]
                let failure = try await costs.costs { try await worker.fail(failed, .tooSlow) }
                let finished = Array(leases.dropFirst())
                let end = try await costs.costs { try await worker.finishAll(finished) }
                print("reads of a failure: \(failure.reads); of the end of \(finished.count) files: \(end.reads)")
                // 69 to 202, and 314 to 317.
                #expect(failure.reads <= 260, "\(state)")
                #expect(end.reads <= 400, "\(state)")
            }
        }
    }
}
