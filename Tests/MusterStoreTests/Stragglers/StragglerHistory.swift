import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

/// A random history in which chunks are shrunk and doubled all the time. Nothing in it changes the content of files, or ends them
/// otherwise, so that more can be said of every moment than of any history.
struct StragglerHistory {
    /// Something that must not be.
    struct Failure: Error, CustomStringConvertible {
        let seed: UInt64
        let broken: [String]

        var description: String { "seed \(seed): \(broken)" }
    }

    /// How often the rare happened.
    struct Seen {
        var shrunk = 0
        var doubled = 0
        var won = 0
        var tookOver = 0

        var isComplete: Bool { shrunk > 0 && doubled > 0 && won > 0 && tookOver > 0 }
    }

    /// Everything may be fetched twice, or nothing would be: a percentage of a few hundred bytes is less than a chunk.
    static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.wastedPart = 1
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

    /// Makes so many steps with everything checked after each, and lets all files be finished.
    mutating func run(steps: Int = 60) async throws {
        // So few chunks that all of them are leased before long.
        try await fixture.makeGroup("g", Wanted.many(2, "f", size: Self.size), isSealed: true)
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
        case 0..<8:
            let room = Int32.random(in: 2...6, using: &random)
            workers[index].leases += try await workers[index].worker.claim(room)
        case 8..<16:
            try await fixture.passStraggling()
            try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
            let help = try await workers[index].worker.help(Int32.random(in: 1...4, using: &random))
            workers[index].leases += help.doubles
            seen.doubled += help.doubles.count
        case 16:
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["f1", "f2"])
        case 17..<19:
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            try await fixture.passBackoffs()
        case 19: try await replace(index)
        case 21..<28:
            // What is rare otherwise: somebody who fetches what another one is fetching too gets on with it.
            guard let (place, lease) = try await doubles().first else { return }
            let worker = workers[place].worker
            if Bool.random(using: &random) {
                seen.won += try await fixture.store.report(
                    done: [.init(session: worker.session, lease: lease.name, crc: 7)])
            } else {
                let offset = Int64.random(in: lease.resume.offset...(lease.end ?? .max), using: &random)
                try await worker.progress(lease, to: offset)
            }
        case 28..<32:
            guard let (place, _) = try await doubles().first else { return }
            try await replace((place + 1) % workers.count)
        case 20:
            // It holds what it knows of, and has let go of the rest.
            let worker = workers[index].worker
            try await workers[index].worker.sync(
                settled: worker.sequence, held: workers[index].leases.map(\.name))
        default: try await report(index)
        }
    }

    /// One of a worker's leases, most of the time a newer one: what is over is reported too now and then.
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
        case 5..<7:
            seen.won += try await fixture.store.report(
                done: [.init(session: worker.session, lease: lease.name, crc: 7)])
        case 7..<9:
            if try await worker.shrink(lease, to: offset) == .agreed { seen.shrunk += 1 }
        default:
            if Bool.random(using: &random) {
                try await worker.release(lease, at: offset)
            } else {
                try await worker.fail(lease, .storageFull, at: offset)
            }
        }
    }

    /// A worker dies or leaves, and is started again.
    private mutating func replace(_ index: Int) async throws {
        let before = try await doubles().map(\.lease.name.chunk.rawValue)
        if Bool.random(using: &random) {
            try await fixture.expire(workers[index].worker.session)
        } else {
            try await fixture.store.closeSession(workers[index].worker.session)
        }
        seen.tookOver += Int(
            try await fixture.value(
                "SELECT count(*) FROM leases WHERE kind = 'fetch' AND chunk_id = ANY (\(before))", as: Int64.self))
        let name = workers[index].name
        workers[index] = (worker: try await fixture.makeWorker(name), name: name, leases: [])
    }

    /// The doubles that are held now, and by whom.
    private func doubles() async throws -> [(place: Int, lease: GrantedLease)] {
        let chunks: [Int64] = try await fixture.values(
            "SELECT chunk_id FROM leases WHERE kind = 'double' ORDER BY chunk_id")
        return workers.enumerated().flatMap { place, entry in
            entry.leases.filter { chunks.contains($0.name.chunk.rawValue) }.map { (place: place, lease: $0) }
        }
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
