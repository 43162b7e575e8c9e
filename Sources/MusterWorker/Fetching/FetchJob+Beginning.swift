import MusterAPI
import MusterCore
import MusterCurl

extension FetchJob {
    /// The state before the first request.
    enum Beginning: Sendable {
        /// The work can begin, behind the bytes that a predecessor left.
        case ready(FetchPlan, RequestSettings, PartFile, DurablePrefix)
        /// There is nothing to ask for, or asking is not allowed.
        case over(JobEnding)
    }

    /// The result of opening the part.
    private enum Opening: Sendable {
        case opened(PartFile, DurablePrefix)
        /// Something stands at the path, and nothing was opened.
        case met(FileStatus)
    }

    /// Resolves what the options refer to, looks at what stands at the path, and opens the part.
    func begin() async throws(StorageError) -> Beginning {
        let first = context.conduct.first(of: origin, isToldToWait: lease.looks == .atOnce)
        var plan = FetchPlan(lease, source: source, from: first, isSilent: context.conduct.isSilent(origin))
        if lease.looks == .atOnce, first == .whole { plan.leftRungs = [.chunks, .stream] }
        plan.manner = context.conduct.manner(of: origin)
        if let ending = try await placedBefore(plan) { return .over(ending) }
        let settings: RequestSettings
        switch try await checkedSettings() {
        case .usable(let known): settings = known
        case .over(let ending): return .over(ending)
        }
        // A process that was suspended for an hour may arrive here with a lease that it lost meanwhile (F2).
        guard await context.gate.opened(unless: { control.wish != .work }) else { return .over(stoppedBeforeBeginning) }
        var opening = try await open(plan, looking: looksForFile)
        if case .met(let standing) = opening {
            // Under every rule, something that is no regular file is neither taken for the file nor replaced.
            guard standing.kind == .file else {
                return .over(taken(by: "something else", "it is \(standing.kind.name)"))
            }
            if lease.policy?.ifExists == .fail {
                // Without a size and a digest nothing is taken, and nothing is marked.
                switch try await examine(size: nil, [], lastModified: nil) {
                case .absent: break
                case .overtaken(let reason): return .over(overtaken(reason))
                case .matches, .differs:
                    return .over(
                        refused(
                            .storage, "a file stands at \(lease.path), and the group takes none that was there before"))
                case .stopped: return .over(stoppedBeforeBeginning)
                }
            } else if !plan.digests.given.isEmpty {
                switch try await examine(size: lease.expectedSize, plan.digests.given, lastModified: nil) {
                case .absent: break
                case .overtaken(let reason): return .over(overtaken(reason))
                case .matches(let size, let digests): return .over(.done(nil, nil, found(size, digests)))
                case .differs(let reason): return .over(taken(by: "a different file", reason))
                case .stopped: return .over(stoppedBeforeBeginning)
                }
            } else {
                plan.standing = StandingFile(size: standing.size, modificationTime: standing.modified)
            }
            opening = try await open(plan, looking: false)
        }
        guard case .opened(let part, let prefix) = opening else {
            throw .unavailable(.init("the part was not opened"))
        }
        return .ready(plan, settings, part, prefix)
    }

    /// Why the proxy may not be asked for a URL, judged by the addresses that its host name has on this machine; `nil`
    /// when it may.
    func refusal(byProxyOf url: String) async -> String? {
        guard context.sources.mustResolve(url) else { return context.sources.refusal(byProxyOf: url) }
        do {
            return try await station.pool.run { [sources = context.sources] () throws(StorageError) in
                sources.refusal(byResolving: url)
            }
        } catch {
            return "the host can't be looked up: \(error)"
        }
    }

    var stoppedBeforeBeginning: JobEnding { control.wish == .abort ? .aborted : .released(nil, nil) }

    func refused(_ kind: FailureKind, _ detail: String) -> JobEnding {
        .failed(Report.Failure(kind: kind, detail: detail, source: source.ordinal), nil, nil)
    }

    // MARK: - The body

    /// Files of more bytes than this are begun only if there is room for all of them. Smaller files are not checked.
    private static let checkedBytes: Int64 = 1 << 20

    /// A body was accepted and its first byte is about to come. Returns whether there is room for it. Called on the loop's thread.
    func accepted(
        _ plan: FetchPlan, _ writer: ChunkWriter, _ request: TransferRequest, _ visit: OriginConduct.Visit
    ) -> Bool {
        if let size = plan.known.size, size > Self.checkedBytes {
            guard writer.hasRoom(for: size) else { return false }
        }
        // Before the jobs are woken that wait for an answer.
        noteWitness(request, plan, isOver: false)
        noteSilentLimit(plan, visit)
        context.conduct.enter(origin, visit)
        if let part { context.conduct.enter(part) }
        // Before the answer is reported, which may lead to a request to shrink the chunk.
        if plan.isDivisible, let end = plan.end { control.bound.divide(at: end) }
        if plan.isWorthTellingAtOnce {
            writer.share()
            context.tell(lease.name, .progress(nil, plan.learnedSoFar))
        } else if let learned = plan.learnedSoFar {
            context.checkpointer.note(learned, of: lease.name)
        }
        if plan.isSettled { context.conduct.served(plan.ladder.rung, by: origin) }
        rememberLeftRungs(plan)
        let algorithms = plan.digestsOnTheWay(from: writer.offset)
        if !algorithms.isEmpty { writer.hash(algorithms, on: station.hashing) }
        return true
    }

