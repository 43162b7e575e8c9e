import MusterSystem
import Synchronization

/// A process of a history: it takes turns on the thread of the simulation, and can be killed or stopped at any of them.
final class SimulatedProcess: TaskExecutor {
    /// Its name in traces.
    let name: String
    /// Which process of the history it is.
    let number: Int
    let simulation: Simulation
    private let life = Mutex(Life())

    private struct Life {
        var isDead = false
        /// How often it was stopped: what began before may be out of date.
        var stops = 0
        /// Ends the process's tasks.
        var endings: [@Sendable () -> Void] = []
    }

    init(_ name: String, number: Int, in simulation: Simulation) {
        self.name = name
        self.number = number
        self.simulation = simulation
    }

    func enqueue(_ job: consuming ExecutorJob) {
        simulation.add(.job(UnownedJob(job)), of: self)
    }

    /// Makes a call soon.
    func call(_ call: @escaping @Sendable () -> Void) { simulation.add(.call(call), of: self) }

    /// Whether it was killed: no call of it has an effect any more.
    var isDead: Bool { life.withLock { $0.isDead } }

    /// How often it was stopped.
    var stops: Int { life.withLock { $0.stops } }

    /// Runs `body` as a task of the process. A kill cancels it; what it still does then has no effect.
    func run(_ body: @escaping @Sendable () async -> Void) {
        let task = MonotonicClock.$current.withValue(simulation.clock) {
            Task(executorPreference: self) { await body() }
        }
        atEnd { task.cancel() }
    }

    /// Calls `ending` when the process is killed; at once if it was.
    func atEnd(_ ending: @escaping @Sendable () -> Void) {
        let isOver = life.withLock { life in
            if !life.isDead { life.endings.append(ending) }
            return life.isDead
        }
        if isOver { ending() }
    }

    /// Kills it (F1, F3).
    func kill() {
        let endings = life.withLock { life in
            life.isDead = true
            defer { life.endings = [] }
            return life.endings
        }
        // A stopped process dies as well.
        simulation.resume(self)
        for ending in endings { ending() }
    }

    /// Counts a stop.
    func noteStop() { life.withLock { $0.stops += 1 } }

    /// Stops it for a time in milliseconds (F2, F4).
    func stop(for milliseconds: Int64) {
        guard !isDead else { return }
        noteStop()
        simulation.halt(self)
        simulation.after(milliseconds) { self.simulation.resume(self) }
    }
}
