import Glibc
import MusterSystem
import Synchronization
import SystemPackage

/// A few threads for calls that block, so that no thread of Swift's pool, and no thread of a transfer loop, ever does.
///
/// Work that has begun can't be cancelled; it is waited for by `shutdown()`. A sink whose file system hangs can hold
/// every thread of its pool: give each sink a pool of its own.
final class BlockingPool: Sendable {
    /// Why the pool refused work.
    enum Refusal: Error, Hashable, Sendable {
        /// More work is waiting than the pool has places for.
        case overloaded
        /// The pool was shut down.
        case stopped
        /// The process has no thread or descriptor left; holds the error number.
        case outOfResources(Int32)
    }

    /// What carries the work of a pool.
    enum Carrier: Sendable {
        /// Threads of the pool's own.
        case threads
        /// A function that calls what it is given once, soon, and never two calls at a time: the simulation has one thread for everything
        /// (adr/0050).
        case turns(@Sendable (@escaping @Sendable () -> Void) -> Void)
    }

    /// The current work of one thread.
    private final class Turn: Sendable {
        /// The start of the thread's current call, in nanoseconds of the monotonic clock; `.max` while it has no work.
        let since = Atomic<Int64>(.max)

        func begin() { since.store(MonotonicClock.now(), ordering: .relaxed) }
        func end() { since.store(.max, ordering: .relaxed) }
    }

    private struct State {
        var turns: [Turn] = []
        var queue: [@Sendable () -> Void] = []
        var head = 0
        var threads: [SystemThread] = []
        var living = 0
        /// Threads that wait for the bell, without those that it is already ringing for.
        var idle = 0
        var stopped = false
        var waiting: [CheckedContinuation<Void, Never>] = []

        var waitingCount: Int { queue.count - head }

        mutating func next() -> (@Sendable () -> Void)? {
            guard head < queue.count else { return nil }
            let work = queue[head]
            head += 1
            // Amortized: taken work is removed once it is at least half of the queue.
            if head * 2 >= queue.count {
                queue.removeFirst(head)
                head = 0
            }
            return work
        }
    }

    private let state = Mutex(State())
    /// How a thread that waits is woken.
    private enum Bell {
        case descriptor(EventDescriptor)
        case turns(@Sendable (@escaping @Sendable () -> Void) -> Void)
    }

    private let bell: Bell
    private let places: Int

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - threads: how many; at least 1.
    ///   - places: how much work may wait for a thread; more is refused.
    ///   - carrier: what the threads are.
    init(threads: Int = 4, places: Int = 8_192, carrier: Carrier = .threads) throws(Refusal) {
        self.places = places
        if case .turns(let turns) = carrier {
            bell = .turns(turns)
            state.withLock { ($0.living, $0.idle) = (max(1, threads), max(1, threads)) }
            return
        }
        do {
            bell = .descriptor(try EventDescriptor(.semaphore))
        } catch {
            throw .outOfResources(error.rawValue)
        }
        for _ in 0..<max(1, threads) {
            do {
                try start()
            } catch {
                stop()
                throw .outOfResources(error.rawValue)
            }
        }
    }

    /// Runs `work` on one of the threads and returns what it returns.
    func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws(Refusal) -> Value {
        let result: Result<Value, Refusal> = await withCheckedContinuation { continuation in
            if let refusal = submit({ continuation.resume(returning: .success(work())) }) {
                continuation.resume(returning: .failure(refusal))
            }
        }
        return try result.get()
    }

