import MusterCore
import MusterSystem
import Synchronization

@testable import MusterStore
@testable import MusterStoreModel
@testable import MusterWorker

/// Workers, coordinators, a database, a network, a disk and origins that live through what a plan says, on one thread.
final class SimulatedHistory: Sendable {
    static let timeToLive: Duration = .seconds(10)
    /// After the last fault, everything ends within this time, in milliseconds (I14): a minute, and the patience of a worker with an origin
    /// that was silent.
    static let endTime: Int64 = 180_000

    let plan: Plan
    let simulation: Simulation
    let network: SimulatedNetwork
    let database: SimulatedDatabase
    /// The database of another installation that shares the sink (F21).
    let stranger: SimulatedDatabase
    let disk: SimulatedDisk
    let origins: [SimulatedOrigin]
    private let start: Int64
    private let state = Mutex(State())

    private struct State {
        var workers: [Int: SimulatedWorker] = [:]
        var coordinators: [Int: SimulatedCoordinator] = [:]
        /// For each process of a worker: after how many more calls something happens to it.
        var calls: [Int: (left: Int64, fault: ProcessDisk.CallFault)] = [:]
        var deaths: [(at: Int64, worker: SimulatedProcess)] = []
        var added: [TaskID: Plan.Task] = [:]
        var strangers: [TaskID: Plan.Task] = [:]
    }

    init(_ plan: Plan) {
        self.plan = plan
        simulation = Simulation(seed: plan.seed)
        network = SimulatedNetwork(simulation)
        start = simulation.now
        var policy = Store.Policy()
        policy.firstChunk = 8_192
        policy.connectionsPerOrigin = 4
        policy.leasesPerSession = 16
        policy.deaths = 30
        let disk = SimulatedDisk(capacity: 1 << 24)
        self.disk = disk
        let (ours, theirs) = ("0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002")
        database = SimulatedDatabase(ours, policy: policy, sabotage: plan.sabotage) { Self.judge($0, of: ours, disk) }
        stranger = SimulatedDatabase(theirs, policy: policy) { Self.judge($0, of: theirs, disk) }
        origins = ["a.test", "b.test"].map { SimulatedOrigin($0) }
        // A worker that is stopped or cut off keeps connections that the database gives to others.
        if plan.theme != .storm, plan.theme != .sleepers { network.capTransfers(at: Int(policy.connectionsPerOrigin)) }
        disk.change { $0.sabotage = plan.sabotage }
        for origin in origins {
            network.add(origin)
            for (number, file) in plan.files.enumerated() { origin.serve("/\(number)", file) }
        }
    }

    /// Whether what a report says of the disk would be true after a loss of power at this moment (I4, I8).
    private static func judge(
        _ claim: SimulatedDatabase.Claim, of installation: String, _ disk: SimulatedDisk
    ) -> String? {
        switch claim {
        case .durable(let task, let version, let offset, let path):
            // A part that only one session writes is in the directory of that session.
            let part = PartName(task, version: version)
            let paths = disk.ownFiles.filter {
                $0.hasPrefix(".muster/\(installation)/") && SimulatedDisk.isPart($0, part)
            }
            let durable = (paths + [path]).compactMap { disk.durableContent(at: $0)?.count }.max() ?? 0
            return durable < offset
                ? "I4: \(offset) bytes of \(part.string) are said to be durable, and \(durable) are" : nil
        case .inPlace(let task, let version, let path, let size):
            let durable = disk.durableContent(at: path)
            guard Int64(durable?.count ?? -1) != size else {
                disk.notePlaced(path, part: PartName(task, version: version))
                return nil
            }
            return
                "I8: task \(task) is said to be at \(path), where \(durable?.count ?? -1) of \(size) bytes are durable"
        }
    }

    /// The processes that were killed, and when.
    var deaths: [(at: Int64, worker: SimulatedProcess)] { state.withLock { $0.deaths } }

    /// The tasks that were added, here and by the other installation.
    var added: [TaskID: Plan.Task] { state.withLock { $0.added } }
    var strangers: [TaskID: Plan.Task] { state.withLock { $0.strangers } }

    /// How often something rare has happened.
    var rare: [String: Int] {
        var rare = database.read { $0.rare }
        rare["a late write reached no file"] = disk.lateWrites
        return rare
    }

    /// How long the history has gone on, in milliseconds.
    var age: Int64 { (simulation.now - start) / 1_000_000 }

