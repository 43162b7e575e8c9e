import MusterCore
import Synchronization

@testable import MusterStore
@testable import MusterStoreModel

/// The database of a history: the store's reference model, which the store's own tests compare with PostgreSQL, and what the model leaves
/// out: paths, checksums, validators, times, marks of sinks and revocations. Each verb is one transaction.
final class SimulatedDatabase: Sendable {
    /// A chunk, whatever lease it is under.
    struct ChunkKey: Hashable {
        let task: TaskID
        let version: Int
        let kind: LeaseKind
        let first: Int64
    }

    /// What is known of a task, also after it was removed.
    struct Facts {
        let place: StoreModel.Place
        let path: String
        let urls: [String]
        var state = TaskState.queued
        /// The order in which tasks have ended; 0 for a task that has not.
        var ended = 0
        var version = 1
        var size: Int64?
        var crc: UInt32?
        var digests: [String: String] = [:]
        var isRemoved = false
    }

    /// What a report says about the disk.
    enum Claim {
        /// So many bytes of a task's part are durable, which may be at the task's path by now.
        case durable(TaskID, version: Int32, offset: Int64, path: String)
        /// A task's file stands at its path.
        case inPlace(TaskID, version: Int32, path: String, size: Int64)
    }

    struct Session {
        var expires: Int64
        let worker: String
    }

    struct State {
        var model: StoreModel
        var facts: [TaskID: Facts] = [:]
        var granted: [LeaseName: GrantedLease] = [:]
        var byEpoch: [LeaseEpoch: LeaseName] = [:]
        var sessions: [SessionID: Session] = [:]
        var revocations: Set<SessionID> = []
        var mark: String?
        var chunks: [ChunkKey: ChunkID] = [:]
        var checksums: [ChunkKey: UInt32] = [:]
        var learned: [TaskID: (version: Int, representation: Representation)] = [:]
        var wishes: [LeaseName: ShrinkWish] = [:]
        /// Groups that a long transaction has locked.
        var locked: Set<String> = []
        var sizesToRemove: [TaskID: Int64] = [:]
        /// Paths of tasks that were removed while another task was at work there: that one's file may stand there, so it is kept.
        var kept: Set<String> = []
        var last: (task: Int64, chunk: Int64, epoch: Int64, session: Int64, ended: Int) = (0, 0, 0, 0, 0)
        var complaints: [String] = []
        /// The rule of the database that is broken.
        var sabotage: Plan.Sabotage?
        /// The tasks that were added, in order.
        var ids: [TaskID] = []
        /// The newest epoch of each chunk (I1).
        var newest: [ChunkID: LeaseEpoch] = [:]
        /// How many events have been looked at.
        var heard = 0
        /// Tells what is wrong with a report that is true only if bytes are on storage (I4, I8).
        var judge: @Sendable (Claim) -> String? = { _ in nil }
        /// How often something rare has happened.
        var rare: [String: Int] = [:]

        mutating func count(_ what: String) { rare[what, default: 0] += 1 }
    }

    private let state: Mutex<State>
    /// Its UUID.
    let installation: String

    init(
        _ installation: String, policy: Store.Policy, sabotage: Plan.Sabotage? = nil,
        judge: @escaping @Sendable (Claim) -> String?
    ) {
        self.installation = installation
        state = Mutex(State(model: StoreModel(policy: policy), sabotage: sabotage, judge: judge))
    }

    /// Looks at what is committed.
    func read<Value: Sendable>(_ body: (State) -> Value) -> Value { state.withLock { body($0) } }

    /// One transaction.
    func transaction<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state)
            state.note()
            return value
        }
    }
}

extension SimulatedDatabase.State {
    /// Follows what a verb has done to tasks and purges.
    mutating func note() {
        hearEvents()
        for id in ids {
            guard var known = facts[id], !known.isRemoved else { continue }
            guard let task = model[known.place], model.places[id] == known.place else {
                known.isRemoved = true
                facts[id] = known
                continue
            }
            guard task.state != known.state || task.version != known.version || task.size != known.size else {
                continue
            }
            if task.state != known.state, task.state.isTerminal {
                last.ended += 1
                known.ended = last.ended
                if sabotage == .zeroTests { closeEarly(known.place.group) }
            }
            known.state = task.state
            known.version = task.version
            known.size = task.size
            facts[id] = known
        }
        // A task whose path another one had since deletes no file (had_path_last).
        for (leftover, purge) in model.purges where leftover.takesFile {
            guard purge.lease == nil, sabotage == .purges || !hadPathLast(leftover.task) else { continue }
            model.purges[leftover] = nil
            model.purges[.init(task: leftover.task, version: leftover.version, takesFile: false)] = purge
        }
    }

