import MusterCore
import MusterStore

extension StoreModel {
    /// Moves a lease's durable offset; `false` when it is not the session's.
    @discardableResult
    mutating func progress(_ lease: GrantedLease, by session: SessionID, to offset: Int64) -> Bool {
        guard let (place, index) = find(lease, by: session), var task = self[place] else {
            return purges[lease.task]?.lease.map { $0.epoch == lease.name.epoch && $0.session == session } ?? false
        }
        guard offset <= task.chunks[index].last ?? .max else { return false }
        task.chunks[index].durable = max(task.chunks[index].durable, offset)
        self[place] = task
        return true
    }

    /// The first response to a task.
    @discardableResult
    mutating func learn(_ lease: GrantedLease, by session: SessionID, size: Int64?, isSplittable: Bool) -> Bool {
        guard let (place, index) = find(lease, by: session), var task = self[place] else { return false }
        guard !task.isPlanned else { return true }
        let chunk = task.chunks[index]
        if let size, let last = chunk.last, isSplittable, size > last {
            for start in stride(from: last, to: size, by: 100) {
                task.chunks.append(
                    Chunk(
                        first: start, last: min(start + 100, size), resume: start, durable: start, source: chunk.source)
                )
            }
        } else {
            task.chunks[index].last = size
        }
        task.isPlanned = true
        task.isStream = task.isStream || !isSplittable
        task.size = size
        self[place] = task
        return true
    }

    /// A chunk that is durable to its end, or a purge.
    mutating func done(_ lease: GrantedLease, by session: SessionID) {
        if let purge = purges[lease.task]?.lease, purge.epoch == lease.name.epoch, purge.session == session {
            purges[lease.task] = nil
            return
        }
        guard let (place, index) = find(lease, by: session), var task = self[place], task.isPlanned,
            let size = task.size,
            task.chunks[index].kind == .fetch, let last = task.chunks[index].last
        else { return }
        let chunk = task.chunks.remove(at: index)
        task.done.append((chunk.first, last))
        task.bytesDone += last - chunk.first
        if task.chunks.isEmpty {
            task.state = .finalizing
            task.chunks = [Chunk(kind: .finalize, last: size)]
        } else if task.leases == 0 {
            task.state = .queued
        }
        self[place] = task
    }

    /// A file that stands at its path.
    mutating func finish(_ lease: GrantedLease, by session: SessionID, size: Int64) {
        guard let (place, index) = find(lease, by: session), var task = self[place] else { return }
        let chunk = task.chunks[index]
        guard chunk.kind == .finalize || !task.isPlanned || chunk.first == 0 && chunk.last == task.size else { return }
        task.state = .succeeded
        task.isPlanned = true
        task.size = size
        task.bytesDone = size
        task.chunks = []
        task.done = []
        self[place] = task
        say("task.succeeded", place, version: task.version)
        close(place.group)
    }

    /// A lease that is given back.
    mutating func release(_ lease: GrantedLease, by session: SessionID, at offset: Int64) {
        progress(lease, by: session, to: offset)
        putBack(isLost: false) { held, _ in held.epoch == lease.name.epoch && held.session == session }
    }

    /// A lease that could not be fulfilled, with a jitter that always makes a backoff wait.
    mutating func fail(
        _ lease: GrantedLease, by session: SessionID, _ kind: FailureKind, at offset: Int64, parksOrigin: Bool
    ) {
        progress(lease, by: session, to: offset)
        if let purge = purges[lease.task]?.lease, purge.epoch == lease.name.epoch, purge.session == session {
            purges[lease.task]?.status = .waiting
            return
        }
        guard let (place, index) = find(lease, by: session), var task = self[place] else { return }
        let chunk = task.chunks[index]
        func isMeant(_ held: Lease, _ chunk: Chunk) -> Bool { held.epoch == lease.name.epoch }
        guard kind.rule != .returnChunk else { return putBack(isLost: false, where: isMeant) }
        task.attempts += 1
        self[place] = task
        if parksOrigin && chunk.kind == .fetch { parkedOrigins.insert(task.sources[chunk.source]) }
        let attempts = chunk.durable > chunk.resume && !task.isStream ? 1 : chunk.attempts + 1
        switch kind.rule {
        case .giveUp: return fail(place)
        case .startOver:
            task.restarts += 1
            self[place] = task
            startOver(place, isStream: task.isStream, source: chunk.source, attempts: 0, deaths: chunk.deaths)
            say("task.changed", place, version: task.version + 1)
            if task.restarts >= Int(policy.contentVersions) { fail(place) }
            return
        case .nextSource:
            task.dead.insert(chunk.source)
            self[place] = task
            if task.dead.count == task.sources.count { return fail(place) }
        case .retry, .returnChunk: break
        }
        if kind.rule == .retry || chunk.kind != .fetch, attempts >= Int(policy.attempts) { return fail(place) }
        putBack(isLost: false, where: isMeant)
        guard var after = self[place] else { return }
        let position = task.isStream && chunk.kind == .fetch ? 0 : index
        after.chunks[position].attempts = attempts
        if chunk.kind == .fetch {
            let living = task.sources.indices.filter { !task.dead.contains($0) }
            // Chunks of a planned task stay with their source for some tries.
            let stays = task.isPlanned && !task.isStream && attempts < 3 && living.contains(chunk.source)
            let next = stays ? chunk.source : living.first { $0 > chunk.source } ?? living.first ?? 0
            after.chunks[position].source = next
            after.chunks[position].status = kind.rule == .retry && next <= chunk.source ? .waiting : .ready
        } else {
            after.chunks[position].status = .waiting
        }
        self[place] = after
    }

    /// Ranges don't work after all.
    mutating func restart(_ lease: GrantedLease, by session: SessionID) {
        guard let (place, index) = find(lease, by: session), var task = self[place], task.chunks[index].kind == .fetch
        else { return }
        let chunk = task.chunks[index]
        task.attempts += 1
        self[place] = task
        if chunk.attempts + 1 >= Int(policy.attempts) {
            fail(place)
        } else {
            startOver(
                place, isStream: true, source: chunk.source, attempts: chunk.attempts + 1, deaths: chunk.deaths)
        }
    }
}