    /// Runs the history; returns what is wrong with it.
    func run() -> [String] {
        MonotonicClock.$current.withValue(simulation.clock) {
            for number in 0..<Plan.coordinators { startCoordinator(number) }
            for number in 0..<Plan.workers { startWorker(number) }
            if !plan.strangers.isEmpty {
                startCoordinator(Plan.coordinators)
                startWorker(Plan.workers)
            }
            for fault in plan.faults { simulation.after(fault.at) { self.play(fault.kind) } }
            let oracle = Oracle(self)
            var early: [String] = []
            switch plan.theme {
            case .trouble:
                run(60_000) { !oracle.isOver("g2") }
                early = oracle.delayedByOthers()
                // Its faults begin in the first ten seconds, and last for a minute.
                run(max(0, 70_000 - age)) { age < 15_000 || !oracle.isOver("g1") }
            case .storm: run(Plan.faultTime) { true }
            case .calm, .deaths, .sleepers: run((plan.faults.last?.at ?? 0) + 1) { true }
            }
            endFaults()
            seal()
            run(Self.endTime) { !oracle.isOver }
            let problems = early + oracle.problems()
            end()
            return problems
        }
    }

    private func run(_ milliseconds: Int64, while goesOn: () -> Bool) {
        simulation.run(until: simulation.now + milliseconds * 1_000_000, while: goesOn)
    }

    /// Ends all processes, so that no task outlives the history.
    private func end() {
        let (workers, coordinators) = state.withLock { ($0.workers, $0.coordinators) }
        for number in workers.keys.sorted() { workers[number]?.process.kill() }
        for number in coordinators.keys.sorted() { coordinators[number]?.process.kill() }
        run(400_000) { true }
    }

    private static func url(_ coordinator: Int) -> String { "http://c\(coordinator)" }

    private func startWorker(_ number: Int) {
        do {
            let own = (0..<Plan.coordinators).map { Self.url(($0 + number) % Plan.coordinators) }
            let worker = try SimulatedWorker.start(
                "w\(number)", servers: number < Plan.workers ? own : [Self.url(Plan.coordinators)], on: disk,
                in: network, simulation, atCall: { [self] in atCall($0, number) })
            state.withLock { $0.workers[number] = worker }
        } catch {
            database.transaction { $0.complaints.append("a worker does not start: \(error)") }
        }
    }

    private func startCoordinator(_ number: Int) {
        let coordinator = SimulatedCoordinator.start(
            Self.url(number), over: number < Plan.coordinators ? database : stranger, in: network, simulation,
            timeToLive: Self.timeToLive,
            sabotage: plan.sabotage)
        state.withLock { $0.coordinators[number] = coordinator }
    }

    private func atCall(_ process: SimulatedProcess, _ number: Int) -> ProcessDisk.CallFault? {
        let fault = state.withLock { state -> ProcessDisk.CallFault? in
            guard let next = state.calls[number] else { return nil }
            state.calls[number] = next.left > 0 ? (next.left - 1, next.fault) : nil
            return next.left > 0 ? nil : next.fault
        }
        if fault == .death { noteDeath(of: process, number, away: 2_000) }
        return fault
    }

    private func noteDeath(of process: SimulatedProcess, _ number: Int, away: Int64) {
        state.withLock { state in
            state.deaths.append((simulation.now, process))
            state.calls[number] = nil
        }
        database.transaction { $0.count("a worker was killed") }
        simulation.after(away) { self.startWorker(number) }
    }

    private func killWorker(_ number: Int, away: Int64) {
        guard let worker = state.withLock({ $0.workers[number] }), !worker.process.isDead else { return }
        noteDeath(of: worker.process, number, away: away)
        worker.process.kill()
    }

    private func killCoordinator(_ number: Int, away: Int64) {
        guard let coordinator = state.withLock({ $0.coordinators[number] }), !coordinator.process.isDead else { return }
        coordinator.process.kill()
        simulation.after(away) { self.startCoordinator(number) }
    }

