import Logging
import MusterAPI
import MusterCore

/// The work on one lease, whatever its kind.
struct LeaseJob: Sendable {
    let lease: LeaseDocument
    let context: JobContext
    let control: LeaseControl
    private let found: SinkStation.Equipment?

    /// A job of the current session. Create it when its lease is granted, not later: it uses the equipment that the
    /// session has at that moment.
    init(lease: LeaseDocument, context: JobContext, control: LeaseControl) {
        self.lease = lease
        self.context = context
        self.control = control
        found = context.station(lease.sink)?.equipment
    }

    /// Does the work and says how it ended.
    func run() async -> JobEnding {
        guard let station = context.station(lease.sink) else {
            return .failed(Report.Failure(kind: .storage, detail: "this worker has no such sink"), nil, nil)
        }
        guard let equipment = found else {
            return JobEnding(StorageError.unavailable(.init("the session has not begun in the sink")))
        }
        do {
            try await revoke(equipment, station)
        } catch {
            return JobEnding(error)
        }
        switch lease.kind {
        case .fetch, .trial:
            guard let source = lease.source else {
                return .failed(Report.Failure(kind: .notFound, detail: "no source is named"), nil, nil)
            }
            let job = FetchJob(
                lease: lease,
                source: source,
                address: try? SourceURL(validating: source.url),
                equipment: equipment,
                station: station,
                context: context,
                control: control
            )
            return await lease.kind == .trial ? job.tryAgain() : job.run()
        case .finalize: return await finalize(equipment)
        case .purge: return await purge(equipment)
        case .resolve: return await ResolveJob(lease: lease, station: station, context: context, control: control).run()
        }
    }

    /// Revokes sessions that are over before anything is done under this lease: they may still be about to put a file in
    /// place or to delete one (adr/0017).
    private func revoke(_ equipment: SinkStation.Equipment, _ station: SinkStation) async throws(StorageError) {
        guard let sessions = lease.revoke, !sessions.isEmpty else { return }
        let directory = equipment.directory
        try await station.pool.run { () throws(StorageError) in try directory.revoke(sessions) }
        context.revoked(sessions.map { RevokedSession(sink: lease.sink, session: $0) })
    }

    private func finalize(_ equipment: SinkStation.Equipment) async -> JobEnding {
        let size = lease.representation.size ?? lease.chunks.map(\.range.end).max() ?? 0
        let digests = ExpectedDigests(given: lease.expectedDigests, stated: lease.representation.digests)
        let placing = Placing(lease: lease, equipment: equipment, context: context, control: control)
        let placed = await placing.place(
            size: size,
            chunks: lease.chunks,
            digests: digests.all,
            representation: lease.representation
        )
        switch placed {
        case .inPlace(let finished):
            let whole = DurablePrefix(offset: size, crc: CRC32C.whole(lease.chunks))
            return .done(whole, nil, finished)
        case .failed(let failure): return .failed(failure, nil, nil)
        case .storage(let error): return JobEnding(placing: error, isAborted: control.wish == .abort)
        case .stopped: return stopped
        }
    }

    private func purge(_ equipment: SinkStation.Equipment) async -> JobEnding {
        guard await context.gate.opened(unless: { control.wish != .work }) else { return stopped }
        // A purge lease with a path also asks to delete the file. It has a size if the file is known to exist.
        let owner = FileMark.Owner(installation: equipment.directory.session.installation, task: lease.task)
        let file = (try? DestinationPath(validating: lease.path)).map {
            PurgeOrder.File(path: $0, size: lease.representation.size, owner: owner)
        }
        let order = PurgeOrder(task: lease.task, version: lease.version, file: file)
        switch await equipment.purges.submit(order) {
        case .success(let removed)?:
            if removed == .changed {
                context.logger.notice(
                    "A file stays: it is not the one that was put in place",
                    metadata: .init([.sink: lease.sink, .path: lease.path]))
            }
            return .purged(removed)
        case .failure(let error)?:
            // A failure of the sink as a whole is reported for the sink.
            if !error.parksSink, !error.isPassing {
                context.logger.warning(
                    "A file can't be deleted; it is tried again",
                    metadata: .init([.sink: lease.sink, .path: lease.path, .reason: error.description]))
            }
            return JobEnding(placing: error, isAborted: control.wish == .abort)
        case nil: return .released(nil, nil)
        }
    }

    private var stopped: JobEnding {
        control.wish == .abort ? .aborted : .released(nil, nil)
    }
}
