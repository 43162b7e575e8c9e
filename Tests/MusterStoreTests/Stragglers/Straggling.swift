import MusterCore
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
        try await fixture.setLeaseSpeed()
        try await scene.pass(seconds: 60)
        return scene
    }

    /// Lets time pass for leases, without reports on them.
    mutating func pass(seconds: Int64) async throws {
        try await fixture.age(.grant, .progress, .shrinkRequest, by: .seconds(seconds))
    }

    /// The shrink requests to the slow worker, in the order of the file.
    func wishes() async throws -> [ShrinkWish] {
        try await store.shrinkWishes(of: slow.session).sorted { $0.end < $1.end }
    }

    /// Whether the part has to be copied and checked before it counts (I8).
    func isFenced() async throws -> Bool { try await fixture.tasks().allSatisfy(\.fenced) }

    /// Closes both sessions; another worker fetches the rest and puts the file in place.
    func finish() async throws {
        try await fixture.check("before the end")
        try await store.closeSession(slow.session)
        try await store.closeSession(idle.session)
        try await fixture.check("without them")
        var last = try await fixture.makeWorker("last")
        try await last.finishEverything()
        try await fixture.check("in the end")
        #expect(try await fixture.store.group("g").state == .succeeded)
        #expect(try await fixture.count(of: "leases") == 0)
    }
}
