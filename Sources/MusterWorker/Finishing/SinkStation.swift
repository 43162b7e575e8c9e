import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// A sink with the threads and batches that serve it. A sink that hangs holds up nothing but itself.
final class SinkStation: Sendable {
    /// What a session works with in a sink once its directory could be opened.
    struct Equipment: Sendable {
        let directory: SinkDirectory
        let sync: DurableSync
        let finalizer: Finalizer
        let existing: ExistingFile
        let placements: Batcher<FinalizeOrder, Result<FinalizeOutcome, StorageError>>
        let purges: Batcher<PurgeOrder, Result<RemovedFile?, StorageError>>
    }

    /// Files up to this many bytes are put in place in batches.
    static let batchedBytes: Int64 = 8 << 20

    /// The sink's name.
    let name: String
    /// For opening, reading back and syncing.
    let pool: BlockingPool
    /// For hashing bytes that are in memory or were just written, beside the threads that read and write them.
    let hashing: BlockingPool
    private let finalizing: BlockingPool
    private let path: String
    private let identity: SinkConfiguration.Identity
    private let directories: Int
    private let system: any FileSystem
    private let gate: TrustGate
    private let state = Mutex(State())

    private struct State {
        /// The session that the sink is used for; `nil` before the first.
        var session: SinkSession?
        /// The mark of the sink's directory as the coordinator knows it; `nil` if it knows none.
        var mark: String?
        /// The equipment, once the session has begun in the sink.
        var equipment: Equipment?
        /// The session that was opened without the sink, in place of one that the sink is used for.
        var absence: Absence?
    }

    /// A session that was opened without the sink, and why.
    struct Absence: Hashable, Sendable {
        let session: SinkSession
        let trouble: SinkTrouble
    }

    private let found = Mutex<String?>(nil)
    private let seen = Mutex<SinkTrouble?>(nil)
    /// The mark that a new directory would get.
    private let fresh = SinkDirectory.freshMark()

    /// The mark in the sink's directory; `nil` as long as it could not be read.
    var mark: String? { found.withLock { $0 } }

    /// Whether a session can begin here only once the coordinator has been told which directory the sink is.
    var needsMark: Bool { identity != .holdsDatabase }

    /// The trouble that the last check has found; `nil` if there was none.
    var trouble: SinkTrouble? { seen.withLock { $0 } }

    /// How long a new session waits for a sink before the sink counts as in trouble.
    private static let patience: Duration = .seconds(2)

    /// A call that takes this long hangs: in a working sink, even a sync that serves many requests takes less.
    private static let hangTime: Duration = .seconds(15)
    /// The trouble that is reported for a sink in which a call hangs.
    static let hang = SinkTrouble(
        kind: .storage, detail: "a call to its file system has not returned for \(hangTime.components.seconds) seconds")

    /// Start of the oldest call of the sink if it hangs, in nanoseconds of the monotonic clock; `nil` if no call hangs.
    var hangsSince: Int64? {
        let begun = [pool.busySince, finalizing.busySince].compactMap { $0 }.min()
        return begun.flatMap { MonotonicClock.now() - $0 >= Self.hangTime.wholeNanoseconds ? $0 : nil }
    }

    /// A station for a sink that was not probed yet. Throws when the system has no threads for it.
    ///
    /// - Parameters:
    ///   - directories: how many directories a batch may hold open.
    ///   - system: what makes the calls.
    ///   - carrier: what the threads are.
    init(
        _ configuration: SinkConfiguration, gate: TrustGate,
        directories: Int = DescriptorLimit.directories(of: DescriptorLimit.current),
        on system: any FileSystem = Kernel(),
        carrier: BlockingPool.Carrier = .threads
    ) throws(BlockingPool.Refusal) {
        name = configuration.name
        path = configuration.path
        identity = configuration.identity
        self.gate = gate
        self.directories = directories
        self.system = system
        pool = try BlockingPool(threads: 4, carrier: carrier)
        // Long verifications must not hold up the syncs of running transfers.
        finalizing = try BlockingPool(threads: 2, carrier: carrier)
        hashing = try BlockingPool(threads: CoreBudget.shared.helpers, carrier: carrier)
    }

