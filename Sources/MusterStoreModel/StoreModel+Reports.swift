import MusterCore
import MusterStore

extension StoreModel {
    /// Moves a lease's durable offset; returns `false` if the session doesn't hold the lease. Bytes reported with a failure show
    /// that the origin serves only if they are more than a little.
    @discardableResult
    mutating func progress(
        _ lease: GrantedLease, by session: SessionID, to offset: Int64, isFailure: Bool = false
    ) -> Bool {
        guard let (place, index) = find(lease, by: session), var task = self[place] else {
            // Purges and questions have no progress; only a question has an end that the offset could exceed.
            return findPurge(lease, by: session) != nil || findQuestion(lease, by: session) != nil && offset <= 0
        }
        guard offset <= task.chunks[index].last ?? .max else { return false }
        let more = offset - task.chunks[index].durable
        if more > 0, !isFailure || more >= task.chunks[index].little, task.chunks[index].kind == .fetch {
            origins[task.chunks[index].origin, default: Origin()].hasServed = true
        }
        task.chunks[index].durable = max(task.chunks[index].durable, offset)
        self[place] = task
        return true
    }

    /// Applies the first response to a task, whose rest is cut into chunks of `chunkSize` bytes.
    @discardableResult
    mutating func learn(
        _ lease: GrantedLease, by session: SessionID, size: Int64?, isSplittable: Bool, isStrong: Bool,
        chunkSize: Int64 = 100
    ) -> Bool {
        guard let (place, index) = find(lease, by: session), var task = self[place] else { return false }
        guard !task.isPlanned else { return true }
        let chunk = task.chunks[index]
        let rung = isSplittable ? task.rung : .whole
        if let size, let last = chunk.last, rung == .chunks, size > last {
            for start in stride(from: last, to: size, by: Int64.Stride(chunkSize)) {
                task.chunks.append(
                    Chunk(
                        first: start, last: min(start + chunkSize, size), resume: start, durable: start,
                        source: chunk.source,
                        origin: task.sources[chunk.source].origin))
            }
        } else {
            task.chunks[index].last = size
        }
        task.teacher = chunk.source
        task.mixes =
            task.sources.count > 1 && !task.isClean && rung == .chunks && size != nil && isStrong
        task.isPlanned = true
        task.rung = rung
        task.isStrong = isStrong
        task.sources[chunk.source].rung = max(task.sources[chunk.source].rung, rung)
        task.size = size
        self[place] = task
        return true
    }

    /// Completes a chunk that is durable to its end, or a purge.
    mutating func done(_ lease: GrantedLease, by session: SessionID, at end: Int64? = nil) {
        if let leftover = findPurge(lease, by: session) {
            purges[leftover] = nil
            return
        }
        if let end { cutDone(lease, by: session, at: end) }
        guard let (place, index) = find(lease, by: session), var task = self[place], task.isPlanned,
            let size = task.size, task.chunks[index].kind == .fetch, let last = task.chunks[index].last
        else { return }
        let chunk = task.chunks.remove(at: index)
        origins[chunk.origin, default: Origin()].hasServed = true
        task.done.append((chunk.first, last))
        task.bytesDone += last - chunk.first
        Self.credit(&task, chunk.source, last - chunk.resume)
        if task.chunks.isEmpty {
            task.state = .finalizing
            task.chunks = [Chunk(kind: .finalize, last: size)]
            task.question = nil
        } else if task.leases == 0 {
            task.state = .queued
        }
        self[place] = task
    }

    /// Completes a task whose file is in place.
    mutating func finish(_ lease: GrantedLease, by session: SessionID, size: Int64) {
        guard let (place, index) = find(lease, by: session), var task = self[place] else { return }
        let chunk = task.chunks[index]
        guard chunk.kind == .finalize || !task.isPlanned || chunk.first == 0 && chunk.last == task.size else { return }
        if chunk.kind == .fetch {
            Self.credit(&task, chunk.source, size - chunk.resume)
            origins[chunk.origin, default: Origin()].hasServed = true
            task.teacher = task.teacher ?? chunk.source
        }
        task.state = .succeeded
        task.isPlanned = true
        task.size = size
        task.bytesDone = size
        task.chunks = []
        task.question = nil
        task.done = []
        self[place] = task
        // A worker that has lost a lease may have created the part again.
        if task.isFenced { purge(lease.task, version: task.version, takesFile: false) }
        say("task.succeeded", place, version: task.version)
        close(place.group)
    }

    /// Releases a lease.
    mutating func release(_ lease: GrantedLease, by session: SessionID, at offset: Int64) {
        progress(lease, by: session, to: offset)
        putBack(isLost: false) { $0.epoch == lease.name.epoch && $0.session == session }
    }

    /// Applies the resolver's answer: a fresh URL at `origin`.
    mutating func resolve(_ lease: GrantedLease, by session: SessionID, to origin: String) {
        guard let place = findQuestion(lease, by: session), var task = self[place], let question = task.question else {
            return
        }
        step += 1
        seen.insert(.answered)
        task.question = nil
        task.sources[question.source].origin = origin
        task.sources[question.source].resolvedAt = step
        for index in task.chunks.indices where task.chunks[index].kind == .fetch && task.chunks[index].lease == nil {
            if task.chunks[index].source == question.source { task.chunks[index].origin = origin }
            if task.chunks[index].status == .waiting { task.chunks[index].status = .ready }
        }
        self[place] = task
    }

    /// Moves a source to a rung, since it contradicted the way in which it was asked.
    mutating func restart(_ lease: GrantedLease, on rung: Rung, by session: SessionID) {
        guard let (place, index) = find(lease, by: session), let task = self[place], task.chunks[index].kind == .fetch
        else { return }
        let chunk = task.chunks[index]
        if spare(place, chunk) { return }
        self[place]?.sources[chunk.source].failures += 1
        if let teacher = task.teacher, teacher != chunk.source, leaveMirror(place, chunk, chunk.source) { return }
        // A restart that leads no lower counts as a try.
        let tries = rung <= task.rung ? 1 : 0
        self[place]?.attempts = max(task.attempts, chunk.attempts + tries)
        self[place]?.sources[chunk.source].rung = max(task.sources[chunk.source].rung, rung)
        if tries == 1, chunk.attempts + 1 >= self.tries(of: task) {
            fail(place, reported: chunk.lease?.epoch)
        } else {
            startOver(
                place, source: chunk.source, attempts: chunk.attempts + tries, deaths: chunk.deaths,
                reported: chunk.lease?.epoch)
        }
    }
}
