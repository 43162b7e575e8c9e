import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Guards against plans that are good only if the planner's statistics are right. Statistics are old, or partly old: between two
/// tables of one round of ANALYZE, after an import, or when a table was emptied and filled again. Claims and reports must be cheap
/// in all these cases.
@Suite(.serialized) struct StatisticsTests {
    /// The planner's statistics of a table.
    private enum Belief {
        /// The true ones.
        case truth
        /// None, as before the first ANALYZE.
        case unknown
        /// Those of a table with hardly a row.
        case empty
        /// Those of a table with a million rows on one page.
        case full

        /// The assignments in `pg_class` for that; nil for those of ANALYZE.
        private var looks: String? {
            switch self {
            case .truth: nil
            case .unknown: "reltuples = -1, relpages = 0"
            case .empty: "reltuples = 0, relpages = 1"
            case .full: "reltuples = 1000000, relpages = 1"
            }
        }

        /// The statement that sets these statistics for tables.
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

    /// The statistics of all tables, and the exceptions for some.
    private static let beliefs: [(Belief, [(Belief, String)])] =
        [(.truth, []), (.unknown, []), (.empty, []), (.full, [])]
        + tables.flatMap { table -> [(Belief, [(Belief, String)])] in
            [
                (.truth, [(.empty, table)]), (.truth, [(.full, table)]), (.unknown, [(.truth, table)]),
                (.empty, [(.truth, table)]), (.empty, [(.full, table)]),
            ]
        }
        // The first table of a round of ANALYZE has true statistics, and ended leases have left much room in theirs.
        + [(.unknown, [(.truth, "groups"), (.full, "leases")])]

    @Test func readsOfClaimsAndReportsDoNotDependOnStatistics() async throws {
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