    /// Lets something happen now.
    private func play(_ kind: Fault.Kind) {
        let (workers, coordinators) = state.withLock { ($0.workers, $0.coordinators) }
        switch kind {
        case .killWorker(let number, let away): killWorker(number, away: away)
        case .killCoordinator(let number, let away): killCoordinator(number, away: away)
        case .stopWorker(let number, let time): workers[number]?.process.stop(for: time)
        case .stopCoordinator(let number, let time): coordinators[number]?.process.stop(for: time)
        case .call(let number, let after, let fault): state.withLock { $0.calls[number] = (after, fault) }
        case .cut(let isFromWorker, let worker, let coordinator, let time):
            let ends = isFromWorker ? ["w\(worker)", Self.url(coordinator)] : [Self.url(coordinator), "w\(worker)"]
            network.cut(ends[0], ends[1], true)
            simulation.after(time) { self.network.cut(ends[0], ends[1], false) }
        case .disturb(let losses, let repetitions, let time):
            network.disturb(losses: losses, repetitions: repetitions)
            simulation.after(time) { self.network.disturb(losses: 0, repetitions: 0) }
        case .weather(let number, let weather, let time):
            coordinators[number]?.store.become(weather)
            simulation.after(time) { coordinators[number]?.store.become(.init()) }
        case .lock(let group, let time):
            database.transaction { _ = $0.locked.insert(group) }
            simulation.after(time) { self.database.transaction { _ = $0.locked.remove(group) } }
        case .mood(let number, let mood, let time):
            origins[number].become(mood)
            simulation.after(time) { self.origins[number].become(.well) }
        case .changeFile(let number): for origin in origins { origin.changeFile("/\(number)") }
        case .full(let left, let time): disk.fill(leaving: left, for: time, simulation)
        case .readOnly(let time):
            disk.change { $0.isReadOnly = true }
            simulation.after(time) { self.disk.change { $0.isReadOnly = false } }
        case .failSyncs(let count): disk.change { $0.failingSyncs += count }
        case .descriptors(let number, let limit, let time):
            workers[number]?.disk.limit.withLock { $0 = limit }
            simulation.after(time) { workers[number]?.disk.limit.withLock { $0 = .max } }
        case .losePower(let away):
            for number in workers.keys.sorted() { killWorker(number, away: away) }
            disk.losePower { self.simulation.chance(500) }
            database.transaction { $0.count("power was lost") }
        case .add(let number): add(plan.tasks[number])
        case .addStranger(let number): addStranger(plan.strangers[number])
        case .verb(let verb, let group, let keys): apply(verb, group, keys)
        }
    }

    private func add(_ task: Plan.Task) {
        let urls = [origins[task.origin].url("/\(task.file)")]
        let id = database.transaction { $0.add(task.key, to: task.group, path: task.path, urls: urls, size: nil) }
        guard let id else {
            // The path is another task's: the client comes again.
            if age < 60_000 { simulation.after(2_000) { self.add(task) } }
            return
        }
        state.withLock { $0.added[id] = task }
        wake()
    }

    private func addStranger(_ task: Plan.Task) {
        let urls = [origins[task.origin].url("/\(task.file)")]
        let id = stranger.transaction { $0.add(task.key, to: task.group, path: task.path, urls: urls, size: nil) }
        if let id { state.withLock { $0.strangers[id] = task } }
        wake()
    }

    private func wake() {
        let coordinators = state.withLock { $0.coordinators }
        for number in coordinators.keys.sorted() { coordinators[number]?.store.wake() }
    }

    private func apply(_ verb: Fault.Verb, _ group: String, _ keys: [String]) {
        database.transaction { state in
            guard !state.locked.contains(group), state.model.groups[group] != nil else { return }
            switch verb {
            case .pause: state.model.apply(.pause, to: group, keys: keys)
            case .resume: state.model.apply(.resume, to: group, keys: keys)
            case .cancel: state.model.apply(.cancel, to: group, keys: keys)
            case .retry: state.model.apply(.retry, to: group, keys: keys)
            case .remove: state.remove(group, keys: keys)
            }
        }
        wake()
    }

    /// Everything works again, and what was paused goes on.
    private func endFaults() {
        state.withLock { $0.calls = [:] }
        disk.change { state in
            state.failingSyncs = 0
            state.isReadOnly = false
        }
        for origin in origins { origin.become(.well) }
        network.disturb(losses: 0, repetitions: 0)
    }

    private func seal() {
        database.transaction { state in
            state.locked = []
            for group in state.model.groups.keys.sorted() {
                state.model.apply(.resume, to: group, keys: nil)
                state.model.seal(group)
            }
        }
        stranger.transaction { $0.model.seal("theirs") }
        wake()
    }
}

extension SimulatedDisk {
    /// Leaves so many bytes to be written, for a time in milliseconds.
    fileprivate func fill(leaving left: Int64, for time: Int64, _ simulation: Simulation) {
        let before = state.withLock { state in
            defer { state.capacity = state.occupied + left }
            return state.capacity
        }
        simulation.after(time) { self.change { $0.capacity = max($0.capacity, before) } }
    }
}
