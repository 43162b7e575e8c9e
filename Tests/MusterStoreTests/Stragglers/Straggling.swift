import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// A file of which one worker holds all remaining chunks, so that nothing is left for others.
struct Straggling {
    let fixture: StoreFixture
    /// The worker that holds the chunks.
    var slow: TestWorker
    /// A worker without work.
    var idle: TestWorker
    /// The slow worker's leases, each on a thousand bytes, in the order of the file.
    let leases: [GrantedLease]

    var store: Store { fixture.store }

    /// Begins with a first chunk of 100 bytes that is done; the slow worker has held the rest for a minute. `durable` states the
    /// durable bytes of each chunk; the group's leases are recorded with 100 bytes per second.
    static func begin(
        _ fixture: StoreFixture, durable: [Int64], origins: [String] = ["a"], maxConnections: Int32? = nil
    ) async throws -> Straggling {
        try await fixture.makeGroup(
            "g", [Wanted("t", origins: origins)], maxConnections: maxConnections, isSealed: true)
        var slow = try await fixture.makeWorker("slow")
        let first = try #require(try await slow.claim().first)
        let isHeld = try await fixture.store.report(
            learned: .init(
                session: slow.session, lease: first.name,
                representation: Representation(size: 100 + 1_000 * Int64(durable.count), etag: "\"strong\""),
                rung: .chunks, effectiveURL: nil, suggestedName: nil, chunkSize: 1_000))
        try #require(isHeld)
        try await slow.done(first)
        let leases = try await slow.claim(Int32(durable.count)).sorted { $0.start < $1.start }
        try #require(leases.count == durable.count)
        let idle = try await fixture.makeWorker("idle")
        var scene = Straggling(fixture: fixture, slow: slow, idle: idle, leases: leases)
        for (lease, offset) in zip(leases, durable) where offset > 0 {
            try await scene.slow.progress(lease, to: lease.start + offset)
        }
        try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
        try await scene.pass(seconds: 60)
        return scene
    }

    /// Lets time pass for leases, without reports on them.
    mutating func pass(seconds: Int64) async throws {
        try await fixture.run(
            """
            UPDATE leases SET granted_at = granted_at - \(seconds)::bigint * interval '1 s',
                progress_at = progress_at - \(seconds)::bigint * interval '1 s',
                shrink_asked_at = shrink_asked_at - \(seconds)::bigint * interval '1 s'
            """)
    }

    /// The shrink requests to the slow worker, in the order of the file.
    func wishes() async throws -> [ShrinkWish] {
        try await store.shrinkWishes(of: slow.session).sorted { $0.end < $1.end }
    }

    /// Whether the part has to be copied and checked before it counts (I8).
    func isFenced() async throws -> Bool { try await fixture.value("SELECT bool_and(fenced) FROM tasks") }

    /// The sessions that may still be writing without a lease.
    func holdouts() async throws -> [Int64] {
        try await fixture.values("SELECT session_id FROM holdouts ORDER BY session_id")
    }

    /// Closes both sessions; another worker fetches the rest and puts the file in place.
    func finish() async throws {
        try await fixture.check("before the end")
        try await store.closeSession(slow.session)
        try await store.closeSession(idle.session)
        try await fixture.check("without them")
        var last = try await fixture.makeWorker("last")
        try await last.finishEverything()
        try await fixture.check("in the end")
        #expect(try await fixture.value("SELECT state FROM groups", as: String.self) == "succeeded")
        #expect(try await fixture.value("SELECT count(*) FROM leases", as: Int64.self) == 0)
    }
}
