import MusterSystem
import MusterTestSupport
import Testing

@testable import MusterPostgres

@Suite struct PoolStateMachineTests {
    private let start = ContinuousClock.now
    private var machine = PoolStateMachineTests.machine()

    private static func machine(maximum: Int = 2, minimum: Int = 0, waiters: Int = 100) -> PoolStateMachine {
        PoolStateMachine(
            limits: .init(
                minimum: minimum,
                maximum: maximum,
                waiters: waiters,
                idleTimeout: .seconds(10),
                backoff: Backoff(first: .seconds(1), longest: .seconds(8), jitter: 0.5)
            )
        )
    }

    private func id(_ value: UInt64) -> PoolStateMachine.ConnectionID { .init(value: value) }

    /// Asks with new tickets, and returns those that have to wait.
    private mutating func fill(_ opening: Int, waiting: Int) -> [PoolStateMachine.Ticket] {
        for _ in 0..<opening {
            guard case .open(let id) = machine.ask(machine.makeTicket(), now: start) else {
                Issue.record("could not open")
                continue
            }
            _ = machine.opened(id, now: start)
        }
        return (0..<waiting).map { _ in
            let ticket = machine.makeTicket()
            #expect(machine.ask(ticket, now: start) == .wait(until: nil))
            return ticket
        }
    }

    @Test mutating func opensLazilyUpToTheLimitThenWaits() {
        let tickets = (0..<3).map { _ in machine.makeTicket() }
        #expect(machine.ask(tickets[0], now: start) == .open(id(1)))
        #expect(machine.ask(tickets[1], now: start) == .open(id(2)))
        #expect(machine.ask(tickets[2], now: start) == .wait(until: nil))
        #expect(machine.connectionCount == 2)
    }

    @Test mutating func returnedConnectionGoesToTheLongestWaiter() {
        let waiting = fill(2, waiting: 2)
        #expect(machine.released(id(2), isUsable: true, now: start) == .hand(to: waiting[0]))
        #expect(machine.released(id(1), isUsable: true, now: start) == .hand(to: waiting[1]))
        #expect(machine.released(id(1), isUsable: true, now: start) == .keep)
    }

    @Test mutating func newcomerDoesNotOvertakeWaiters() {
        let waiting = fill(2, waiting: 1)
        #expect(machine.released(id(1), isUsable: false, now: start) == .close(wake: waiting))
        let newcomer = machine.makeTicket()
        #expect(machine.ask(newcomer, now: start) == .wait(until: nil))
        #expect(machine.ask(waiting[0], now: start) == .open(id(3)))
    }

    @Test mutating func lastUsedConnectionIsLentFirst() {
        _ = fill(2, waiting: 0)
        #expect(machine.released(id(1), isUsable: true, now: start) == .keep)
        #expect(machine.released(id(2), isUsable: true, now: start) == .keep)
        #expect(machine.ask(machine.makeTicket(), now: start) == .use(id(2)))
    }

    @Test mutating func brokenConnectionLeavesRoomForAnother() {
        _ = fill(2, waiting: 0)
        #expect(machine.released(id(1), isUsable: false, now: start) == .close(wake: []))
        #expect(machine.ask(machine.makeTicket(), now: start) == .open(id(3)))
    }

    @Test mutating func failuresBackOffAndOneTriesForAll() {
        let first = machine.makeTicket()
        let second = machine.makeTicket()
        #expect(machine.ask(first, now: start) == .open(id(1)))
        #expect(machine.openFailed(id(1), .temporary, now: start, random: 1) == .wake([]))
        #expect(machine.ask(first, now: start) == .wait(until: start + .seconds(1)))
        #expect(machine.ask(second, now: start) == .wait(until: nil))
        // Even after the delay, the second ticket may not overtake the first.
        let later = start + .seconds(1)
        #expect(machine.ask(second, now: later) == .wait(until: nil))
        #expect(machine.ask(first, now: later) == .open(id(2)))
        // While one ticket tries, no other does; when it fails, the delay doubles.
        #expect(machine.ask(second, now: later) == .wait(until: nil))
        #expect(machine.openFailed(id(2), .temporary, now: later, random: 1) == .wake([second]))
        #expect(machine.ask(first, now: later) == .wait(until: later + .seconds(2)))
        #expect(machine.ask(first, now: later + .seconds(2)) == .open(id(3)))
        #expect(machine.opened(id(3), now: later) == .use(wake: [second]))
        #expect(machine.ask(second, now: later) == .open(id(4)))
    }

    @Test mutating func nextInLineTakesOverWhenTheHeadGivesUp() {
        let first = machine.makeTicket()
        let second = machine.makeTicket()
        _ = machine.ask(first, now: start)
        _ = machine.openFailed(id(1), .temporary, now: start, random: 1)
        _ = machine.ask(first, now: start)
        _ = machine.ask(second, now: start)
        #expect(machine.leave(first, now: start) == [second])
        #expect(machine.ask(second, now: start) == .wait(until: start + .seconds(1)))
    }

    @Test mutating func abandonedAttemptPassesToAWaiterWithoutBackoff() {
        machine = Self.machine(maximum: 1)
        let first = machine.makeTicket()
        let second = machine.makeTicket()
        #expect(machine.ask(first, now: start) == .open(id(1)))
        #expect(machine.ask(second, now: start) == .wait(until: nil))
        #expect(machine.openFailed(id(1), .abandoned, now: start, random: 1) == .wake([second]))
        #expect(machine.ask(second, now: start) == .open(id(2)))
    }

