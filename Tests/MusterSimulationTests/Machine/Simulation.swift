import MusterSystem
import MusterTestSupport
import Synchronization

/// One thread on which all processes of a history run, with a clock that jumps from one event to the next (adr/0050).
///
/// Whatever can run is a turn of a process: a job of a task, a piece of work of a pool, an event of a transfer. The seed chooses the next
/// turn. When no process can run, the clock moves to the next alarm.
final class Simulation: Sendable {
    /// What one turn runs.
    enum Work: Sendable {
        /// A job of a task that the process runs.
        case job(UnownedJob)
        /// A call that the process makes.
        case call(@Sendable () -> Void)
    }

    private struct Turn {
        let process: SimulatedProcess
        let work: Work
    }

    private struct State {
        var random: SeededGenerator
        var now: Int64 = 1_000_000_000_000
        var ready: [Turn] = []
        var alarms = AlarmQueue()
        var turns = 0
        /// The processes that do not run now: they are stopped, or in the middle of a call in which others run.
        var halted: [Int: [Turn]] = [:]
        /// Those of them that are in the middle of a call: they go on only when it returns.
        var inCall: Set<Int> = []
        var processes = 0
    }

    private let state: Mutex<State>

    /// A simulation in which nothing runs yet.
    init(seed: UInt64) {
        state = Mutex(State(random: SeededGenerator(seed: seed)))
    }

    /// Nanoseconds of the clock that all processes share.
    var now: Int64 { state.withLock { $0.now } }

    /// How many turns have run.
    var turns: Int { state.withLock { $0.turns } }

    /// A random number within the range.
    func random(_ range: ClosedRange<Int64>) -> Int64 {
        state.withLock { Int64.random(in: range, using: &$0.random) }
    }

    /// Whether something happens that happens so many times in a thousand.
    func chance(_ permille: Int64) -> Bool { permille > 0 && random(0...999) < permille }

    /// The clock of the processes.
    var clock: MonotonicClock {
        MonotonicClock(now: { self.now }, wait: { try await self.sleep(until: $0) })
    }

    /// Makes a process.
    func process(_ name: String) -> SimulatedProcess {
        let number = state.withLock { state in
            state.processes += 1
            return state.processes
        }
        return SimulatedProcess(name, number: number, in: self)
    }

    /// Lets a process take one more turn.
    func add(_ work: Work, of process: SimulatedProcess) {
        state.withLock { state in
            let turn = Turn(process: process, work: work)
            if state.halted[process.number]?.append(turn) == nil { state.ready.append(turn) }
        }
    }

    /// Calls `ring` when the clock shows `moment`; returns the number by which the alarm can be taken back.
    @discardableResult
    func alarm(at moment: Int64, _ ring: @escaping @Sendable () -> Void) -> Int {
        state.withLock { $0.alarms.add(max(moment, $0.now), ring) }
    }

    /// Calls `ring` after a time in milliseconds.
    @discardableResult
    func after(_ milliseconds: Int64, _ ring: @escaping @Sendable () -> Void) -> Int {
        alarm(at: now + milliseconds * 1_000_000, ring)
    }

    /// Waits until the clock shows `moment`. Throws `CancellationError` as soon as the task is cancelled.
    func sleep(until moment: Int64) async throws {
        try Task.checkCancellation()
        let nap = Nap()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                nap.begin(continuation)
                alarm(at: moment) { nap.end() }
            }
        } onCancel: {
            nap.cancel()
        }
    }

    /// Stops a process: nothing of it runs until it goes on.
    func halt(_ process: SimulatedProcess) {
        state.withLock { state in
            guard state.halted[process.number] == nil else { return }
            state.halted[process.number] = state.ready.filter { $0.process === process }
            state.ready.removeAll { $0.process === process }
        }
    }

    /// Lets a stopped process go on.
    func resume(_ process: SimulatedProcess) {
        state.withLock { state in
            guard !state.inCall.contains(process.number) else { return }
            state.ready += state.halted.removeValue(forKey: process.number) ?? []
        }
    }

    /// Runs other processes for a time in milliseconds while a process is in the middle of a call.
    func runOthers(than process: SimulatedProcess, for milliseconds: Int64) {
        halt(process)
        state.withLock { _ = $0.inCall.insert(process.number) }
        run(until: now + milliseconds * 1_000_000)
        state.withLock { _ = $0.inCall.remove(process.number) }
        resume(process)
    }

    /// Whether nothing of a process runs now.
    func isHalted(_ process: SimulatedProcess) -> Bool { state.withLock { $0.halted[process.number] != nil } }

    private enum Step {
        case turn(Turn)
        case ring([@Sendable () -> Void])
        case nothing
    }

    /// Runs whatever is due until `deadline`, while `goesOn` is true. Returns `false` if nothing is left that could happen before.
    @discardableResult
    func run(until deadline: Int64, while goesOn: () -> Bool = { true }) -> Bool {
        while goesOn() {
            switch next(before: deadline) {
            case .turn(let turn):
                switch turn.work {
                case .job(let job): job.runSynchronously(on: turn.process.asUnownedTaskExecutor())
                case .call(let call): call()
                }
            case .ring(let rings): for ring in rings { ring() }
            case .nothing: return false
            }
        }
        return true
    }

    private func next(before deadline: Int64) -> Step {
        state.withLock { state in
            if !state.ready.isEmpty {
                state.turns += 1
                let index = Int(state.random.next() % UInt64(state.ready.count))
                state.ready.swapAt(index, state.ready.count - 1)
                return .turn(state.ready.removeLast())
            }
            guard let moment = state.alarms.first, moment <= deadline else {
                state.now = max(state.now, deadline)
                return .nothing
            }
            state.now = max(state.now, moment)
            return .ring(state.alarms.take(until: state.now))
        }
    }

    /// A task that sleeps.
    private final class Nap: Sendable {
        private let sleeper = Mutex<CheckedContinuation<Void, any Error>?>(nil)

        func begin(_ continuation: CheckedContinuation<Void, any Error>) {
            sleeper.withLock { $0 = continuation }
        }

        func end() { take()?.resume() }

        func cancel() { take()?.resume(throwing: CancellationError()) }

        private func take() -> CheckedContinuation<Void, any Error>? {
            sleeper.withLock { sleeper in
                defer { sleeper = nil }
                return sleeper
            }
        }
    }
}