    /// I7: a group ends only if it is sealed and every task is terminal.
    private mutating func hearEvents() {
        for event in model.events[heard...] where event.contains("dev.muster.group.") && !event.contains("removed") {
            let name = event.split(separator: " ")[2]
            let isOver = model.groups[String(name)].map { group in
                group.state.isTerminal && group.tasks.values.allSatisfy(\.state.isTerminal)
            }
            if isOver == false { complaints.append("I7: \(event), though not all of its tasks have ended") }
        }
        heard = model.events.count
    }

    /// Ends a group without a look at its other tasks.
    private mutating func closeEarly(_ name: String) {
        guard let group = model.groups[name], !group.state.isTerminal else { return }
        model.groups[name]?.state = .succeeded
        model.say("group.succeeded", .init(group: name, key: ""), generation: group.generation)
    }

    /// Whether a worker has a lease on another task with a path.
    private func isBusy(_ path: String, but task: TaskID) -> Bool {
        facts.contains { other, theirs in
            guard other != task, theirs.path == path, !theirs.isRemoved, !theirs.state.isTerminal else { return false }
            return model[theirs.place]?.chunks.contains { $0.lease != nil } ?? false
        }
    }

    private func hadPathLast(_ id: TaskID) -> Bool {
        guard let mine = facts[id], !isBusy(mine.path, but: id) else { return false }
        for (other, theirs) in facts where other != id && theirs.path == mine.path && !theirs.isRemoved {
            if theirs.state == .succeeded, mine.ended > 0, (theirs.ended, other) > (mine.ended, id) { return false }
            let isSame = theirs.state == .succeeded && theirs.size == mine.size && theirs.crc == mine.crc
            if sizesToRemove[id] != nil, isSame { return false }
        }
        return true
    }

    /// Whether a task may not put a file at its path yet (`is_path_disputed`).
    func isDisputed(_ path: String) -> Bool {
        if model.purges.keys.contains(where: { $0.takesFile && facts[$0.task]?.path == path }) { return true }
        return model.holdouts.contains { epoch, holdout in
            guard facts[holdout.task]?.path == path else { return false }
            return holdout.mayPlace || byEpoch[epoch].flatMap { granted[$0] }?.kind == .purge
        }
    }

    /// Whether a task or a purge is unfinished.
    var hasWork: Bool {
        !model.purges.isEmpty
            || model.groups.values.contains { group in
                group.tasks.values.contains { !$0.state.isTerminal }
            }
    }

    /// Whether a path has an unfinished task.
    func isTaken(_ path: String) -> Bool {
        facts.values.contains { $0.path == path && !$0.isRemoved && !$0.state.isTerminal }
    }

    /// Adds a task; `nil` if its path is taken.
    mutating func add(_ key: String, to group: String, path: String, urls: [String], size: Int64?) -> TaskID? {
        guard !isTaken(path) else { return nil }
        if model.groups[group] == nil { model.groups[group] = StoreModel.Group() }
        let origins = urls.map { String($0.dropFirst("http://".count).prefix { $0 != "/" }) }
        guard model.add([.init(key: key, origins: origins, size: size)], to: group, reopening: false)?.added == 1 else {
            return nil
        }
        last.task += 1
        let id = TaskID(last.task)
        let place = StoreModel.Place(group: group, key: key)
        ids.append(id)
        model.places[id] = place
        facts[id] = .init(place: place, path: path, urls: urls)
        return id
    }

    /// Removes tasks of a group with their files.
    mutating func remove(_ group: String, keys: [String]) {
        for (id, known) in facts where known.place.group == group && keys.contains(known.place.key) {
            guard known.state == .succeeded else { continue }
            sizesToRemove[id] = known.size
            if isBusy(known.path, but: id) { kept.insert(known.path) }
        }
        _ = model.remove(group, keys: keys, deletingFiles: true)
    }

    /// The id of a chunk.
    mutating func id(of key: SimulatedDatabase.ChunkKey) -> ChunkID {
        if let known = chunks[key] { return known }
        last.chunk += 1
        chunks[key] = ChunkID(last.chunk)
        return ChunkID(last.chunk)
    }

    /// The chunk that a session holds a lease on.
    func chunk(_ lease: LeaseName, by session: SessionID) -> SimulatedDatabase.ChunkKey? {
        guard let granted = granted[lease], let found = model.find(granted, by: session) else { return nil }
        guard let task = model[found.place] else { return nil }
        let chunk = task.chunks[found.index]
        return .init(task: granted.task, version: task.version, kind: chunk.kind, first: chunk.first)
    }

    /// Whether a session holds a lease.
    func isHeld(_ lease: LeaseName, by session: SessionID) -> Bool {
        granted[lease].map { model.isHeld($0, by: session) } ?? false
    }
}

extension SimulatedDatabase.State {
    /// Ends the rests of origins, and what was learned of their limits.
    mutating func endRests() {
        for origin in model.origins.keys {
            model.origins[origin]?.isParked = false
            model.origins[origin]?.learned = nil
        }
    }
}