    @Test mutating func permanentFailureTellsAllWaiters() {
        machine = Self.machine(maximum: 1)
        _ = machine.ask(machine.makeTicket(), now: start)
        let waiting = fill(0, waiting: 3)
        #expect(machine.openFailed(id(1), .permanent, now: start, random: 0) == .fail(waiting))
        #expect(machine.waiterCount == 0)
    }

    @Test mutating func waitersAreBounded() {
        machine = Self.machine(maximum: 1, waiters: 1)
        _ = fill(1, waiting: 1)
        #expect(machine.ask(machine.makeTicket(), now: start) == .refuse)
    }

    @Test mutating func unusedConnectionsExpireDownToTheMinimum() {
        machine = Self.machine(maximum: 3, minimum: 1)
        _ = fill(3, waiting: 0)
        for number in 1...3 {
            _ = machine.released(id(UInt64(number)), isUsable: true, now: start + .seconds(number))
        }
        #expect(machine.expire(now: start + .seconds(10)) == [])
        #expect(machine.expire(now: start + .seconds(12)) == [id(1), id(2)])
        #expect(machine.expire(now: start + .seconds(100)) == [])
        #expect(machine.idleCount == 1)
    }

    @Test mutating func shutdownClosesIdleFailsWaitersAndWaitsForLoans() {
        let waiting = fill(2, waiting: 1)
        #expect(machine.shutDown() == .init(close: [], fail: waiting))
        #expect(!machine.isDrained)
        #expect(machine.ask(machine.makeTicket(), now: start) == .shutDown)
        #expect(machine.released(id(1), isUsable: true, now: start) == .close(wake: []))
        #expect(machine.released(id(2), isUsable: true, now: start) == .close(wake: []))
        #expect(machine.isDrained)
    }

    @Test mutating func connectionOpenedDuringShutdownIsClosed() {
        _ = machine.ask(machine.makeTicket(), now: start)
        _ = machine.shutDown()
        #expect(!machine.isDrained)
        #expect(machine.opened(id(1), now: start) == .close)
        #expect(machine.isDrained)
    }

    /// Random histories: there are never more connections than allowed, no ticket waits beside an idle connection, and no ticket is lost.
    @Test(arguments: UInt64(0)..<200) func randomHistoriesKeepTheRules(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var machine = Self.machine(maximum: Int.random(in: 1...4, using: &random))
        let limit = 4
        var now = start
        var opening: [(PoolStateMachine.ConnectionID, PoolStateMachine.Ticket)] = []
        var lent: [PoolStateMachine.ConnectionID] = []
        var askers: [PoolStateMachine.Ticket] = []
        var sleepers: [PoolStateMachine.Ticket: ContinuousClock.Instant?] = [:]

        func wake(_ tickets: [PoolStateMachine.Ticket]) {
            for ticket in tickets where sleepers.removeValue(forKey: ticket) != nil {
                askers.append(ticket)
            }
        }

        func step(stopping: Bool) {
            let choice = Int.random(in: stopping ? 1...4 : 0...6, using: &random)
            now += .milliseconds(Int.random(in: 0...500, using: &random))
            for (ticket, until) in sleepers {
                if let until, until <= now { wake([ticket]) }
            }
            switch choice {
            case 0:
                askers.append(machine.makeTicket())
            case 1, 2:
                guard let ticket = askers.popLast() else { return }
                switch machine.ask(ticket, now: now) {
                case .use(let id): lent.append(id)
                case .open(let id): opening.append((id, ticket))
                case .wait(let until): sleepers.updateValue(until, forKey: ticket)
                case .refuse, .shutDown: Issue.record("refused, seed \(seed)")
                }
            case 3:
                guard let (id, ticket) = opening.popLast() else { return }
                switch Int.random(in: stopping ? 0...0 : 0...2, using: &random) {
                case 0:
                    lent.append(id)
                    if case .use(let tickets) = machine.opened(id, now: now) { wake(tickets) }
                case 1:
                    askers.append(ticket)
                    if case .wake(let tickets) = machine.openFailed(id, .temporary, now: now, random: 0.5) {
                        wake(tickets)
                    }
                default:
                    if case .wake(let tickets) = machine.openFailed(id, .abandoned, now: now, random: 0.5) {
                        wake(tickets)
                    }
                }
            case 4:
                guard let id = lent.popLast() else { return }
                let isUsable = Bool.random(using: &random)
                switch machine.released(id, isUsable: isUsable, now: now) {
                case .hand(let ticket):
                    lent.append(id)
                    sleepers[ticket] = nil
                    askers.removeAll { $0 == ticket }
                case .keep: break
                case .close(let tickets): wake(tickets)
                }
            case 5:
                guard let ticket = sleepers.keys.min() else { return }
                sleepers[ticket] = nil
                wake(machine.leave(ticket, now: now))
            default:
                _ = machine.expire(now: now)
            }
            #expect(machine.connectionCount <= limit, "seed \(seed)")
            #expect(machine.connectionCount == lent.count + opening.count + machine.idleCount, "seed \(seed)")
            #expect(machine.idleCount == 0 || machine.waiterCount == 0 || !askers.isEmpty, "seed \(seed)")
        }

        for _ in 0..<300 { step(stopping: false) }
        // Once faults stop, every ticket is served.
        for _ in 0..<3_000 where !(askers.isEmpty && sleepers.isEmpty) { step(stopping: true) }
        #expect(askers.isEmpty && sleepers.isEmpty, "seed \(seed)")
    }
}
