import MusterSystem

/// The pool without its I/O: which caller has which connection, which callers wait, and which caller may open another connection.
///
/// Callers do the work themselves: a caller that asks for a connection that does not exist yet is told to open it. After
/// a failure to connect, one caller at a time tries again, at the head of the queue and after a backoff. Connections go
/// to waiters in the order in which the waiters came.
struct PoolStateMachine {
    typealias Instant = ContinuousClock.Instant

    /// A connection's number, never used again.
    struct ConnectionID: Hashable, Sendable {
        var value: UInt64
    }

    /// A waiter's number, in the order of arrival.
    struct Ticket: Hashable, Comparable, Sendable {
        var value: UInt64

        static func < (lhs: Ticket, rhs: Ticket) -> Bool { lhs.value < rhs.value }
    }

    struct Limits: Sendable {
        /// How many connections stay open without being used.
        var minimum: Int
        var maximum: Int
        var waiters: Int
        /// How long a connection beyond the minimum may stay unused before it is closed.
        var idleTimeout: Duration
        var backoff: Backoff
    }

    private enum Slot {
        /// A caller is opening it. Exits: `lent` (opened), gone (failed).
        case opening
        /// A caller uses it. Exits: `idle` or `lent` again (released), gone (broken).
        case lent
        /// No caller uses it. Exits: `lent`, gone (too long unused, shutdown).
        case idle(since: Instant)
    }

    private enum Health {
        /// The last attempt to connect succeeded. Exits: `failing`.
        case well
        /// `count` attempts failed in a row. Exits: `well` when one succeeds.
        case failing(count: Int, nextAttempt: Instant)
    }

    private enum Life {
        /// Connections are given out. Exits: `ending`.
        case running
        /// No connection is given out any more; lent connections are closed when they return.
        case ending
    }

    private let limits: Limits
    private var slots: [ConnectionID: Slot] = [:]
    /// Idle connections. The most recently used connection is at the end and is lent first, so that the others can expire.
    private var idle: [ConnectionID] = []
    /// In order of arrival.
    private var waiters: [Ticket] = []
    private var health = Health.well
    private var life = Life.running
    private var lastConnection: UInt64 = 0
    private var lastTicket: UInt64 = 0

    init(limits: Limits) {
        self.limits = limits
    }

    var connectionCount: Int { slots.count }
    var idleCount: Int { idle.count }
    var waiterCount: Int { waiters.count }
    /// Whether connections are lent.
    var isRunning: Bool { life == .running }
    /// Whether everything is closed, after a shutdown.
    var isDrained: Bool { life == .ending && slots.isEmpty }

    mutating func makeTicket() -> Ticket {
        lastTicket += 1
        return Ticket(value: lastTicket)
    }

    // MARK: Asking

    enum AskEffect: Equatable {
        /// Use this connection.
        case use(ConnectionID)
        /// Open a connection under this number, and report `opened` or `openFailed`.
        case open(ConnectionID)
        /// Wait to be told; if nothing came until the instant, ask again with the same ticket.
        case wait(until: Instant?)
        /// Too many callers wait.
        case refuse
        /// The pool is shut down.
        case shutDown
    }

    /// A caller wants a connection, for the first time or again.
    mutating func ask(_ ticket: Ticket, now: Instant) -> AskEffect {
        guard life == .running else {
            forget(ticket)
            return .shutDown
        }
        let place = waiters.firstIndex { $0 >= ticket } ?? waiters.count
        let isQueued = place < waiters.count && waiters[place] == ticket
        if place < idle.count, let id = idle.popLast() {
            slots[id] = .lent
            forget(ticket)
            return .use(id)
        }
        if mayOpen(place: place, now: now) {
            lastConnection += 1
            let id = ConnectionID(value: lastConnection)
            slots[id] = .opening
            forget(ticket)
            return .open(id)
        }
        if !isQueued {
            guard waiters.count < limits.waiters else { return .refuse }
            waiters.insert(ticket, at: place)
        }
        // Only the head of the queue may try again after a failure, so only it has to wake up for that.
        if place == 0, case .failing(_, let nextAttempt) = health, openingCount == 0, slots.count < limits.maximum {
            return .wait(until: nextAttempt)
        }
        return .wait(until: nil)
    }

