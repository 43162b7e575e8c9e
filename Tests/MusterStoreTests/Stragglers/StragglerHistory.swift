import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

/// A random history in which chunks are constantly shrunk and doubled. Nothing else changes or ends files in it, so that stronger
/// invariants hold at every moment than in any other history.
struct StragglerHistory {
    /// A violated invariant.
    struct Failure: Error, CustomStringConvertible {
        let seed: UInt64
        let broken: [String]

        var description: String { "seed \(seed): \(broken)" }
    }

    /// The moments that a history must produce, which chance alone would rarely do.
    enum Moment: CaseIterable {
        /// A holder agreed to give its tail away.
        case shrunk
        /// A holder offered an end before its durable offset.
        case shrunkTooFar
        /// A doubled chunk was shrunk.
        case shrunkWithDouble
        /// A double was granted.
        case doubled
        /// An idle worker that itself holds chunks asked to help.
        case offeredByHolder
        /// A double won, in a task that was not fenced yet.
        case won
        /// A double that was ahead of its chunk won or took over.
        case ahead
        /// The holder won.
        case lost
        /// The holder was put back, and its double was at least as far.
        case tookOver
        /// The holder was put back while its double was behind.
        case fellBehind
        /// The holder of a doubled chunk failed.
        case failed
        /// A chunk was taken from a silent holder.
        case taken
        /// A double was dropped, in a task that was not fenced yet.
        case takenBack
        /// A refused piece went back to the chunk from which it was cut; a failed piece with durable bytes stayed.
        case givenBack, kept
    }

    /// How often each moment occurred.
    struct Seen: CustomStringConvertible {
        private var counts: [Moment: Int] = [:]

        subscript(_ moment: Moment) -> Int { counts[moment, default: 0] }

        /// The count of the rarest moment.
        var least: Int { Moment.allCases.map { self[$0] }.min() ?? 0 }

        var description: String { Moment.allCases.map { "\($0) \(self[$0])" }.joined(separator: ", ") }

        mutating func note(_ moment: Moment, times: Int = 1) { counts[moment, default: 0] += times }

        mutating func add(_ more: Seen) { counts.merge(more.counts, uniquingKeysWith: +) }
    }

