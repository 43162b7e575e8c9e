import MusterStore

/// Wakes those who wait for what a verb of the store has committed: the one place that knows who they are.
///
/// The store calls it after each such commit (`Wake`), for every caller of the verb: a route, a sync, a round, a webhook's answer.
struct Wakeup: Sendable {
    /// Claims for the syncs that wait here.
    let claims = Signal()
    /// Hints to other coordinators, whose syncs wait there.
    let hints = Doorbell()
    /// Events that want their positions.
    let commits = Doorbell()
    /// Deliveries that may be due.
    let deliveries = Doorbell()

    /// Wakes.
    func callAsFunction(_ wake: Wake) {
        if wake.contains(.work) {
            claims.raiseNews()
            hints.ring()
        }
        if wake.contains(.events) { commits.ring() }
        if wake.contains(.deliveries) { deliveries.ring() }
    }
}
