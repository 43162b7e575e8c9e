import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

/// A random history in which chunks are constantly shrunk and taken over. Nothing else changes or ends files in it, so that stronger
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
        /// A chunk was taken from a silent holder.
        case taken
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

    static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.connectionsPerOrigin = 48
        return policy
    }

    private static let size: Int64 = 500

    private let fixture: StoreFixture
    private let seed: UInt64
    private var random: SeededGenerator
    private var workers: [(worker: TestWorker, name: String, leases: [GrantedLease])] = []
    private var bytesDone: Int64 = 0
    private(set) var seen = Seen()

    init(fixture: StoreFixture, seed: UInt64) {
        self.fixture = fixture
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    /// Takes `steps` steps with a check after each, and then finishes all files.
    mutating func run(steps: Int = 60) async throws {
        // So few chunks that all of them are soon leased.
        try await fixture.makeGroup("g", Wanted.many(3, "f", size: Self.size), isSealed: true)
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
        let state = try await fixture.store.group("g").state
        if state != .succeeded { throw Failure(seed: seed, broken: ["the group is \(state)"]) }
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
        case 19..<24: try await refuse(index)
        default: try await report(index)
        }
    }

    private mutating func claim(_ index: Int) async throws {
        let room = Int32.random(in: 2...12, using: &random)
        workers[index].leases += try await workers[index].worker.claim(room)
    }

    private mutating func resume() async throws {
        _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
        try await fixture.passBackoffs()
    }

    /// Lets an idle worker ask to help; another worker has taken all ready chunks before.
    private mutating func help(_ index: Int) async throws {
        if Bool.random(using: &random) {
            try await resume()
            try await claim((index + 1) % workers.count)
        }
        try await fixture.passStraggling()
        try await fixture.age(.sync, by: .seconds(10))
        try await fixture.setLeaseSpeed()
        seen.note(.taken, times: try await workers[index].worker.help(Int32.random(in: 1...4, using: &random)).taken)
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

    private mutating func shrink(_ lease: GrantedLease, to end: Int64, by worker: TestWorker) async throws {
        let isTooFar: Bool = try await fixture.value(
            """
            SELECT EXISTS (SELECT 1 FROM leases WHERE epoch = \(lease.name.epoch.rawValue) AND kind = 'fetch'
                AND first < \(end)::bigint AND durable > \(end)::bigint)
            """)
        if isTooFar { seen.note(.shrunkTooFar) }
        if try await worker.shrink(lease, to: end) == .agreed { seen.note(.shrunk) }
    }

    /// Fails a piece that was cut off a chunk. Without one, a tail is cut off and leased.
    private mutating func refuse(_ index: Int) async throws {
        let rows = try await fixture.pool.query(
            """
            SELECT l.epoch, l.durable > l.first, EXISTS (
                SELECT 1 FROM leases h WHERE h.task_id = l.task_id AND h.kind = 'fetch' AND h.last = l.first AND h.durable < h.last AND h.reach >= l.last)
            FROM leases l WHERE l.kind = 'fetch' AND l.reach IS NOT NULL AND l.first > 0 AND l.attempts = 0
            ORDER BY l.chunk_id DESC
            """)
        for row in rows {
            guard let (place, lease) = try holding(row.decode(at: 0)) else { continue }
            let hasBytes: Bool = try row.decode(at: 1)
            if hasBytes { seen.note(.kept) } else if try row.decode(at: 2) { seen.note(.givenBack) }
            return try await workers[place].worker.fail(lease, .network)
        }
        guard let lease = workers[index].leases.last(where: { $0.kind == .fetch && $0.isPlanned }), let end = lease.end,
            end - lease.start > 2
        else { return }
        try await shrink(lease, to: end - 2, by: workers[index].worker)
        try await claim((index + 1) % workers.count)
        if Bool.random(using: &random),
            let tail = workers[(index + 1) % workers.count].leases.last(where: { $0.reach != nil })
        {
            try await workers[(index + 1) % workers.count].worker.progress(tail, to: tail.start + 1)
        }
    }

    /// The worker that holds the lease of an epoch, as an index.
    private func holding(_ epoch: Int64) -> (place: Int, lease: GrantedLease)? {
        for (place, entry) in workers.enumerated() {
            for lease in entry.leases where lease.name.epoch.rawValue == epoch { return (place, lease) }
        }
        return nil
    }

    /// Ends a worker's session, by death or closing, and opens a new one.
    private mutating func replace(_ index: Int) async throws {
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
            SELECT 'I8: task ' || t.key || ' is not fenced, and a session may still be writing'
            FROM holdouts h JOIN tasks t ON t.id = h.task_id WHERE NOT t.fenced
            """)
        let bytes = try await fixture.groups()[0].bytesDone
        if bytes < bytesDone { broken.append("I4: \(bytesDone) bytes were durable, now \(bytes) are") }
        bytesDone = bytes
        if !broken.isEmpty { throw Failure(seed: seed, broken: broken) }
    }
}