    /// All bytes may be fetched twice; otherwise no chunk would be, since a percentage of a few hundred bytes is less than a chunk.
    static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.wastedPart = 1
        policy.connectionsPerOrigin = 48
        return policy
    }

    private static let size: Int64 = 500

    let fixture: StoreFixture
    private let seed: UInt64
    var random: SeededGenerator
    var workers: [(worker: TestWorker, name: String, leases: [GrantedLease])] = []
    private var bytesDone: Int64 = 0
    var seen = Seen()

    init(fixture: StoreFixture, seed: UInt64) {
        self.fixture = fixture
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    /// Takes `steps` steps with a check after each, and then finishes all files.
    mutating func run(steps: Int = 60) async throws {
        // So few chunks that all of them are soon leased.
        try await fixture.makeGroup("g", Wanted.many(3, "f", size: Self.size), isSealed: true)
        if Int.random(in: 0..<4, using: &random) == 0 {
            // No byte may be fetched twice any more: silent sessions lose their chunks instead.
            try await fixture.run("UPDATE groups SET doubled_bytes = bytes_total")
        }
        for name in ["one", "two", "three"] {
            workers.append((worker: try await fixture.makeWorker(name), name: name, leases: []))
        }
        for _ in 0..<steps {
            let index = Int.random(in: 0..<workers.count, using: &random)
            try await step(index)
            try await check()
        }
        for entry in workers { try await fixture.store.closeSession(entry.worker.session) }
        try await check()
        var last = try await fixture.makeWorker("last")
        _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
        try await last.finishEverything(size: Self.size)
        try await check()
        let state: String = try await fixture.value("SELECT state FROM groups")
        if state != "succeeded" { throw Failure(seed: seed, broken: ["the group is \(state)"]) }
        try await fixture.wipe()
    }

    private mutating func step(_ index: Int) async throws {
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<4: try await claim(index)
        case 4..<12: try await help(index)
        case 12: _ = try await fixture.store.apply(.pause, to: "g", keys: ["f1", "f2"])
        case 13..<17: try await resume()
        case 17: try await replace(index)
        case 18:
            // The worker holds the leases that it knows of, and has released the rest.
            let worker = workers[index].worker
            try await workers[index].worker.sync(
                settled: worker.sequence, held: workers[index].leases.map(\.name))
        case 19..<32: try await race(otherwise: index)
        case 32..<35: try await refuse(index)
        default: try await report(index)
        }
    }

    mutating func claim(_ index: Int) async throws {
        let room = Int32.random(in: 2...12, using: &random)
        workers[index].leases += try await workers[index].worker.claim(room)
    }

    private mutating func resume() async throws {
        _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
        try await fixture.passBackoffs()
    }

    /// Lets an idle worker ask to help; another worker has taken all ready chunks before.
    mutating func help(_ index: Int) async throws {
        if Bool.random(using: &random) {
            try await resume()
            try await claim((index + 1) % workers.count)
        }
        try await fixture.passStraggling()
        try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '10 s'")
        try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
        let session = workers[index].worker.session.rawValue
        let isHolder: Bool = try await fixture.value(
            """
            SELECT EXISTS (
                    SELECT 1 FROM leases l JOIN groups g ON g.id = l.group_id AND g.doubled_bytes < g.bytes_total
                    WHERE l.session_id = \(session) AND l.kind = 'fetch' AND l.doubled_at IS NULL
                        AND (l.shrink_to IS NOT NULL OR l.last - l.durable < \(2 * Self.policy.minimumShrink)))
                AND NOT EXISTS (SELECT 1 FROM ready_chunks WHERE status = 'ready')
            """)
        let help = try await workers[index].worker.help(Int32.random(in: 1...4, using: &random))
        workers[index].leases += help.doubles
        seen.note(.doubled, times: help.doubles.count)
        seen.note(.taken, times: help.taken)
        if isHolder { seen.note(.offeredByHolder) }
    }

    /// Reports on one of a worker's leases, mostly a newer one; sometimes on one that has ended.
    private mutating func report(_ index: Int) async throws {
        guard let lease = workers[index].leases.suffix(8).randomElement(using: &random) else { return }
        let worker = workers[index].worker
        guard lease.kind == .fetch, let end = lease.end else {
            if lease.kind == .finalize { try await worker.finish(lease, size: Self.size) }
            return
        }
        if !lease.isPlanned { try await worker.learn(lease, size: Self.size) }
        let offset = Int64.random(in: lease.resume.offset...end, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: try await worker.progress(lease, to: offset)
        case 5..<7: try await worker.done(lease)
        case 7..<9:
            // The worker may have made progress since it was asked.
            try await worker.progress(lease, to: Int64.random(in: lease.resume.offset...end, using: &random))
            try await shrink(lease, to: offset, by: worker)
        default:
            if Bool.random(using: &random) {
                try await worker.release(lease, at: offset)
            } else {
                try await worker.fail(lease, .storageFull, at: offset)
            }
        }
    }

    mutating func shrink(_ lease: GrantedLease, to end: Int64, by worker: TestWorker) async throws {
        let isTooFar: Bool = try await fixture.value(
            """
            SELECT EXISTS (SELECT 1 FROM leases WHERE epoch = \(lease.name.epoch.rawValue) AND kind = 'fetch'
                AND first < \(end)::bigint AND durable > \(end)::bigint)
            """)
        if isTooFar { seen.note(.shrunkTooFar) }
        if try await worker.shrink(lease, to: end) == .agreed { seen.note(.shrunk) }
    }

    /// Ends a worker's session, by death or closing, and opens a new one.
    mutating func replace(_ index: Int) async throws {
        for pair in try await pairs() where pair.holder == index { noteReturn(of: pair) }
        // A death fences all tasks with its leases: with more deaths, later steps would have little left to fence.
        if Int.random(in: 0..<4, using: &random) == 0 {
            try await fixture.expire(workers[index].worker.session)
        } else {
            try await fixture.store.closeSession(workers[index].worker.session)
        }
        let name = workers[index].name
        workers[index] = (worker: try await fixture.makeWorker(name), name: name, leases: [])
    }

    private mutating func check() async throws {
        var broken = try await Invariants.check(fixture)
        broken += try await fixture.values(
            """
            SELECT 'I8: task ' || t.key || ' is not fenced, and somebody may be writing still'
            FROM holdouts h JOIN tasks t ON t.id = h.task_id WHERE NOT t.fenced
            UNION ALL
            SELECT 'both leases on chunk ' || o.chunk_id || ' are held by ' || a.worker
            FROM leases d JOIN leases o ON o.chunk_id = d.doubles
            JOIN sessions a ON a.id = d.session_id JOIN sessions b ON b.id = o.session_id WHERE a.worker = b.worker
            UNION ALL
            SELECT 'I16: ' || doubled_bytes || ' bytes may be fetched twice' FROM groups
            WHERE doubled_bytes > bytes_total
            """)
        let bytes: Int64 = try await fixture.value("SELECT bytes_done FROM groups")
        if bytes < bytesDone { broken.append("I4: \(bytesDone) bytes were durable, now \(bytes) are") }
        bytesDone = bytes
        if !broken.isEmpty { throw Failure(seed: seed, broken: broken) }
    }
}
