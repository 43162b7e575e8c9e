import MusterCore
import MusterStore

/// What groups do when their time has come, and who has to stop before anything is deleted.
extension StoreModel {
    /// The store's name of a task.
    func id(of place: Place) -> TaskID? { places.first { $0.value == place }?.key }

    /// Remembers who may still be writing under leases of a task that are about to be taken away (I13).
    mutating func holdOut(_ place: Place, where isMeant: (Lease) -> Bool = { _ in true }) {
        guard let task = self[place], let id = id(of: place) else { return }
        for lease in task.chunks.compactMap(\.lease) where isMeant(lease) { holdOut(lease, of: id) }
    }

    /// Remembers who may still be deleting what is left of a task, since another purge takes the place of that one.
    mutating func holdOutPurges(of task: TaskID) {
        for lease in purges.filter({ $0.key.task == task }).compactMap(\.value.lease) { holdOut(lease, of: task) }
    }

    /// Remembers a session that may still be at work under a lease that is about to be taken away. One that is gone is not waited for.
    mutating func holdOut(_ lease: Lease, of task: TaskID) {
        guard sessions[lease.session] != nil else { return }
        holdouts[lease.epoch] = Holdout(session: lease.session, sync: lease.sync, task: task, lane: lease.lane)
    }

    /// Whether something is about to be deleted at the path of a task. No two tasks of a history have one path.
    func isDisputed(_ place: Place) -> Bool {
        guard let id = id(of: place) else { return false }
        return purges.contains { $0.key.task == id && $0.key.takesFile }
    }

    /// Tasks whose first chunk would be leased if its path were not disputed.
    var disputed: [TaskID] {
        places.filter { self[$0.value]?.chunks.first?.status == .ready && isDisputed($0.value) }.map(\.key)
    }

    /// Has the leftovers of a task deleted.
    mutating func purge(_ task: TaskID, version: Int, takesFile: Bool = true) {
        let waits = isHeldOut(task)
        if waits { seen.insert(.heldBack) }
        let leftover = Leftover(task: task, version: version, takesFile: takesFile)
        purges[leftover] = Chunk(kind: .purge, status: waits ? .parked : .ready)
    }

    /// Whether a session that lives may still be at work under a lease of the task that was taken from it.
    func isHeldOut(_ task: TaskID) -> Bool { holdouts.values.contains { $0.task == task } }

    /// A session says what it holds still.
    mutating func letGo(_ session: SessionID, settled: Int64, holding held: [GrantedLease]) {
        holdouts = holdouts.filter { epoch, holdout in
            holdout.session != session || holdout.sync > settled || held.contains { $0.name.epoch == epoch }
        }
    }

    /// Lets leftovers be deleted that nobody writes any more.
    mutating func releasePurges() {
        holdouts = holdouts.filter { sessions[$0.value.session] != nil }
        for (leftover, purge) in purges where purge.status == .parked {
            if !isHeldOut(leftover.task) { purges[leftover]?.status = .ready }
        }
    }

    /// Tasks may be added again.
    mutating func reopen(_ name: String) {
        guard let group = groups[name], group.state != .open else { return }
        seen.insert(.reopened)
        groups[name]?.state = .open
        groups[name]?.isOverdue = false
        guard group.state.isTerminal else { return }
        groups[name]?.generation += 1
        groups[name]?.desired = "run"
    }

    /// The time for a group is over.
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

    /// Says what a group waits for; `false` when that is refused.
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

    /// Whether a group is another one, or waits for it.
    private func reaches(_ name: String, _ other: String) -> Bool {
        name == other || (groups[name]?.prerequisites.keys.contains { reaches($0, other) } ?? false)
    }

    /// Lets groups begin that wait for nobody any more, and takes back what may not run.
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
