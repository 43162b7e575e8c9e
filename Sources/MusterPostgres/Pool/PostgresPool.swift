public import Logging
public import MusterSystem
import Synchronization

/// A bounded number of connections, opened when they are needed and lent in the order of asking.
///
/// It has no task of its own: the caller that needs a connection opens it. `shutdown()` waits until all connections are
/// returned and closed.
public final class PostgresPool: Sendable {
    /// The limits of a pool.
    public struct Limits: Sendable {
        /// How many unused connections stay open.
        public var minimumConnections = 0
        /// How many connections there are at most.
        public var maximumConnections = 8
        /// How many callers may wait at once; the next is refused.
        public var maximumWaiters = 10_000
        /// How long a connection beyond the minimum may stay unused before it is closed (checked when another is returned).
        public var idleTimeout: Duration = .seconds(300)
        /// How long a caller waits for a connection if it names no deadline.
        public var acquireTimeout: Duration = .seconds(10)
        /// How long a connection is kept whose last statement may be committing and is not answered.
        public var unansweredLimit: Duration = .seconds(60)
        /// The delays between attempts to connect while they fail.
        public var connectBackoff = Backoff.connecting
        /// The delays before a transaction that lost against another is run again.
        public var transactionBackoff = Backoff.transactions

        /// The default limits, with another number of connections.
        public init(maximumConnections: Int = 8) {
            self.maximumConnections = maximumConnections
        }
    }

    /// A lent connection, and its number in the state machine.
    struct Loan: Sendable {
        let id: PoolStateMachine.ConnectionID
        let connection: PostgresConnection
    }

    enum Word: Sendable {
        /// Here is a connection.
        case use(Loan)
        /// Ask again.
        case askAgain
        /// There will be no connection.
        case fail(PostgresError)
    }

    struct State {
        var machine: PoolStateMachine
        /// Connections that no caller uses.
        var idle: [PoolStateMachine.ConnectionID: PostgresConnection] = [:]
        var waiting: [PoolStateMachine.Ticket: CheckedContinuation<Word, Never>] = [:]
        /// Answers for waiters that have not begun to wait yet.
        var early: [PoolStateMachine.Ticket: Word] = [:]
        var drained: [CheckedContinuation<Void, Never>] = []
        /// The last failure to connect, for callers whose deadline passes meanwhile.
        var lastFailure: PostgresError?
    }

    let state: Mutex<State>
    let limits: Limits
    let timing: PostgresTiming
    let logger: Logger
    private let configuration: PostgresConfiguration
    private let prepare: @Sendable (PostgresConnection) async throws -> Void
    let onFailure: @Sendable (PostgresError) -> Void

    /// Makes an empty pool.
    ///
    /// - Parameters:
    ///   - onFailure: gets every error of a caller that used a connection, or could not get one; it must not block.
    ///   - prepare: is run on every connection before it is lent for the first time. When it throws, the connection
    ///     is closed, and the caller that asked for it gets the error. After an error of the kind `unreachable` the
    ///     next host of the configuration is tried.
    public init(
        _ configuration: PostgresConfiguration,
        limits: Limits = Limits(),
        timing: PostgresTiming = .system,
        logger: Logger = Logger(label: "muster.postgres"),
        onFailure: @escaping @Sendable (PostgresError) -> Void = { _ in },
        prepare: @escaping @Sendable (PostgresConnection) async throws -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.prepare = prepare
        self.onFailure = onFailure
        self.limits = limits
        self.timing = timing
        self.logger = logger
        let machine = PoolStateMachine(
            limits: .init(
                minimum: limits.minimumConnections, maximum: max(1, limits.maximumConnections),
                waiters: limits.maximumWaiters, idleTimeout: limits.idleTimeout, backoff: limits.connectBackoff))
        state = Mutex(State(machine: machine))
    }

