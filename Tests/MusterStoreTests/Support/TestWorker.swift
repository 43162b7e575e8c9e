import MusterCore
import MusterPostgres
import MusterStore

/// A session and the number of syncs it has sent: a worker as the store sees it.
struct TestWorker: Sendable {
    let fixture: StoreFixture
    let session: SessionID
    private(set) var sequence: Int64 = 0

    init(fixture: StoreFixture, session: SessionID) {
        self.fixture = fixture
        self.session = session
    }

    var store: Store { fixture.store }

    /// Sends the next sync. By default it settles nothing, so the store repairs nothing.
    @discardableResult
    mutating func sync(
        settled: Int64 = 0, held: [LeaseName] = [], parked: [String] = [], isFull: Bool = false
    ) async throws -> RenewedSession? {
        sequence += 1
        let sinks = parked.map { #"{"name": "\#($0)", "parked": "\#(isFull ? "storageFull" : "storage")"}"# }
        return try await store.renew(
            SessionRenewal(
                session: session, sequence: sequence, sinkStatus: "[\(sinks.joined(separator: ","))]", receivedBytes: 0),
            settled: settled, held: held, timeToLive: .seconds(3600))
    }

    /// Syncs and asks for work.
    mutating func claim(
        _ room: Int32 = 1, ahead: Int32 = 0, spare: Bool = false, parked: [String] = [], isFull: Bool = false
    ) async throws -> [GrantedLease] {
        try await sync(parked: parked, isFull: isFull)
        return try await claimAgain(room, ahead: ahead, spare: spare)
    }

    /// Reports that the worker has stopped all writes except those of the leases it still holds, and releases the purges that waited for that.
    mutating func letGo(holding held: [GrantedLease] = []) async throws {
        try await sync(settled: sequence, held: held.map(\.name))
        _ = try await store.releasePurges()
    }

    /// Asks for work with the newest sync.
    func claimAgain(_ room: Int32 = 1, ahead: Int32 = 0, spare: Bool = false) async throws -> [GrantedLease] {
        try await store.claim([
            ClaimRequest(session: session, sequence: sequence, room: room, ahead: ahead, spare: spare)
        ])
    }

    /// Returns whether the session still holds the lease.
    @discardableResult
    func progress(_ lease: GrantedLease, to offset: Int64, crc: UInt32 = 7) async throws -> Bool {
        try await store.report(progress: [progressReport(lease, offset, crc)]).isEmpty
    }

    @discardableResult
    func learn(
        _ lease: GrantedLease, size: Int64?, isSplittable: Bool = true, etag: String? = "\"1\"",
        askedForAll: Bool = false
    ) async throws -> Bool {
        try await store.report(
            learned: .init(
                session: session, lease: lease.name, representation: Representation(size: size, etag: etag),
                rung: isSplittable ? lease.rung : .whole, effectiveURL: nil, suggestedName: nil,
                askedForAll: askedForAll, chunkSize: 100))
    }

    func done(_ lease: GrantedLease, at end: Int64? = nil, removed: RemovedFile? = nil) async throws {
        try await store.report(done: [.init(session: session, lease: lease.name, crc: 7, end: end, removed: removed)])
    }

    /// Answers a request to shrink the lease.
    @discardableResult
    func shrink(_ lease: GrantedLease, to end: Int64, speed: Int64? = nil) async throws -> ShrinkOutcome {
        try await store.report(shrunk: lease.name, end: end, speed: speed, session: session)
    }

    /// Syncs, and offers help with stragglers.
    mutating func help(_ room: Int32 = 1) async throws -> StragglerHelp {
        try await sync()
        return try await store.helpStragglers([ClaimRequest(session: session, sequence: sequence, room: room)])
    }

    func finish(_ lease: GrantedLease, size: Int64) async throws {
        try await store.report(finished: [
            .init(
                session: session, lease: lease.name, size: size, digests: "{}", representation: nil, effectiveURL: nil)
        ])
    }

    /// Reports whole files as finished, in one batch.
    func finishAll(_ leases: [GrantedLease]) async throws {
        try await store.report(
            finished: leases.map {
                .init(
                    session: session, lease: $0.name, size: $0.expectedSize ?? 1_000, digests: "{}",
                    representation: Representation(size: $0.expectedSize ?? 1_000, etag: "\"1\""), effectiveURL: nil,
                    crc: 9)
            })
    }

    func release(_ lease: GrantedLease, at offset: Int64? = nil) async throws {
        try await store.report(released: [progressReport(lease, offset ?? lease.start, 7)], session: session)
    }

    func fail(
        _ lease: GrantedLease, _ kind: FailureKind, at offset: Int64? = nil, source: Int32? = nil,
        retryAfter: Int64? = nil, status: Int32? = nil, isUnreached: Bool = false, isUnanswered: Bool = false,
        servedAtOnce: Int32 = 0, random: Double = 0.5, detail: String = "because"
    ) async throws {
        try await store.report(
            failed: [
                .init(
                    progress: progressReport(lease, offset ?? lease.start, 7), kind: kind, detail: detail,
                    source: source, retryAfter: retryAfter, status: status, isUnreached: isUnreached,
                    isUnanswered: isUnanswered, servedAtOnce: servedAtOnce, random: random)
            ])
    }

    /// Restarts the task on a rung; by default on the one below the lease's.
    func restart(_ lease: GrantedLease, on rung: Rung? = nil) async throws {
        try await store.report(
            restart: lease.name, on: rung ?? lease.rung.next ?? .whole, detail: "no ranges", session: session)
    }

    private func progressReport(_ lease: GrantedLease, _ offset: Int64, _ crc: UInt32) -> LeaseReport.Progress {
        .init(session: session, lease: lease.name, durable: DurablePrefix(offset: offset, crc: crc))
    }

    /// Works until nothing is left to lease: learns `size` of every new task, fetches, finalizes and purges.
    mutating func finishEverything(size: Int64 = 250) async throws {
        var wasIdle = false
        while true {
            try await fixture.passBackoffs()
            let leases = try await claim(64)
            if leases.isEmpty {
                // By now the worker has stopped everything that it was told to stop.
                try await sync(settled: sequence)
                let released = try await store.releasePurges()
                // Releasing purges may unblock tasks that wait for a path: look once more.
                if wasIdle, released == 0 { return }
                wasIdle = true
                continue
            }
            wasIdle = false
            for lease in leases {
                switch lease.kind {
                case .fetch:
                    // The origin states the expected size too.
                    let size = lease.expectedSize ?? size
                    if !lease.isPlanned {
                        try await learn(lease, size: size, isSplittable: lease.rung != .whole)
                    } else if lease.representation.size == nil {
                        // A stream that another worker began without learning its size.
                        try await finish(lease, size: size)
                    }
                    try await done(lease)
                case .finalize: try await finish(lease, size: lease.end ?? 0)
                case .purge: try await done(lease)
                case .resolve: try await resolve(lease)
                case .trial: try await servedAgain(lease)
                }
            }
        }
    }
}
