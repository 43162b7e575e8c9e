import MusterCore
import MusterStore

/// Time-driven changes of groups, and the sessions that must stop before anything is deleted.
extension StoreModel {
    /// The store's id of a task.
    func id(of place: Place) -> TaskID? { places.first { $0.value == place }?.key }

    /// Remembers the sessions that may still be writing under a task's leases, which are about to be taken from them (I13).
    mutating func holdOut(_ place: Place, where isMeant: (Lease) -> Bool = { _ in true }) {
        guard let task = self[place], let id = id(of: place) else { return }
        for chunk in task.chunks {
            guard let lease = chunk.lease, isMeant(lease) else { continue }
            holdOut(lease, of: id, mayPlace: mayPlace(chunk, of: task))
        }
    }

    /// Remembers the sessions that may still be deleting the task's leftovers, since another purge replaces theirs.
    mutating func holdOutPurges(of task: TaskID) {
        for lease in purges.filter({ $0.key.task == task }).compactMap(\.value.lease) { holdOut(lease, of: task) }
    }

    /// Remembers a session that may still work under a lease that is about to be taken from it. A session that is gone is not waited for.
    mutating func holdOut(_ lease: Lease, of task: TaskID, mayPlace: Bool = false) {
        guard sessions[lease.session] != nil else { return }
        holdouts[lease.epoch] = Holdout(
            session: lease.session, sync: lease.sync, task: task, lane: lease.lane, mayPlace: mayPlace)
    }

    /// Whether work on a chunk may put the task's file in place. A chunk of several puts nothing there.
    func mayPlace(_ chunk: Chunk, of task: Task) -> Bool {
        chunk.kind == .finalize
            || chunk.kind == .fetch && (!task.isPlanned || chunk.first == 0 && chunk.last == task.size)
    }

    /// Whether a purge is pending at the path of a task, or a session may still put its file there, and the chunk is all that is left of it. No two
    /// tasks of a history have the same path.
    func isDisputed(_ chunk: Chunk, of place: Place) -> Bool {
        guard let id = id(of: place), let task = self[place] else { return false }
        guard mayPlace(chunk, of: task) else { return false }
        return purges.contains { $0.key.task == id && $0.key.takesFile }
            || holdouts.values.contains { $0.task == id && $0.mayPlace }
    }

    /// Tasks whose first chunk would be leased if its path were not disputed.
    var disputed: [TaskID] {
        places.filter { _, place in
            self[place]?.chunks.first.map { $0.status == .ready && isDisputed($0, of: place) } ?? false
        }.map(\.key)
    }

    /// Adds a purge of a task's leftovers.
    mutating func purge(_ task: TaskID, version: Int, takesFile: Bool = true) {
        let waits = isHeldOut(task)
        if waits { seen.insert(.heldBack) }
        let leftover = Leftover(task: task, version: version, takesFile: takesFile)
        purges[leftover] = Chunk(kind: .purge, status: waits ? .parked : .ready)
    }

    /// Whether a live session may still work under a lease of the task that was taken from it.
    func isHeldOut(_ task: TaskID) -> Bool { holdouts.values.contains { $0.task == task } }

    /// A session reports the leases that it still holds.
    mutating func letGo(_ session: SessionID, settled: Int64, holding held: [GrantedLease]) {
        holdouts = holdouts.filter { epoch, holdout in
            holdout.session != session || holdout.sync > settled || held.contains { $0.name.epoch == epoch }
        }
    }

    /// Releases the purges whose tasks no session writes any more.
    mutating func releasePurges() {
        holdouts = holdouts.filter { sessions[$0.value.session] != nil }
        for (leftover, purge) in purges where purge.status == .parked {
            if !isHeldOut(leftover.task) { purges[leftover]?.status = .ready }
        }
    }

    /// Opens a group for new tasks.
    mutating func reopen(_ name: String) {
        guard let group = groups[name], group.state != .open else { return }
        seen.insert(.reopened)
        groups[name]?.state = .open
        groups[name]?.isOverdue = false
        guard group.state.isTerminal else { return }
        groups[name]?.generation += 1
        groups[name]?.desired = "run"
    }

    /// Applies a group's deadline.
    mutating func expire(_ name: String, fails: Bool) {
        guard let group = groups[name], !group.state.isTerminal else { return }
        groups[name]?.isOverdue = true
        groups[name]?.failsWhenOverdue = fails
        guard fails else {
            if group.saidOverdue < group.generation {
                say("group.overdue", Place(group: name, key: ""), generation: group.generation)
                groups[name]?.saidOverdue = group.generation
            }
            return
        }
        seen.insert(.expired)
        groups[name]?.state = .sealed
        for key in group.tasks.keys { fail(Place(group: name, key: key)) }
        close(name)
    }

    /// Sets the prerequisites of a group; returns `false` if they are refused.
    mutating func setPrerequisites(_ wanted: [GroupPrerequisite], of name: String) -> Bool {
        guard let group = groups[name], !group.state.isTerminal || wanted.isEmpty,
            wanted.allSatisfy({ groups[$0.group] != nil }),
            !wanted.contains(where: { reaches($0.group, name) })
        else { return false }
        var prerequisites: [String: Prerequisite] = [:]
        for other in wanted {
            let before = group.prerequisites[other.group].map { $0.on == other.on && $0.isSatisfied } ?? false
            let isSatisfied = before || other.on.isSatisfied(by: groups[other.group]?.state ?? .open)
            prerequisites[other.group] = Prerequisite(on: other.on, isSatisfied: isSatisfied)
        }
        groups[name]?.prerequisites = prerequisites
        groups[name]?.isHeld = prerequisites.values.contains { !$0.isSatisfied }
        close(name)
        return true
    }

    /// Whether a group is the other one, or waits for it.
    private func reaches(_ name: String, _ other: String) -> Bool {
        name == other || (groups[name]?.prerequisites.keys.contains { reaches($0, other) } ?? false)
    }

    /// Releases groups whose prerequisites are all satisfied, and recalls the leases of groups that may not run.
    mutating func sweepGroups() {
        while let free = groups.first(where: {
            $0.value.isHeld && $0.value.prerequisites.values.allSatisfy(\.isSatisfied)
        }) {
            seen.insert(.released)
            groups[free.key]?.isHeld = false
            close(free.key)
        }
        for (name, group) in groups where (group.isHeld || group.isClosed) && !group.mayRun && !group.state.isTerminal {
            var epochs: Set<LeaseEpoch> = []
            for (key, task) in group.tasks {
                let fetching = task.chunks.filter { $0.kind == .fetch }.compactMap { $0.lease?.epoch }
                epochs.formUnion(fetching)
                if let asking = task.question?.lease?.epoch { epochs.insert(asking) }
                guard !fetching.isEmpty else { continue }
                groups[name]?.tasks[key]?.isFenced = true
                holdOut(Place(group: name, key: key)) { fetching.contains($0.epoch) }
            }
            guard !epochs.isEmpty else { continue }
            seen.insert(.recalled)
            putBack(isLost: false) { epochs.contains($0.epoch) }
        }
    }
}