    /// Counts the bytes that come. Skipped bytes of a body are no progress of the lease, so an empty progress report
    /// shows that the lease is alive.
    func noting(kept: Int64) -> @Sendable (Int) -> Void {
        let pulse = kept > 0 ? Pulse() : nil
        return { [context, lease] count in
            context.received(count)
            if pulse?.isDue() == true { context.tell(lease.name, .progress(nil, nil)) }
        }
    }

    /// Notes for the origin on which rungs the source was not served, once the source is served on another rung. A source that is refused on every rung says
    /// nothing about any of them.
    func rememberLeftRungs(_ plan: FetchPlan) {
        guard !plan.leftRungs.isEmpty, let address else { return }
        for rung in plan.leftRungs { context.conduct.contradicted(rung, by: address) }
    }

    // MARK: - The part

    /// Deletes a part that was neither put in place nor shared: nothing of it is durable, and no other session knows of it. Returns whether it was such a
    /// part.
    @discardableResult
    func drop(_ part: PartFile) async -> Bool {
        guard part.isOwn else { return false }
        // If the pool has no thread for this, the part is removed together with the session.
        return (try? await station.pool.run { part.drop() }) ?? true
    }

    /// How long an origin may be silent on a connection that was used before, unless its last answer took long. On a new connection, the usual first-byte
    /// timeout applies.
    private static let keptPatience: Duration = .seconds(10)

    /// The request for a question, with what the worker knows of its origin.
    func request(
        _ question: FetchQuestion,
        _ plan: FetchPlan,
        _ settings: RequestSettings,
        _ redirects: ProxiedRedirects,
        _ budgets: [ByteBudget] = []
    ) -> TransferRequest {
        var request = plan.request(
            question,
            settings,
            fellBack: context.protocols.fellBack(origin),
            refusesHTTP1: context.protocols.refusesHTTP1(origin),
            isPaced: budgets.contains { $0.bytesPerSecond != nil }
        )
        request.addressAllowed = { [sources = context.sources] in sources.allows($0) }
        if settings.isProxied { request.redirectAllowed = { redirects.allows($0) } }
        if !plan.manner.isAlone, !context.conduct.lingers(origin), context.conduct.doubtsKept(of: origin) {
            request.keptFirstByteTimeout = min(request.firstByteTimeout, Self.keptPatience)
        }
        if plan.isUntouched, plan.turns == .taken(0), context.witnesses.isSilentAtLimit(origin) {
            request.firstByteTimeout = request.firstByteTimeout / FetchPlan.shortPatience
        }
        request.budgets = budgets
        request.authentication = context.conduct.authentication(at: origin)
        return request
    }

    /// How the source is asked, or why it may not be asked.
    enum CheckedSettings: Sendable {
        case usable(RequestSettings)
        case over(JobEnding)
    }

    func checkedSettings() async throws(StorageError) -> CheckedSettings {
        switch try await settings() {
        case .failure(let refusal): return .over(refused(.authentication, refusal.description))
        case .success(let settings):
            guard settings.isProxied, let reason = await refusal(byProxyOf: source.url) else {
                return .usable(settings)
            }
            return .over(refused(.refusedAddress, reason))
        }
    }

    private func settings() async throws(StorageError) -> Result<RequestSettings, SecretRefusal> {
        let make = { @Sendable [lease, source, context] () -> Result<RequestSettings, SecretRefusal> in
            Result { () throws(SecretRefusal) in
                try RequestSettings(
                    url: source.url,
                    headers: source.headers,
                    options: lease.options,
                    version: context.configuration.version,
                    caFile: context.configuration.caFile,
                    secrets: context.secrets
                )
            }
        }
        guard RequestSettings.readsFiles(lease.options) else { return make() }
        return try await station.pool.run { () throws(StorageError) in make() }
    }

    /// Opens the part and checks what a predecessor left durable (F1, F19): on another host, or after a crash of this one,
    /// it may not be what the coordinator was told.
    private func open(_ plan: FetchPlan, looking: Bool) async throws(StorageError) -> Opening {
        let directory = equipment.directory
        return try await station.pool.run { [lease, control, isFirst] () throws(StorageError) -> Opening in
            if looking, let standing = try directory.standingFile(at: lease.path) { return .met(standing) }
            let part = try directory.part(task: lease.task, version: lease.version, isAlone: isFirst)
            if lease.planned, let size = lease.representation.size, size > SinkStation.batchedBytes {
                try part.reserve(size)
            }
            let fresh = DurablePrefix(offset: lease.start, crc: CRC32C.empty)
            guard plan.mayResume, let range = ByteRange(start: lease.start, end: lease.resume.offset) else {
                return .opened(part, fresh)
            }
            do throws(StorageError) {
                let crc = try part.checksum(of: range) { control.wish == .work }
                return .opened(part, crc == lease.resume.crc ? lease.resume : fresh)
            } catch {
                // Shorter than it should be: the bytes are fetched again, into the same part.
                guard case .partLost = error, !part.isUseless else { throw error }
                return .opened(part, fresh)
            }
        }
    }
}

extension SinkDirectory {
    /// What stands at a path below the sink, without following links; `nil` for nothing, and for what can't be a path. Blocks.
    fileprivate func standingFile(at path: String) throws(StorageError) -> FileStatus? {
        guard let path = try? DestinationPath(validating: path), !root.isFree(path.string) else { return nil }
        var walk = SinkWalk(self, isLooking: true)
        do throws(StorageError) {
            guard let place = try walk.place(of: path, making: false) else { return nil }
            do throws(SystemError) {
                return try place.directory.status(of: place.name)
            } catch {
                throw error.atDestination("looking at \(path)")
            }
        } catch {
            throw judged(error)
        }
    }
}
