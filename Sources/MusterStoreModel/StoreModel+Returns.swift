import MusterCore
import MusterStore

extension StoreModel {
    /// Puts back the leases that `isMeant` chooses. A kill of the whole installation counts as no chunk's death.
    mutating func putBack(isLost: Bool, isKilled: Bool = false, where isMeant: (Lease) -> Bool) {
        let waiting = queuedEpochs
        for (leftover, purge) in purges {
            guard let lease = purge.lease, isMeant(lease) else { continue }
            if isLost { holdOut(lease, of: leftover.task) }
            purges[leftover]?.status = .ready
        }
        for (name, group) in groups {
            for key in group.tasks.keys {
                putBack(Place(group: name, key: key), isLost: isLost, isKilled: isKilled, waiting, where: isMeant)
            }
        }
    }

    private mutating func putBack(
        _ place: Place, isLost: Bool, isKilled: Bool, _ waiting: Set<LeaseEpoch>, where isMeant: (Lease) -> Bool
    ) {
        guard var task = self[place] else { return }
        var deaths: [Int] = []
        if let lease = task.question?.lease, isMeant(lease) {
            task.question?.status = .ready
            if isLost, !isKilled { task.question?.deaths += 1 }
            deaths.append(task.question?.deaths ?? 0)
        }
        var touched: [Int] = []
        // A session that still syncs, and has not reported that it stopped, may be writing.
        if isLost { holdOut(place, where: isMeant) }
        for (index, chunk) in task.chunks.enumerated() {
            guard let lease = chunk.lease, isMeant(lease) else { continue }
            touched.append(index)
            task.chunks[index].status = .ready
            task.chunks[index].resume = chunk.durable
            task.chunks[index].forgetRequest()
            // However few bytes have come, they are progress, since nothing has failed.
            let hasBrought = chunk.durable > chunk.resume && task.goesOn
            if hasBrought { task.chunks[index].attempts = 0 }
            if isLost {
                // A worker that asks a resolver writes nothing; every other may still be writing.
                task.isFenced = true
            }
            if isLost, !isKilled, !waiting.contains(lease.epoch) {
                task.chunks[index].deaths = hasBrought ? 1 : chunk.deaths + 1
            }
            if chunk.kind == .fetch {
                Self.credit(&task, chunk.source, chunk.durable - chunk.resume)
                task.chunks[index].origin = task.sources[chunk.source].origin
            }
            deaths.append(task.chunks[index].deaths)
        }
        guard !deaths.isEmpty else { return }
        if task.state == .active && task.leases == 0 { task.state = .queued }
        self[place] = task
        // A poison chunk does not start over.
        if let chunk = touched.first.map({ task.chunks[$0] }), !task.goesOn, chunk.kind == .fetch,
            chunk.durable > chunk.first || task.isPlanned, chunk.deaths < Int(policy.deaths)
        {
            startOver(place, source: chunk.source, attempts: chunk.attempts, deaths: chunk.deaths)
        } else if deaths.contains(where: { $0 >= Int(policy.deaths) }) {
            fail(place)
        }
    }

    /// Puts back a lease that its holder has given up.
    mutating func putBack(_ epoch: LeaseEpoch) {
        putBack(isLost: false) { $0.epoch == epoch }
    }

    /// Counts the bytes of a source, if the task has several.
    static func credit(_ task: inout Task, _ source: Int, _ bytes: Int64) {
        if task.sources.count > 1 { task.sources[source].bytes += bytes }
    }

    /// Drops the content version and begins the next one.
    ///
    /// - Parameter reported: the lease whose report is the reason; nothing is done under it any more.
    mutating func startOver(
        _ place: Place, source: Int, attempts: Int, deaths: Int, reported: LeaseEpoch? = nil
    ) {
        holdOut(place) { $0.epoch != reported }
        guard var task = self[place] else { return }
        if task.wasStarted, let id = id(of: place) {
            purge(id, version: task.version, takesFile: task.state == .failed)
        }
        task.version += 1
        task.isPlanned = false
        task.isStrong = false
        task.isFenced = false
        task.teacher = nil
        task.mixes = false
        task.size = task.expected
        task.bytesDone = 0
        task.done = []
        task.question = nil
        task.state = task.isPausing ? .paused : .queued
        if task.isPausing { seen.insert(.stayedPaused) }
        let first = policy.firstChunk
        let living = task.sources.indices.filter { !task.sources[$0].isDead }
        let candidates = living.isEmpty ? Array(task.sources.indices) : living
        let next = candidates.contains(source) ? source : candidates.first ?? source
        task.rung = task.sources[next].rung
        task.chunks = [
            Chunk(
                last: task.rung != .chunks ? task.expected : min(task.expected ?? first, first), source: next,
                origin: task.sources[next].origin, attempts: attempts, deaths: deaths,
                status: task.isPausing ? .parked : .ready)
        ]
        self[place] = task
    }

    /// Fails a task and keeps its bytes. The session that reported the failure has stopped, and is no holdout.
    mutating func fail(_ place: Place, reported: LeaseEpoch? = nil) {
        holdOut(place) { $0.epoch != reported }
        guard var task = self[place], !task.state.isTerminal else { return }
        Self.park(&task, reported: reported)
        task.state = .failed
        self[place] = task
        say("task.failed", place)
        close(place.group)
    }

    static func park(_ task: inout Task, reported: LeaseEpoch? = nil) {
        task.question = nil
        for (index, chunk) in task.chunks.enumerated() {
            if let lease = chunk.lease, lease.epoch != reported { task.isFenced = true }
            if chunk.lease != nil { task.chunks[index].forgetRequest() }
            task.chunks[index].status = .parked
            task.chunks[index].resume = chunk.durable
            if chunk.kind == .fetch { task.chunks[index].origin = task.sources[chunk.source].origin }
        }
    }

    /// Ends all backoffs.
    mutating func promote() {
        for leftover in purges.keys where purges[leftover]?.status == .waiting { purges[leftover]?.status = .ready }
        for (name, group) in groups {
            for (key, before) in group.tasks {
                var task = before
                if task.question?.status == .waiting { task.question?.status = .ready }
                for index in task.chunks.indices where task.chunks[index].status == .waiting {
                    task.chunks[index].status = .ready
                }
                groups[name]?.tasks[key] = task
            }
        }
    }

    /// Ends a session, and puts back its leases.
    mutating func end(_ session: SessionID, isLost: Bool, isKilled: Bool = false) {
        sessions[session] = nil
        putBack(isLost: isLost, isKilled: isKilled) { $0.session == session }
    }
}
