import MusterCore
import MusterStore

extension StoreModel {
    /// Puts the leases that `isMeant` chooses back.
    mutating func putBack(isLost: Bool, where isMeant: (Lease, Chunk) -> Bool) {
        for (id, purge) in purges {
            guard let lease = purge.lease, isMeant(lease, purge) else { continue }
            purges[id]?.status = .ready
        }
        // What is poison is known before anything starts over.
        for (name, group) in groups {
            for (key, before) in group.tasks {
                var task = before
                var touched: [Int] = []
                for (index, chunk) in task.chunks.enumerated() {
                    guard let lease = chunk.lease, isMeant(lease, chunk) else { continue }
                    let progressed = chunk.durable > chunk.resume && !task.isStream
                    touched.append(index)
                    task.chunks[index].status = .ready
                    task.chunks[index].resume = chunk.durable
                    if progressed { task.chunks[index].attempts = 0 }
                    if isLost {
                        task.isFenced = true
                        task.chunks[index].deaths = progressed ? 1 : chunk.deaths + 1
                    }
                }
                guard !touched.isEmpty else { continue }
                if task.state == .active && task.leases == 0 { task.state = .queued }
                let place = Place(group: name, key: key)
                self[place] = task
                let chunks = touched.map { task.chunks[$0] }
                if chunks.contains(where: { $0.deaths >= Int(policy.deaths) }) {
                    fail(place)
                } else if let chunk = chunks.first, task.isStream, chunk.kind == .fetch, chunk.durable > chunk.first {
                    startOver(
                        place, isStream: true, source: chunk.source, attempts: chunk.attempts, deaths: chunk.deaths)
                }
            }
        }
    }

    /// Drops the content version and begins the next one.
    mutating func startOver(_ place: Place, isStream: Bool, source: Int, attempts: Int, deaths: Int) {
        guard var task = self[place] else { return }
        task.version += 1
        task.isPlanned = false
        task.isStream = isStream
        task.isFenced = false
        task.size = task.expected
        task.bytesDone = 0
        task.done = []
        task.state = .queued
        let first = policy.firstChunk
        let living = task.sources.indices.filter { !task.dead.contains($0) }
        let candidates = living.isEmpty ? Array(task.sources.indices) : living
        let next = candidates.contains(source) ? source : candidates.first ?? source
        task.chunks = [
            Chunk(
                last: isStream ? task.expected : min(task.expected ?? first, first), source: next, attempts: attempts,
                deaths: deaths)
        ]
        self[place] = task
    }

    /// Gives a task up; what it has is kept.
    mutating func fail(_ place: Place) {
        guard var task = self[place], !task.state.isTerminal else { return }
        Self.park(&task)
        task.state = .failed
        self[place] = task
        say("task.failed", place)
        close(place.group)
    }

    static func park(_ task: inout Task) {
        for (index, chunk) in task.chunks.enumerated() {
            if chunk.lease != nil { task.isFenced = true }
            task.chunks[index].status = .parked
            task.chunks[index].resume = chunk.durable
        }
    }

    /// Lets every backoff end.
    mutating func promote() {
        change { chunk in if chunk.status == .waiting { chunk.status = .ready } }
    }

    /// A session that is over, and what it held.
    mutating func end(_ session: SessionID, isLost: Bool) {
        sessions[session] = nil
        putBack(isLost: isLost) { lease, _ in lease.session == session }
    }

    private mutating func change(_ body: (inout Chunk) -> Void) {
        for id in purges.keys {
            guard var purge = purges[id] else { continue }
            body(&purge)
            purges[id] = purge
        }
        for (name, group) in groups {
            for (key, before) in group.tasks {
                var task = before
                for index in task.chunks.indices { body(&task.chunks[index]) }
                groups[name]?.tasks[key] = task
            }
        }
    }
}