    /// How many connections there are, including those that are being opened.
    public var connectionCount: Int { state.withLock { $0.machine.connectionCount } }
    /// How many callers wait for a connection.
    public var waiterCount: Int { state.withLock { $0.machine.waiterCount } }

    /// Lends no more connections, waits until all lent ones are returned, and closes them. May be called repeatedly.
    public func shutdown() async {
        let (closing, waking) = state.withLock { state in
            let effect = state.machine.shutDown()
            let closing = effect.close.compactMap { state.idle.removeValue(forKey: $0) }
            let waking = effect.fail.compactMap { state.tell($0, .fail(.shutDown)) }
            return (closing, waking)
        }
        waking.forEach { $0.resume() }
        for connection in closing {
            await connection.close()
        }
        await withCheckedContinuation { continuation in
            let isDrained = state.withLock { state in
                if !state.machine.isDrained { state.drained.append(continuation) }
                return state.machine.isDrained
            }
            if isDrained { continuation.resume() }
        }
    }

    // MARK: Lending

    private enum Step {
        case use(Loan)
        case open(PoolStateMachine.ConnectionID)
        case wait(until: ContinuousClock.Instant)
        case fail(any Error)
    }

    /// Waits for a connection.
    func acquire(deadline: ContinuousClock.Instant?) async throws -> Loan {
        try Task.checkCancellation()
        let deadline = deadline ?? timing.now() + limits.acquireTimeout
        let ticket = state.withLock { $0.machine.makeTicket() }
        while true {
            switch nextStep(ticket, deadline: deadline) {
            case .use(let loan): return loan
            case .fail(let error): throw error
            case .open(let id):
                if let loan = try await open(id, deadline: deadline) { return loan }
            case .wait(let until):
                switch await wait(ticket, until: until) {
                case .use(let loan): return loan
                case .askAgain: break
                case .fail(let error): throw error
                }
            }
        }
    }

    /// Decides under one lock whether a waiter got a connection, gives up, or goes on: otherwise a connection that is
    /// handed to it while it gives up would be lost.
    private func nextStep(_ ticket: PoolStateMachine.Ticket, deadline: ContinuousClock.Instant) -> Step {
        let now = timing.now()
        let isCancelled = Task.isCancelled
        let (step, waking) = state.withLock { state -> (Step, [Wakeup]) in
            switch state.early.removeValue(forKey: ticket) {
            case .use(let loan): return (.use(loan), [])
            case .fail(let error): return (.fail(error), [])
            case .askAgain, nil: break
            }
            guard !isCancelled, now < deadline else {
                let waking = state.machine.leave(ticket, now: now).compactMap { state.tell($0, .askAgain) }
                if isCancelled { return (.fail(CancellationError()), waking) }
                // If the server is down, the caller gets that failure, rather than that no connection was free.
                return (.fail(state.lastFailure ?? .deadlineExceeded(.waitingForConnection)), waking)
            }
            switch state.machine.ask(ticket, now: now) {
            case .use(let id):
                guard let connection = state.idle.removeValue(forKey: id) else {
                    return (.fail(PostgresError.shutDown), [])
                }
                return (.use(Loan(id: id, connection: connection)), [])
            case .open(let id): return (.open(id), [])
            case .wait(let until): return (.wait(until: min(until ?? deadline, deadline)), [])
            case .refuse: return (.fail(PostgresError.misuse(.tooManyWaiters)), [])
            case .shutDown: return (.fail(PostgresError.shutDown), [])
            }
        }
        waking.forEach { $0.resume() }
        return step
    }

