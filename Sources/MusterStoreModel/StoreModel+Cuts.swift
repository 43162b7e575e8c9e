import MusterCore
import MusterStore

/// Tails cut off chunks while their holders fetch them (adr/0012, adr/0037).
extension StoreModel {
    /// Ends a held chunk at `end`; returns whether that shortened it.
    mutating func shrink(_ lease: GrantedLease, by session: SessionID, to end: Int64) -> Bool {
        guard let (place, index) = find(lease, by: session), let task = self[place], task.isPlanned,
            task.rung == .chunks, task.chunks[index].kind == .fetch, !task.chunks[index].hasRegained
        else { return false }
        return cut(place, index, at: end)
    }

    /// A chunk is done at `end`, which may be sooner than the end it has by now.
    mutating func cutDone(_ lease: GrantedLease, by session: SessionID, at end: Int64) {
        guard let (place, index) = find(lease, by: session), let chunk = self[place]?.chunks[index], chunk.reach != nil
        else { return }
        if cut(place, index, at: end), chunk.hasRegained { seen.insert(.ended) }
    }

    private mutating func cut(_ place: Place, _ index: Int, at end: Int64) -> Bool {
        guard var task = self[place], let last = task.chunks[index].last else { return false }
        let chunk = task.chunks[index]
        guard end > chunk.first, end >= chunk.durable, end < last else { return false }
        task.chunks[index].last = end
        task.chunks[index].reach = chunk.reach ?? last
        task.chunks.append(
            Chunk(
                first: end, last: last, resume: end, durable: end, source: chunk.source,
                origin: task.sources[chunk.source].origin))
        self[place] = task
        return true
    }

    /// How far a granted chunk without bytes is requested, if requests granted before this step reach over it: as far as the
    /// request of the same session. Requests in histories are slower than 1 MiB/s, from which on the reach would be the end of the
    /// chunk.
    func reachBeside(_ chunk: Chunk, of task: Task, by session: SessionID) -> Int64? {
        guard chunk.kind == .fetch, chunk.first > 0, chunk.durable == chunk.first, !chunk.isPlain else { return nil }
        return task.chunks.compactMap { other -> Int64? in
            guard let lease = other.lease, lease.grantedAt < step, let end = other.last, let reach = other.reach else {
                return nil
            }
            let isBefore = other.kind == .fetch && other.source == chunk.source && end <= chunk.first
            guard isBefore, other.durable < end, reach >= chunk.last ?? .max else { return nil }
            return lease.session == session ? reach : chunk.last
        }.max()
    }

    /// Whether a failed chunk goes back to a lease whose request covers it, or is requested once more.
    mutating func spare(_ place: Place, _ chunk: Chunk, _ failure: Failure? = nil) -> Bool {
        guard var task = self[place], let lease = chunk.lease, let last = chunk.last, chunk.kind == .fetch,
            chunk.durable == chunk.first
        else { return false }
        let before = task.chunks.indices.filter { index in
            let other = task.chunks[index]
            guard other.lease != nil, other.kind == .fetch, other.source == chunk.source, let end = other.last else {
                return false
            }
            return end <= chunk.first && other.durable < end && other.reach ?? 0 >= last
        }
        let holder = before.max { task.chunks[$0].last ?? 0 < task.chunks[$1].last ?? 0 }
        let untouched = task.chunks.filter { $0.lease == nil && $0.kind == .fetch && $0.durable == $0.first }
        if let holder, let end = task.chunks[holder].last, let reach = task.chunks[holder].reach {
            let between = untouched.filter { $0.first >= end && $0.last ?? .max <= chunk.first }
            if between.reduce(0, { $0 + ($1.last ?? 0) - $1.first }) == chunk.first - end {
                var gone = [chunk.first] + between.map(\.first)
                var further = last
                while let next = untouched.first(where: { $0.first == further }), let last = next.last, last <= reach {
                    gone.append(next.first)
                    further = last
                }
                if let failure, failure.isTooMuch {
                    if failure.parksOrigin { origins[chunk.origin, default: Origin()].isParked = true }
                    _ = heedLimit(place, chunk, failure)
                }
                seen.insert(gone.count > 1 ? .regainedMore : .regained)
                task.chunks[holder].last = further
                task.chunks[holder].hasRegained = true
                task.chunks.removeAll { $0.kind == .fetch && gone.contains($0.first) }
                self[place] = task
                return true
            }
        }
        guard chunk.isPiece, failure?.isTooMuch != true else { return false }
        seen.insert(.askedAgain)
        putBack(lease.epoch)
        guard let index = self[place]?.chunks.firstIndex(where: { $0.first == chunk.first }) else { return true }
        self[place]?.chunks[index].status = .waiting
        self[place]?.chunks[index].isPlain = true
        return true
    }
}
