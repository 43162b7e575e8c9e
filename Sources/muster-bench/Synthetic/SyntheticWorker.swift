import MusterAPI
import MusterCore
import Synchronization

/// A worker that fetches nothing: it leases chunks over HTTP, and reports each as a finished file.
struct SyntheticWorker: Sendable {
    /// What several synthetic workers count together.
    final class Tally: Sendable {
        private struct State {
            var finished = 0
            var endedAt: ContinuousClock.Instant?
            var syncSeconds: [Double] = []
        }

        /// How many files there are to finish.
        let goal: Int
        private let state = Mutex(State())

        /// A tally with a goal.
        init(goal: Int) {
            self.goal = goal
        }

        /// How many files were finished and recorded as such.
        var finished: Int { state.withLock { $0.finished } }
        /// The seconds of each sync that brought leases.
        var syncSeconds: [Double] { state.withLock { $0.syncSeconds } }

        /// When the last file was finished; `nil` before that. A worker that waits for work ends later.
        var endedAt: ContinuousClock.Instant? { state.withLock { $0.endedAt } }

        func count(finished: Int) {
            state.withLock { state in
                state.finished += finished
                if state.finished >= goal, state.endedAt == nil { state.endedAt = .now }
            }
        }

        func count(sync seconds: Double) { state.withLock { $0.syncSeconds.append(seconds) } }
    }

    /// The client of the coordinator.
    let client: MusterClient
    /// Its name.
    let name: String
    /// How many leases it asks for at a time.
    var room = 256
    /// Whether it claims and reports in separate syncs, so that the time of a claim includes nothing else.
    var isAlternating = false
    /// Called for every lease as soon as it is there.
    var onLease: @Sendable (LeaseDocument) -> Void = { _ in }

    /// Works until the goal of the tally is reached.
    func run(_ tally: Tally) async throws {
        let session = try await client.openSession(
            SessionRequest(name: name, sinks: ["default"], slots: 64, version: "bench")
        ).id
        var reports: [Report] = []
        var sequence: Int64 = 0
        while tally.finished < tally.goal {
            // When another worker has failed, its tasks are never finished: then cancellation ends the loop.
            try Task.checkCancellation()
            sequence += 1
            let claims = !isAlternating || reports.isEmpty
            let begin = ContinuousClock.now
            let answer = try await client.sync(
                session,
                SyncRequest(
                    sequence: sequence, settled: sequence - 1, reports: reports, held: reports.map(\.lease),
                    room: claims ? room : 0, waitMilliseconds: reports.isEmpty ? 200 : 0,
                    sinks: [SinkStatus(name: "default")]))
            for lease in answer.leases { onLease(lease) }
            if !answer.leases.isEmpty { tally.count(sync: (ContinuousClock.now - begin).seconds) }
            if let refused = answer.refused.first { throw BenchFailure("a report was refused: \(refused.reason)") }
            let deferred = Set(answer.deferred ?? [])
            tally.count(finished: reports.count { $0.finished != nil && !deferred.contains($0.lease) })
            reports = try reports.filter { deferred.contains($0.lease) } + answer.leases.map(Self.report)
        }
        try await client.closeSession(session)
    }

    /// The report that a file was fetched within its one lease and is in place, or that the remains of a file are deleted.
    static func report(_ lease: LeaseDocument) throws -> Report {
        if lease.kind == .purge { return Report(lease: lease.name, kind: .done) }
        guard lease.kind == .fetch, let size = lease.end else {
            throw BenchFailure("a lease of kind \(lease.kind.rawValue) is none of a small file")
        }
        return Report(
            lease: lease.name, kind: .done, durable: DurablePrefix(offset: size, crc: 0),
            finished: .init(size: size, digests: [:]))
    }

    /// Runs several synthetic workers until everything is done.
    static func run(
        _ count: Int, by client: MusterClient, _ tally: Tally,
        onLease: @escaping @Sendable (LeaseDocument) -> Void = { _ in }
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                let worker = SyntheticWorker(client: client, name: "synthetic-\(index)", onLease: onLease)
                group.addTask { try await worker.run(tally) }
            }
            try await group.waitForAll()
        }
    }
}