    /// Opens a connection for a waiter. `nil` when that failed and may be tried again.
    private func open(_ id: PoolStateMachine.ConnectionID, deadline: ContinuousClock.Instant) async throws -> Loan? {
        let connection: PostgresConnection
        do {
            connection = try await PostgresConnection.open(
                configuration, logger: logger, deadline: deadline, admit: prepare)
        } catch let error as PostgresError {
            let failure: PoolStateMachine.OpenFailure = error.isPermanentForConnecting ? .permanent : .temporary
            openFailed(id, failure, error)
            if failure == .permanent { throw error }
            return nil
        } catch {
            openFailed(id, .abandoned, nil)
            throw error
        }
        let now = timing.now()
        let (effect, waking) = state.withLock { state in
            let effect = state.machine.opened(id, now: now)
            state.lastFailure = nil
            switch effect {
            case .use(let wake): return (effect, wake.compactMap { state.tell($0, .askAgain) })
            case .close: return (effect, state.takeDrained())
            }
        }
        waking.forEach { $0.resume() }
        switch effect {
        case .use: return Loan(id: id, connection: connection)
        case .close:
            await connection.close()
            throw PostgresError.shutDown
        }
    }

    private func openFailed(
        _ id: PoolStateMachine.ConnectionID,
        _ failure: PoolStateMachine.OpenFailure,
        _ error: PostgresError?
    ) {
        let now = timing.now()
        let random = timing.random()
        let (isFirst, waking) = state.withLock { state in
            let isFirst = state.lastFailure == nil
            if let error { state.lastFailure = error }
            let effect = state.machine.openFailed(id, failure, now: now, random: random)
            let waking =
                switch effect {
                case .wake(let tickets): tickets.compactMap { state.tell($0, .askAgain) }
                case .fail(let tickets): tickets.compactMap { state.tell($0, .fail(error ?? .shutDown)) }
                }
            return (isFirst, waking + state.takeDrained())
        }
        // A warning once per outage: many callers ask again and again meanwhile.
        if let error {
            let level: Logger.Level = isFirst ? .warning : .debug
            logger.log(level: level, "PostgreSQL cannot be reached", metadata: [LogKey.error: "\(error)"])
        }
        waking.forEach { $0.resume() }
    }

    /// Waits for an answer, until an instant, or the task's cancellation; the latter two end as `askAgain`.
    private func wait(_ ticket: PoolStateMachine.Ticket, until: ContinuousClock.Instant) async -> Word {
        await withTaskGroup(of: Word.self) { group in
            group.addTask { await self.word(for: ticket) }
            group.addTask { [timing] in
                // Cancelled or not, the other task is told to stop waiting below.
                try? await timing.sleep(until)
                return .askAgain
            }
            var word = Word.askAgain
            for await next in group {
                // A connection that was handed over while time ran out must not be lost, so both results are read.
                switch next {
                case .use, .fail: word = next
                case .askAgain: break
                }
                group.cancelAll()
            }
            return word
        }
    }

    private func word(for ticket: PoolStateMachine.Ticket) async -> Word {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early = state.withLock { state -> Word? in
                    if let word = state.early.removeValue(forKey: ticket) { return word }
                    if Task.isCancelled { return .askAgain }
                    state.waiting[ticket] = continuation
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: ticket) }
            continuation?.resume(returning: .askAgain)
        }
    }
}

extension PostgresPool {
    /// A continuation and what to resume it with, carried out of the lock.
    struct Wakeup: Sendable {
        let resume: @Sendable () -> Void
    }
}

extension PostgresPool.State {
    /// Gives an answer to a waiter. A waiter that does not wait yet finds the answer when it begins to.
    mutating func tell(_ ticket: PoolStateMachine.Ticket, _ word: PostgresPool.Word) -> PostgresPool.Wakeup? {
        guard let continuation = waiting.removeValue(forKey: ticket) else {
            early[ticket] = word
            return nil
        }
        return PostgresPool.Wakeup { continuation.resume(returning: word) }
    }

    /// The callers that wait for the end of a shutdown, once it has come.
    mutating func takeDrained() -> [PostgresPool.Wakeup] {
        guard machine.isDrained else { return [] }
        defer { drained = [] }
        return drained.map { continuation in PostgresPool.Wakeup { continuation.resume() } }
    }
}
