import MusterCore
import MusterStore

extension StoreModel {
    /// A task to be added: its key, the names of its origins, and the size that the caller expects.
    struct NewTask {
        var key: String
        var origins: [String]
        var size: Int64?
    }

    /// Adds tasks; `nil` when the group takes no new ones.
    mutating func add(_ tasks: [NewTask], to name: String, reopening: Bool) -> Addition? {
        guard var group = groups[name] else { return nil }
        let new = tasks.filter { group.tasks[$0.key] == nil }
        let addition = Addition(added: Int64(new.count), existing: Int64(tasks.count - new.count))
        guard !new.isEmpty else { return addition }
        guard group.state == .open || reopening else { return nil }
        reopen(name)
        group = groups[name] ?? group
        let isPaused = group.desired == "pause"
        for wanted in new {
            var chunk = Chunk(
                last: min(wanted.size ?? policy.firstChunk, policy.firstChunk), origin: wanted.origins[0])
            if isPaused { chunk.status = .parked }
            groups[name]?.tasks[wanted.key] = Task(
                state: isPaused ? .paused : .queued, sources: wanted.origins.map(Source.init), expected: wanted.size,
                size: wanted.size,
                chunks: [chunk])
        }
        return addition
    }

    mutating func seal(_ name: String) {
        if groups[name]?.state == .open { groups[name]?.state = .sealed }
        close(name)
    }

    mutating func apply(_ verb: TaskVerb, to name: String, keys: [String]?) {
        guard let group = groups[name] else { return }
        let isLive = !group.state.isTerminal
        switch verb {
        case .pause:
            if keys == nil && isLive { groups[name]?.desired = "pause" }
            change(name, keys, [.finalizing]) { $0.isPausing = true }
            for place in chosen(name, keys, [.queued, .active]) { holdOut(place) }
            change(name, keys, [.queued, .active]) { task in
                Self.park(&task)
                task.state = .paused
                task.isPausing = true
            }
        case .resume:
            let wishes = chosen(name, keys, [.finalizing]).filter { self[$0]?.isPausing == true }
            change(name, keys, [.finalizing]) { $0.isPausing = false }
            let places = chosen(name, keys, [.paused])
            let isMeant = keys == nil || !wishes.isEmpty || !places.isEmpty
            if group.desired == "pause", isMeant { groups[name]?.desired = "run" }
            change(name, keys, [.paused]) { task in
                task.state = .queued
                task.isPausing = false
                for index in task.chunks.indices { task.chunks[index].status = .ready }
            }
            restartPlain(places)
        case .cancel:
            defer { dropFailed(name, keys) }
            guard isLive else { return }
            let places = chosen(name, keys, [.queued, .active, .paused, .finalizing])
            for place in places { drop(place) }
            change(name, keys, [.queued, .active, .paused, .finalizing]) { task in
                task.state = .cancelled
                task.bytesDone = 0
                task.chunks = []
                task.question = nil
                task.done = []
            }
            for place in places { say("task.cancelled", place) }
            if keys == nil {
                groups[name]?.desired = "cancel"
                groups[name]?.state = .sealed
            }
            close(name)
        case .retry:
            let places = chosen(name, keys, [.failed])
            guard !places.isEmpty || keys == nil && group.state == .failed else { return }
            change(name, keys, [.failed]) { task in
                task.state = task.chunks.contains { $0.kind == .finalize } ? .finalizing : .queued
                task.run += 1
                task.attempts = 0
                task.restarts = 0
                task.isClean = false
                task.isPausing = false
                for index in task.sources.indices {
                    task.sources[index].isDead = false
                    task.sources[index].refusedWith = nil
                    task.sources[index].isAskedAgain = false
                    task.sources[index].refreshes = 0
                }
                for index in task.chunks.indices {
                    task.chunks[index].status = .ready
                    task.chunks[index].attempts = 0
                    task.chunks[index].deaths = 0
                }
            }
            if !isLive { groups[name]?.generation += 1 }
            groups[name]?.isOverdue = false
            if group.state != .open { groups[name]?.state = .sealed }
            groups[name]?.desired = "run"
            restartPlain(places)
            close(name)
        }
    }

    /// Drops what failed tasks kept for a retry.
    private mutating func dropFailed(_ name: String, _ keys: [String]?) {
        for place in chosen(name, keys, [.failed]) where self[place]?.wasStarted == true {
            startOver(place, source: self[place]?.teacher ?? 0, attempts: 0, deaths: 0)
            change(name, [place.key], [.queued, .paused]) { task in
                task.state = .failed
                task.wasStarted = false
                task.chunks[0].status = .parked
            }
        }
    }

    /// Starts plain GETs over that were stopped in the middle.
    private mutating func restartPlain(_ places: [Place]) {
        for place in places {
            guard let task = self[place], !task.goesOn,
                let chunk = task.chunks.first(where: { $0.kind == .fetch && $0.durable > $0.first })
            else { continue }
            startOver(place, source: chunk.source, attempts: chunk.attempts, deaths: chunk.deaths)
        }
    }

    /// Removes tasks or the whole group; returns `false` if other groups wait for it.
    mutating func remove(_ name: String, keys: [String]?, deletingFiles: Bool) -> Bool {
        guard let group = groups[name] else { return true }
        let isInUse = groups.values.contains { $0.prerequisites[name]?.isSatisfied == false }
        if keys == nil, isInUse { return false }
        for place in chosen(name, keys, Set(TaskState.allCases)) {
            drop(place)
            if deletingFiles, self[place]?.state == .succeeded, let id = id(of: place) {
                purge(id, version: self[place]?.version ?? 0)
            }
            groups[name]?.tasks[place.key] = nil
            places = places.filter { $0.value != place }
        }
        if keys == nil {
            groups[name] = nil
            for other in groups.keys { groups[other]?.prerequisites[name] = nil }
            say("group.removed", Place(group: name, key: ""), generation: group.generation)
        } else {
            close(name)
        }
        return true
    }

    /// Schedules the deletion of a task's leftovers.
    private mutating func drop(_ place: Place) {
        holdOut(place)
        guard let task = self[place], let id = id(of: place) else { return }
        // A task that succeeded leaves only parts behind.
        guard task.state != .succeeded else { return }
        holdOutPurges(of: id)
        let isPurged = purges.contains { $0.key.task == id }
        purges = purges.filter { $0.key.task != id }
        if task.wasStarted || isPurged { purge(id, version: task.version) }
    }

    private func chosen(_ name: String, _ keys: [String]?, _ states: Set<TaskState>) -> [Place] {
        (groups[name]?.tasks ?? [:]).filter { states.contains($0.value.state) && (keys?.contains($0.key) ?? true) }
            .map { Place(group: name, key: $0.key) }
    }

    private mutating func change(
        _ name: String, _ keys: [String]?, _ states: Set<TaskState>, _ body: (inout Task) -> Void
    ) {
        for place in chosen(name, keys, states) {
            guard var task = self[place] else { continue }
            body(&task)
            self[place] = task
        }
    }
}
