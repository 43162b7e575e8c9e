import MusterCore

@testable import MusterStore
@testable import MusterStoreModel

/// Reports on leases.
extension SimulatedDatabase.State {
    /// The lease that a report counts for, and its session; `nil` if the session that reports does not hold it (I1).
    private mutating func accept(
        _ name: LeaseName, by reporter: SessionID
    ) -> (lease: GrantedLease, session: SessionID)? {
        var (session, held) = (reporter, name)
        let newest = newest[name.chunk] ?? name.epoch
        if newest > name.epoch, let lease = granted[LeaseName(chunk: name.chunk, epoch: newest)],
            isHeld(lease.name, by: lease.session)
        {
            count("a stale report met a newer lease")
            if sabotage == .epochs { (session, held) = (lease.session, lease.name) }
        }
        guard let lease = granted[held], isHeld(held, by: session) else {
            count("a stale report was refused")
            return nil
        }
        if newest > name.epoch {
            complaints.append("I1: a report under epoch \(name.epoch) counts, though epoch \(newest) was granted")
        }
        return (lease, session)
    }

    /// Moves a durable offset; returns whether the session holds the lease.
    mutating func progress(_ report: LeaseReport.Progress) -> Bool {
        guard let (lease, session) = accept(report.lease, by: report.session) else { return false }
        remember(lease, by: session, report.durable)
        return model.progress(lease, by: session, to: report.durable.offset)
    }

    /// Remembers the checksum of a prefix that is longer than the known one.
    private mutating func remember(_ lease: GrantedLease, by session: SessionID, _ durable: DurablePrefix) {
        guard let found = model.find(lease, by: session), let key = chunk(lease.name, by: session),
            let task = model[found.place], durable.offset > task.chunks[found.index].durable,
            durable.offset <= task.chunks[found.index].last ?? .max
        else { return }
        checksums[key] = durable.crc
        check(.durable(lease.task, version: lease.version, offset: durable.offset, path: lease.path))
    }

    private mutating func check(_ claim: SimulatedDatabase.Claim) {
        if let problem = judge(claim) { complaints.append(problem) }
    }

    /// Applies the first answer to a task.
    mutating func learn(_ report: LeaseReport.Learned) -> Bool {
        guard let lease = granted[report.lease] else { return false }
        let representation = report.representation
        let wasPlanned = model.find(lease, by: report.session).flatMap { model[$0.place]?.isPlanned } ?? true
        let isHeld = model.learn(
            lease, by: report.session, size: representation.size, isSplittable: report.rung == .chunks,
            isStrong: representation.tellsVersions, chunkSize: model.policy.firstChunk)
        if isHeld, !wasPlanned { learned[lease.task] = (Int(lease.version), representation) }
        return isHeld
    }

    /// Completes a chunk or a purge.
    mutating func done(_ report: LeaseReport.Done) {
        guard let (lease, session) = accept(report.lease, by: report.session) else { return }
        if let key = chunk(lease.name, by: session), key.kind == .fetch { checksums[key] = report.crc }
        model.done(lease, by: session, at: report.end)
    }

    /// Completes a task.
    mutating func finish(_ report: LeaseReport.Finished) {
        guard let (lease, session) = accept(report.lease, by: report.session) else { return }
        check(.inPlace(lease.task, version: lease.version, path: report.path ?? lease.path, size: report.size))
        model.finish(lease, by: session, size: report.size)
        guard let known = facts[lease.task], model[known.place]?.state == .succeeded else { return }
        facts[lease.task]?.crc = report.crc
        if lease.isFenced {
            count(report.isUnasked ? "the file of a lost lease was taken" : "a fenced file was put in place")
        }
    }

    /// Takes a lease back.
    mutating func release(_ report: LeaseReport.Progress) {
        guard let (lease, session) = accept(report.lease, by: report.session) else { return }
        remember(lease, by: session, report.durable)
        model.release(lease, by: session, at: report.durable.offset)
    }

    /// Handles a failed lease.
    mutating func fail(_ report: LeaseReport.Failed) {
        guard let (lease, session) = accept(report.progress.lease, by: report.progress.session) else { return }
        remember(lease, by: session, report.progress.durable)
        let versions = model[facts[lease.task]?.place ?? .init(group: "", key: "")]?.version
        model.fail(
            lease, by: session,
            .init(
                kind: report.kind, status: report.status.map { Int($0) }, offset: report.progress.durable.offset,
                parksOrigin: report.retryAfter ?? 0 > 0))
        if let known = facts[lease.task], let after = model[known.place]?.version, after != versions {
            count("a content version changed")
        }
        wishFurther()
    }

    /// Starts a task over on another rung.
    mutating func restart(_ lease: LeaseName, on rung: Rung, by session: SessionID) {
        guard let granted = granted[lease] else { return }
        model.restart(granted, on: rung, by: session)
        wishFurther()
    }

    /// Tells holders of the parts that were given back to them.
    private mutating func wishFurther() {
        for lease in granted.values {
            guard let found = model.find(lease, by: lease.session), let task = model[found.place] else { continue }
            let chunk = task.chunks[found.index]
            guard chunk.hasRegained, let last = chunk.last, wishes[lease.name]?.end != last else { continue }
            wishes[lease.name] = ShrinkWish(lease: lease.name, end: last, isFurther: true, isUntouched: false)
            count("a tail was given back")
        }
    }

    /// Asks holders of large chunks for their tails.
    mutating func help(_ idle: [ClaimRequest], _ random: (ClosedRange<Int64>) -> Int64) -> StragglerHelp {
        var asked: [SessionID] = []
        for name in granted.keys.sorted(by: { $0.epoch < $1.epoch }) where wishes[name] == nil {
            guard asked.count < idle.count, let lease = granted[name], lease.kind == .fetch,
                let found = model.find(lease, by: lease.session), let task = model[found.place], task.isPlanned,
                task.rung == .chunks
            else { continue }
            let chunk = task.chunks[found.index]
            guard !chunk.hasRegained, let last = chunk.last, last - chunk.durable > 2_048 else { continue }
            let end = random(chunk.durable + 1_024...last - 1_024)
            wishes[name] = ShrinkWish(lease: name, end: end, isFurther: false, isUntouched: false)
            asked.append(lease.session)
        }
        return StragglerHelp(asked: asked, taken: 0)
    }

    /// The wishes that still concern a held lease.
    mutating func currentWishes() -> [ShrinkWish] {
        wishes = wishes.filter { name, _ in granted[name].map { isHeld(name, by: $0.session) } ?? false }
        return wishes.values.sorted { $0.lease.epoch < $1.lease.epoch }
    }

    /// Applies a holder's answer to a wish.
    mutating func shrink(_ lease: LeaseName, to end: Int64, by session: SessionID) -> ShrinkOutcome {
        guard let granted = granted[lease], isHeld(lease, by: session) else { return .lost }
        wishes[lease] = nil
        guard model.shrink(granted, by: session, to: end) else { return .kept }
        count("a running chunk was split")
        return .agreed
    }
}