    /// The equipment of the current session; `nil` until that has begun here. A job takes it once, when it is created:
    /// the equipment of a later session must never serve a lease of an earlier one (adr/0017).
    var equipment: Equipment? { state.withLock { $0.equipment } }

    /// The session that was opened without the sink; `nil` if there is none.
    var absence: Absence? { state.withLock { $0.absence } }

    /// Stops serving the session that is over. Until there is another, probes only look at the sink, and read its mark anew.
    func leave() { state.withLock { $0 = State() } }

    /// Keeps the sink out of a session that was opened without it. Probes do as after `leave`.
    func stayOut(of session: SinkSession, _ trouble: SinkTrouble) {
        state.withLock { $0 = State(absence: Absence(session: session, trouble: trouble)) }
    }

    /// Notes why the sink is still kept out of a session, unless there is another session by now.
    func renewAbsence(from session: SinkSession, _ trouble: SinkTrouble) {
        state.withLock { state in
            guard state.absence?.session == session else { return }
            state.absence = Absence(session: session, trouble: trouble)
        }
    }

    /// Begins a session here that was opened without the sink and has it now. Otherwise like `begin`.
    func join(
        _ session: SinkSession,
        mark: String?,
        late: @escaping @Sendable (ProbeResult) -> Void = { _ in }
    ) async -> ProbeResult {
        let isCurrent = state.withLock { state in
            guard state.absence?.session == session else { return false }
            state = State(session: session, mark: mark)
            return true
        }
        guard isCurrent else { return Self.superseded }
        return await check(session, late)
    }

    /// Makes the sink serve a new session, and begins the session here before any work is leased to it. A sink that does
    /// not answer soon counts as in trouble and delays nothing else.
    ///
    /// - Parameters:
    ///   - mark: the mark of the sink's directory; the session begins in no other directory (adr/0034). `nil` only where
    ///     the sink needs none (`needsMark`).
    ///   - late: called with a result that comes too late, unless there is another session by then; the sink need not
    ///     wait for the next probe.
    func begin(
        _ session: SinkSession,
        mark: String?,
        late: @escaping @Sendable (ProbeResult) -> Void = { _ in }
    ) async -> ProbeResult {
        state.withLock { $0 = State(session: session, mark: mark) }
        return await check(session, late)
    }

    /// Looks at the sink before the worker's first session. A sink that does not answer soon counts as in trouble: the other sinks, and what the worker
    /// has to say, do not wait for it (I19).
    func look() async -> ProbeResult { await check(nil) }

    /// The result for a session that is not the newest.
    private static let superseded = ProbeResult.trouble(
        SinkTrouble(kind: .storage, detail: "a new session has yet to begin here"))

