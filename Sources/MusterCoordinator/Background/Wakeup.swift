import MusterStore

/// Wakes the waiters for what a verb of the store has committed. This is the only place that knows all waiters.
///
/// The store calls it after each such commit (`Wake`), for every caller of the verb: a route, a sync, a round, a webhook's answer.
struct Wakeup: Sendable {
    /// Triggers claims for the syncs that wait in this coordinator.
    let claims = Signal()
    /// Triggers hints to other coordinators, for the syncs that wait there.
    let hints = Doorbell()
    /// Triggers the sequencing of committed events.
    let commits = Doorbell()
    /// Triggers deliveries that may be due.
    let deliveries = Doorbell()

    /// Wakes the waiters that `wake` contains.
    func callAsFunction(_ wake: Wake) {
        if wake.contains(.work) {
            claims.raiseNews()
            hints.ring()
        }
        if wake.contains(.events) { commits.ring() }
        if wake.contains(.deliveries) { deliveries.ring() }
    }
}
