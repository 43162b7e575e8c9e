import MusterCore
import MusterPostgres
import MusterStore

/// Groups that always have something to fetch, and a worker that fetches it; counts the bytes of each group.
struct Sharing {
    /// With chunks so large that files of several sizes are one chunk each.
    static var policy: Store.Policy {
        var policy = Store.Policy()
        policy.firstChunk = 8 << 20
        policy.connectionsPerOrigin = 1_000
        return policy
    }

    private struct Shape {
        let file: Int64
        let isKnown: Bool
        let origin: String
        var files = 0
    }

    let fixture: StoreFixture
    /// How many leases the worker holds at once.
    let room: Int32
    /// Groups in which every file's first lease is released after a quarter of its bytes.
    var breaks: Set<String> = []
    private var shapes: [String: Shape] = [:]
    private var worker: TestWorker?
    private var running: [GrantedLease] = []
    private(set) var bytes: [String: Int64] = [:]

    init(fixture: StoreFixture, room: Int32) {
        self.fixture = fixture
        self.room = room
    }

    /// Adds a group of files of one size; if the size isn't known before, the first response states it.
    mutating func add(
        _ group: String, file: Int64, weight: Int32 = 1, isKnown: Bool = true, origin: String = "a"
    ) async throws {
        shapes[group] = Shape(file: file, isKnown: isKnown, origin: origin)
        try await fixture.makeGroup(group, weight: weight)
    }

    /// Fetches until this call has brought `limit` bytes. Leases end in the order in which they were granted; as many run at once
    /// as there is room for.
    mutating func run(untilBytes limit: Int64) async throws {
        bytes = [:]
        var worker = if let worker { worker } else { try await fixture.makeWorker() }
        defer { self.worker = worker }
        while bytes.values.reduce(0, +) < limit {
            try await fill()
            let leases = try await worker.claim(room - Int32(running.count))
            guard !leases.isEmpty || !running.isEmpty else { return }
            running += leases
            // At least half of the leases end in each round, so that few rounds are needed.
            let ended = running.prefix(max(1, running.count / 2))
            running.removeFirst(ended.count)
            try await end(Array(ended), by: worker)
        }
    }

    /// The group's part of all bytes.
    func part(of group: String, among groups: [String]? = nil) -> Double {
        let all = bytes.filter { groups?.contains($0.key) ?? true }.values.reduce(0, +)
        return Double(bytes[group] ?? 0) / Double(max(1, all))
    }

    private mutating func end(_ leases: [GrantedLease], by worker: TestWorker) async throws {
        var finished: [LeaseReport.Finished] = []
        var returned: [LeaseReport.Progress] = []
        for lease in leases {
            guard let shape = shapes[lease.group] else { continue }
            let left = shape.file - lease.resume.offset
            if breaks.contains(lease.group), lease.resume.offset == 0 {
                let offset = lease.resume.offset + left / 4
                returned.append(
                    .init(session: worker.session, lease: lease.name, durable: DurablePrefix(offset: offset, crc: 7)))
                bytes[lease.group, default: 0] += left / 4
            } else {
                finished.append(
                    .init(
                        session: worker.session, lease: lease.name, size: shape.file, digests: "{}",
                        representation: nil, effectiveURL: nil))
                bytes[lease.group, default: 0] += left
            }
        }
        try await fixture.store.report(finished: finished)
        if !returned.isEmpty { try await fixture.store.report(released: returned, session: worker.session) }
    }

    /// Applies a verb to a group: pausing ends its leases.
    mutating func apply(_ verb: TaskVerb, to group: String) async throws {
        _ = try await fixture.store.apply(verb, to: group, keys: nil)
        if verb == .pause { running.removeAll { $0.group == group } }
    }

    /// Keeps more tasks in every group than could be leased next.
    private mutating func fill() async throws {
        for row in try await fixture.groups() where row.desired == "run" && row.queued < Int64(room) {
            let group = row.name
            guard let shape = shapes[group] else { continue }
            let wanted = (1...(4 * Int(room))).map {
                Wanted(
                    "\(group)/\(shape.files + $0)", size: shape.isKnown ? shape.file : nil, origins: [shape.origin])
            }
            _ = try await fixture.add(wanted, to: group)
            shapes[group]?.files += wanted.count
        }
    }
}