    /// Runs storage work on one of the threads. A refusal of the pool counts as an unavailable sink: nothing was done.
    func run<Value: Sendable>(
        storage work: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws(StorageError) -> Value {
        let result: Result<Value, StorageError>
        do {
            result = try await run { () -> Result<Value, StorageError> in
                do throws(StorageError) {
                    return .success(try work())
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw .unavailable(.init("no thread for storage work: \(error)"))
        }
        return try result.get()
    }

    /// Queues `work` for one of the threads; returns the reason if the pool refuses it.
    func submit(_ work: @escaping @Sendable () -> Void) -> Refusal? {
        let (refusal, isAwaited): (Refusal?, Bool) = state.withLock { state in
            if state.stopped { return (.stopped, false) }
            if state.waitingCount >= places { return (.overloaded, false) }
            state.queue.append(work)
            // Threads that are at work look for more before they wait.
            guard state.idle > 0 else { return (nil, false) }
            state.idle -= 1
            return (nil, true)
        }
        if isAwaited { wake() }
        return refusal
    }

    private func wake() {
        switch bell {
        case .descriptor(let bell): bell.raise()
        case .turns(let turns): turns { self.takeTurn() }
        }
    }

    /// Takes no more work, finishes the queued work, and returns when every thread has ended.
    func shutdown() async {
        stop()
        await withCheckedContinuation { continuation in
            let ended = state.withLock { state in
                guard state.living > 0 else { return true }
                state.waiting.append(continuation)
                return false
            }
            if ended { continuation.resume() }
        }
        let threads = state.withLock { state in
            defer { state.threads = [] }
            return state.threads
        }
        // Every thread is past its last piece of work, so joining takes next to no time.
        for thread in threads { thread.join() }
    }

    private func stop() {
        let idle = state.withLock { state in
            state.stopped = true
            defer { state.idle = 0 }
            return state.idle
        }
        for _ in 0..<idle { wake() }
    }

    /// The start of the oldest running call, in nanoseconds of the monotonic clock; `nil` while no thread has work.
    var busySince: Int64? {
        let oldest = state.withLock { $0.turns }.map { $0.since.load(ordering: .relaxed) }.min() ?? .max
        return oldest == .max ? nil : oldest
    }

    /// The key under which a thread keeps its `Turn`.
    private static let turnKey: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Notes that the work of this thread goes on: work of many calls does not hang as long as each of them returns. Does
    /// nothing on a thread of no pool.
    static func beat() {
        guard let turn = pthread_getspecific(turnKey) else { return }
        Unmanaged<Turn>.fromOpaque(turn).takeUnretainedValue().begin()
    }

    private func loop() {
        let turn = Turn()
        state.withLock { $0.turns.append(turn) }
        pthread_setspecific(Self.turnKey, Unmanaged.passUnretained(turn).toOpaque())
        // Cleared at the end: no work of this thread follows.
        defer { pthread_setspecific(Self.turnKey, nil) }
        var isOver = false
        while !isOver {
            let work: (@Sendable () -> Void)? = state.withLock { state in
                if let work = state.next() { return work }
                isOver = state.stopped
                if !isOver { state.idle += 1 }
                return nil
            }
            if let work {
                turn.begin()
                work()
                turn.end()
            } else if !isOver, case .descriptor(let bell) = bell {
                bell.take()
            }
        }
        end(turn)
    }

    /// Does one piece of work, as a thread that was woken; then waits for its next turn, or ends.
    private func takeTurn() {
        let turn = Turn()
        let (work, isOver): ((@Sendable () -> Void)?, Bool) = state.withLock { state in
            if let work = state.next() {
                state.turns.append(turn)
                return (work, false)
            }
            if !state.stopped { state.idle += 1 }
            return (nil, state.stopped)
        }
        if let work {
            turn.begin()
            work()
            state.withLock { $0.turns.removeAll { $0 === turn } }
            wake()
        } else if isOver {
            end(turn)
        }
    }

    /// Ends a thread.
    private func end(_ turn: Turn) {
        let waiting = state.withLock { state in
            state.turns.removeAll { $0 === turn }
            state.living -= 1
            guard state.living == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func start() throws(Errno) {
        state.withLock { $0.living += 1 }
        do {
            let thread = try SystemThread { [self] in loop() }
            state.withLock { $0.threads.append(thread) }
        } catch {
            state.withLock { $0.living -= 1 }
            throw error
        }
    }
}
