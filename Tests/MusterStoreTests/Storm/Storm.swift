import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// A client that does at random what workers and callers do, while others do the same.
struct StormRider {
    let fixture: StoreFixture
    var random: SeededGenerator
    var worker: TestWorker
    var leases: [GrantedLease] = []

    /// The groups, with their sinks.
    static let groups = ["g1": "sink", "g2": "sink", "g3": "other"]
    static let sinks = ["sink", "other"]

    init(_ fixture: StoreFixture, seed: UInt64) async throws {
        self.fixture = fixture
        random = SeededGenerator(seed: seed)
        worker = try await fixture.makeWorker("rider\(seed % 4)", sinks: Self.sinks)
    }

    /// Takes `steps` random steps. Refusals and lock timeouts are expected; any other error fails the test.
    mutating func ride(steps: Int) async throws {
        for _ in 0..<steps {
            do {
                try await step()
            } catch is Store.Refusal {
                // Another rider has removed, sealed or finished the group meanwhile.
            } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
                // Another transaction has held the group's lock for longer than a verb waits: nothing was done.
            }
        }
    }

    private mutating func step() async throws {
        let store = fixture.store
        let group = "g\(Int.random(in: 1...3, using: &random))"
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<8: try await addTasks(to: group)
        case 8..<40:
            leases += try await worker.claim(Int32.random(in: 1...6, using: &random))
            leases = Array(leases.suffix(12))
        case 40..<78: try await report()
        case 78..<80: _ = try await store.seal(group)
        case 80..<84:
            try await fixture.passStraggling()
            _ = try await worker.help(Int32.random(in: 1...6, using: &random))
        case 84..<92:
            let verbs: [TaskVerb] = [.pause, .resume, .resume, .retry, .retry, .cancel]
            let verb = verbs[Int.random(in: 0..<6, using: &random)]
            let isAll = Int.random(in: 0..<4, using: &random) == 0
            _ = try await store.apply(verb, to: group, keys: isAll ? nil : [key(), key()])
        case 92: try await store.remove(group, keys: nil, deletingFiles: true)
        case 93: try await store.remove(group, keys: [key()], deletingFiles: false)
        case 94:
            // May expire its own session, or another rider's.
            let rest = Int64.random(in: 0..<5, using: &random)
            try await fixture.run(
                // Locks in the order of claims: the test's own statement is not repeated after a deadlock.
                """
                UPDATE sessions SET expires_at = statement_timestamp() - interval '1 h'
                WHERE id IN (SELECT id FROM sessions WHERE id % 5 = \(rest) ORDER BY id FOR NO KEY UPDATE)
                """)
            #expect(try await store.sweepSessions().stuck.isEmpty)
        case 95:
            try await store.closeSession(worker.session)
            worker = try await fixture.makeWorker(sinks: Self.sinks)
        case 96:
            #expect(try await store.sweepStalled(stall: .seconds(3600)).stuck.isEmpty)
            _ = try await store.sweepSlow(olderThan: .milliseconds(1))
            _ = try await store.foldOriginRates()
            try await fixture.run(
                "UPDATE origins SET serves_again = false WHERE id IN (SELECT id FROM origins FOR UPDATE SKIP LOCKED)")
        case 97:
            if try await worker.sync(settled: worker.sequence, held: leases.map(\.name)) == nil {
                worker = try await fixture.makeWorker(sinks: Self.sinks)
            }
        default:
            try await fixture.passBackoffs()
            _ = try await store.sequenceEvents(limit: 5)
        }
    }

    private mutating func key() -> String { "k\(Int.random(in: 0..<20, using: &random))" }

    private mutating func addTasks(to group: String) async throws {
        var keys: Set<String> = []
        for _ in 0..<5 { keys.insert(key()) }
        let tasks = keys.map { key in
            Wanted(
                key, size: key.count == 2 ? 250 : nil, origins: key.count == 2 ? ["a", "b"] : ["c"],
                // Half of the paths are shared by several groups (I17).
                path: key.count == 2 ? key : "\(group)/\(key)")
        }
        do {
            _ = try await fixture.add(tasks, to: group)
        } catch Store.Refusal.noSuchGroup {
            try await fixture.makeGroup(
                group, tasks, sink: Self.groups[group] ?? "sink", maxConnections: 8,
                resolver: #"{"url": "http://resolver.test/"}"#)
        }
    }

    private mutating func report() async throws {
        guard let lease = leases.randomElement(using: &random) else { return }
        let offset = min(lease.end ?? 250, lease.start + Int64.random(in: 0...100, using: &random))
        switch Int.random(in: 0..<17, using: &random) {
        case 0..<4: try await worker.progress(lease, to: offset)
        case 4..<8 where lease.kind == .fetch:
            try await worker.learn(
                lease, size: 250, isSplittable: lease.rung == .stream || lease.end != nil, askedForAll: lease.asksForAll
            )
        case 4..<8 where lease.kind == .trial: try await worker.servedAgain(lease)
        case 4..<14 where lease.kind == .resolve: try await worker.resolve(lease)
        case 8..<12: try await worker.done(lease)
        case 12 where lease.kind != .purge: try await worker.finish(lease, size: 250)
        case 13: try await worker.release(lease, at: offset)
        case 14:
            let kinds: [(FailureKind, Int32?)] = [
                (.network, nil), (.notFound, 404), (.changed, nil), (.storageFull, nil), (.storage, nil),
                (.httpStatus(429), 429), (.httpStatus(403), 403), (.authentication, 401), (.digestMismatch, nil),
            ]
            let (kind, status) = kinds[Int.random(in: 0..<9, using: &random)]
            let isParking = Int.random(in: 0..<8, using: &random) == 0
            try await worker.fail(lease, kind, at: offset, retryAfter: isParking ? 0 : nil, status: status)
        case 15: try await worker.restart(lease)
        case 16: try await worker.shrink(lease, to: offset)
        default: try await worker.progress(lease, to: offset)
        }
    }
}