    /// Checks the sink, which serves this session or none, and waits for the result for as long as `patience`.
    private func check(
        _ session: SinkSession?, _ late: @escaping @Sendable (ProbeResult) -> Void = { _ in }
    ) async -> ProbeResult {
        let (results, answer) = AsyncStream.makeStream(of: ProbeResult.self)
        let refusal = pool.submit { [self] in
            let result = probeNow()
            if case .terminated = answer.yield(result), state.withLock({ $0.session }) == session { late(result) }
            answer.finish()
        }
        let trouble = ProbeResult.trouble(
            SinkTrouble(kind: .storage, detail: refusal.map { "no thread for it: \($0)" } ?? "it has not answered yet"))
        guard refusal == nil else { return trouble }
        let found: ProbeResult? = await withTaskGroup(of: ProbeResult?.self) { group in
            group.addTask {
                for await result in results { return result }
                return nil
            }
            group.addTask {
                try? await MonotonicClock.sleep(for: Self.patience)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        // As in `probe`: another session may have been set meanwhile, or none.
        guard state.withLock({ $0.session }) == session else { return Self.superseded }
        return found ?? trouble
    }

    /// Checks whether the sink can be used, and begins the session there if that has not succeeded yet. Returns the sink's state.
    func probe() async -> ProbeResult {
        let session = state.withLock { $0.session }
        do {
            let result = try await pool.run { [self] in probeNow() }
            // The result says nothing about a session that was set meanwhile: that one may not have begun here.
            guard state.withLock({ $0.session }) == session else { return Self.superseded }
            return result
        } catch {
            return .trouble(SinkTrouble(kind: .storage, detail: "no thread for it: \(error)"))
        }
    }

    private func probeNow() -> ProbeResult {
        let result = check()
        seen.withLock { $0 = if case .trouble(let trouble) = result { trouble } else { nil } }
        return result
    }

    private func check() -> ProbeResult {
        // Other calls may still return while one hangs, so a probe would prove nothing.
        if hangsSince != nil { return .trouble(Self.hang) }
        do throws(StorageError) {
            let now = state.withLock { $0 }
            guard let session = now.session else {
                let free = try SinkDirectory.look(at: path, on: system)
                try findMark()
                return .well(freeBytes: free)
            }
            if let known = now.equipment {
                try known.directory.probe()
                return .well(freeBytes: try? known.directory.freeBytes())
            }
            guard now.mark != nil || !needsMark else { throw SinkDirectory.damaged(name, path, nil) }
            if let wanted = now.mark, identity == .replaced, wanted == fresh,
                try SinkDirectory.knownMark(at: path, on: system) == nil
            {
                // The coordinator has accepted the directory as the sink's.
                try SinkDirectory.write(wanted, at: path, on: system)
            }
            let directory = try SinkDirectory(
                name: name, path: path, session: session, mark: now.mark,
                kept: identity.keptBytes, directories: directories, on: system)
            open(directory)
            let free = try? directory.freeBytes()
            // The session has begun and can delete files. If space is short, a probe shows whether it can also write.
            if let free, free < SinkDirectory.probeBytes { try directory.probe() }
            return .well(freeBytes: free)
        } catch {
            if let now = equipment, let mark, now.directory.lacksSession(mark: mark) { return .sessionEnded }
            return .trouble(SinkTrouble(error))
        }
    }

    private func findMark() throws(StorageError) {
        let mark: String? =
            switch identity {
            case .holdsDatabase: nil
            case .remembered: try SinkDirectory.mark(at: path, on: system)
            // Nothing is written before the coordinator agrees.
            case .replaced: try SinkDirectory.knownMark(at: path, on: system) ?? fresh
            }
        found.withLock { $0 = mark }
    }

    /// Ends the session here, after its last job has stopped. Returns `true` if no other session has to revoke it.
    func end() async -> Bool {
        guard let equipment else { return true }
        do {
            try await pool.run { () throws(StorageError) in try equipment.directory.end() }
            return true
        } catch {
            return false
        }
    }

    private func open(_ directory: SinkDirectory) {
        let sync = DurableSync(sink: directory, pool: pool)
        let finalizer = Finalizer(sink: directory, pool: finalizing, helpers: hashing, sync: sync)
        let existing = ExistingFile(sink: directory, pool: finalizing, helpers: hashing)
        let gate = gate
        let pool = pool
        let new = Equipment(
            directory: directory,
            sync: sync,
            finalizer: finalizer,
            existing: existing,
            placements: Batcher(lanes: 2, limit: 256) { orders in
                await finalizer.finalize(orders, watch: FinalizeWatch(mayContinue: { gate.isOpen }))
            },
            purges: Batcher(lanes: 1, limit: 1_024) { orders in
                do throws(StorageError) {
                    return try await pool.run { () throws(StorageError) in try directory.purge(orders) }
                } catch {
                    return orders.map { _ in .failure(error) }
                }
            }
        )
        state.withLock { state in
            guard state.session == directory.session, state.equipment == nil else { return }
            state.equipment = new
        }
    }

    /// Ends the threads once they have done all submitted work.
    func shutdown() async {
        await pool.shutdown()
        await finalizing.shutdown()
        await hashing.shutdown()
    }
}

extension SinkTrouble {
    /// What a storage failure means for the sink.
    init(_ error: StorageError) {
        self.init(kind: error.failureKind, detail: error.description)
    }
}