    /// Removes a waiter that gave up. Returns the waiters that should ask again because of it.
    mutating func leave(_ ticket: Ticket, now: Instant) -> [Ticket] {
        forget(ticket)
        return entitled(now: now)
    }

    // MARK: Opening

    enum OpenedEffect: Equatable {
        /// The opener uses the connection; these waiters should ask again.
        case use(wake: [Ticket])
        /// The pool was shut down meanwhile: close it.
        case close
    }

    mutating func opened(_ id: ConnectionID, now: Instant) -> OpenedEffect {
        health = .well
        guard life == .running else {
            slots[id] = nil
            return .close
        }
        slots[id] = .lent
        return .use(wake: entitled(now: now))
    }

    enum OpenFailure {
        /// The opener was cancelled: it says nothing of the server.
        case abandoned
        /// The server could not be reached; trying again may help.
        case temporary
        /// Trying again cannot help (wrong password, no such database).
        case permanent
    }

    enum OpenFailedEffect: Equatable {
        /// These waiters should ask again.
        case wake([Ticket])
        /// These waiters should be told of the failure.
        case fail([Ticket])
    }

    mutating func openFailed(
        _ id: ConnectionID,
        _ failure: OpenFailure,
        now: Instant,
        random: Double
    ) -> OpenFailedEffect {
        slots[id] = nil
        switch failure {
        case .abandoned:
            return .wake(entitled(now: now))
        case .temporary:
            noteFailure(now: now, random: random)
            // The head of the queue must learn the new delay.
            return .wake(Array(waiters.prefix(1)))
        case .permanent:
            noteFailure(now: now, random: random)
            defer { waiters = [] }
            return .fail(waiters)
        }
    }

    private mutating func noteFailure(now: Instant, random: Double) {
        let count =
            switch health {
            case .well: 1
            case .failing(let count, _): count + 1
            }
        let delay = limits.backoff.delay(failures: count, random: random)
        health = .failing(count: count, nextAttempt: now + delay)
    }

    // MARK: Returning

    enum ReleaseEffect: Equatable {
        /// Hand it to this waiter.
        case hand(to: Ticket)
        /// Keep it.
        case keep
        /// Close it; these waiters should ask again.
        case close(wake: [Ticket])
    }

    mutating func released(_ id: ConnectionID, isUsable: Bool, now: Instant) -> ReleaseEffect {
        guard isUsable, life == .running else {
            slots[id] = nil
            return .close(wake: entitled(now: now))
        }
        if !waiters.isEmpty {
            return .hand(to: waiters.removeFirst())
        }
        slots[id] = .idle(since: now)
        idle.append(id)
        return .keep
    }

    /// Removes the connections that were unused for too long, and returns them to be closed.
    mutating func expire(now: Instant) -> [ConnectionID] {
        var expired: [ConnectionID] = []
        // The connection that was unused for longest comes first.
        while slots.count > limits.minimum, let id = idle.first, case .idle(let since) = slots[id],
            since + limits.idleTimeout <= now
        {
            idle.removeFirst()
            slots[id] = nil
            expired.append(id)
        }
        return expired
    }

    // MARK: Ending

    struct ShutdownEffect: Equatable {
        var close: [ConnectionID]
        var fail: [Ticket]
    }

    mutating func shutDown() -> ShutdownEffect {
        let effect = ShutdownEffect(close: idle, fail: waiters)
        life = .ending
        for id in idle {
            slots[id] = nil
        }
        idle = []
        waiters = []
        return effect
    }

    // MARK: Rules

    private var openingCount: Int {
        slots.values.count { slot in
            switch slot {
            case .opening: true
            case .lent, .idle: false
            }
        }
    }

    /// Whether the waiter at `place` of the queue may open a connection now.
    private func mayOpen(place: Int, now: Instant) -> Bool {
        switch health {
        case .well: place < limits.maximum - slots.count
        case .failing(_, let nextAttempt):
            place == 0 && slots.count < limits.maximum && openingCount == 0 && nextAttempt <= now
        }
    }

    /// The waiters that would get a connection if they asked now, or need a new time to ask.
    private func entitled(now: Instant) -> [Ticket] {
        switch health {
        case .well: Array(waiters.prefix(max(0, limits.maximum - slots.count)))
        case .failing: Array(waiters.prefix(openingCount == 0 ? 1 : 0))
        }
    }

    private mutating func forget(_ ticket: Ticket) {
        waiters.removeAll { $0 == ticket }
    }
}
