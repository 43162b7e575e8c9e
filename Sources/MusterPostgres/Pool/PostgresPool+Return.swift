import Synchronization

extension PostgresPool {
    /// Takes a connection back. An open transaction is rolled back first.
    func release(_ loan: Loan) async {
        switch loan.connection.condition.current {
        case .inTransaction: await loan.connection.rollBack()
        case .unanswered: return settle(loan)
        case .idle, .retiring, .broken: break
        }
        await takeBack(loan)
    }

    /// Takes a connection back once its last statement is answered, so that commits that wait for a standby do not take one
    /// connection of the server after the other. After `unansweredLimit`, and when the pool is shut down, the connection is
    /// closed, which ends no commit. The connection counts as lent meanwhile, so that `shutdown` waits for this task.
    private func settle(_ loan: Loan) {
        let end = timing.now() + limits.unansweredLimit
        Task {
            while timing.now() < end, state.withLock({ $0.machine.isRunning }) {
                if await loan.connection.settle(until: .now + .seconds(1)) { break }
            }
            await takeBack(loan)
        }
    }

    private func takeBack(_ loan: Loan) async {
        let isUsable = loan.connection.condition.current == .idle
        let now = timing.now()
        let (closing, waking) = state.withLock { state in
            var closing: [PostgresConnection] = []
            var waking: [Wakeup] = []
            switch state.machine.released(loan.id, isUsable: isUsable, now: now) {
            case .hand(let ticket):
                if let wakeup = state.tell(ticket, .use(loan)) { waking.append(wakeup) }
            case .keep:
                state.idle[loan.id] = loan.connection
            case .close(let wake):
                closing.append(loan.connection)
                waking = wake.compactMap { state.tell($0, .askAgain) }
            }
            closing += state.machine.expire(now: now).compactMap { state.idle.removeValue(forKey: $0) }
            return (closing, waking)
        }
        waking.forEach { $0.resume() }
        for connection in closing {
            await connection.close()
        }
        // Only now, so that a shutdown is over when the last connection is closed.
        state.withLock { $0.takeDrained() }.forEach { $0.resume() }
    }
}
