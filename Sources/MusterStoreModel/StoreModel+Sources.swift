import MusterCore
import MusterStore

/// Which source a task goes to.
extension StoreModel {
    /// After how many failures without progress a task fails: the policy's attempts for each source in its round.
    func tries(of task: Task) -> Int { Int(policy.attempts) * sources(of: task) }

    func sources(of task: Task) -> Int {
        max(1, task.sources.count { !$0.isDead && $0.differsIn != task.version })
    }

    /// The source that takes over after a failed one, in a circle.
    func next(_ task: Task, after source: Int, staying: Bool) -> Int? {
        let usable = task.sources.indices.filter {
            !task.sources[$0].isDead && task.sources[$0].differsIn != task.version
        }
        if staying, usable.contains(source) { return source }
        return usable.first { $0 > source } ?? usable.first
    }

    /// Moves the unleased chunks of one source to another.
    func move(_ task: inout Task, from source: Int, to next: Int) {
        for index in task.chunks.indices
        where task.chunks[index].kind == .fetch && task.chunks[index].lease == nil
            && task.chunks[index].source == source
        {
            task.chunks[index].source = next
            task.chunks[index].origin = task.sources[next].origin
        }
    }

    /// Makes the sources usable again that refused a task's file with a status which may be a limit, and serve others; each of them once. Returns whether
    /// there are any.
    mutating func askOnceMore(_ place: Place, besides source: Int) -> Bool {
        guard var task = self[place] else { return false }
        for index in task.sources.indices where index != source {
            guard let status = task.sources[index].refusedWith, !task.sources[index].isAskedAgain,
                task.sources[index].isDead
            else { continue }
            let origin = task.sources[index].origin
            let isBusy = places.values.contains { other in
                other != place && self[other]?.chunks.contains { $0.lease?.lane.origin == origin } == true
            }
            let isServing = isBusy || origins[origin, default: Origin()].hasServed
            guard isServing, origins[origin, default: Origin()].refusesWith[status, default: 0] < 3 else { continue }
            task.sources[index].isAskedAgain = true
            task.sources[index].isDead = false
        }
        self[place] = task
        return !task.sources.allSatisfy(\.isDead)
    }
}
