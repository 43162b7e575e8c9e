import MusterAPI
import MusterCore

/// What the worker does for a check of the sinks (adr/0048).
enum CheckWork: Sendable, Hashable {
    /// Nothing. Exits: `looking`.
    case none
    /// A page is being looked at. Exits: `looked`, `resting`, `none`, `looking` at another page.
    case looking(CheckOrder)
    /// The page was looked at: every sync says what was seen until an answer names another page, or none. Exits: `looking`,
    /// `none`.
    case looked(CheckReport)
    /// The page could not be looked at, and is not tried before this moment. Exits: `none`, `looking` at another page.
    case resting(CheckOrder, until: Int64)
}

extension WorkerMachine {
    /// What a sync says of the check.
    var checkReport: CheckReport? {
        switch check {
        case .none: nil
        case .looking(let order), .resting(let order, _): CheckReport(on: order, isUnderWay: true)
        case .looked(let report): report
        }
    }

    /// Whether an answer asks for a look at a page that the worker does not know.
    func isNews(_ order: CheckOrder?) -> Bool {
        guard let order, order.kind != .goOn else { return false }
        return order.name != checkReport?.name
    }

    /// Takes the page that an answer asks for. Without one, the check is over, or another session goes on with it.
    mutating func takeOrder(_ order: CheckOrder?, _ now: Int64) {
        guard let order else { return stopLooking() }
        // The next sync says nothing of the page, so that its answer gives it out again.
        if case .resting(_, let until) = check, now >= until { check = .none }
        guard isNews(order), course == .working else { return }
        check = .looking(order)
        effects.append(.look(order))
    }

    /// A page was looked at: the next sync says so, at once.
    mutating func takeLook(_ report: CheckReport) {
        guard case .looking(let order) = check, order.name == report.name, case .open(var open) = session else {
            return
        }
        check = .looked(report)
        open.hasNews = true
        session = .open(open)
    }

    /// A page could not be looked at. It is tried again after a while; if the sink is parked here, by another worker.
    mutating func missLook(_ page: CheckStep, _ now: Int64) {
        guard case .looking(let order) = check, order.name == page else { return }
        check = .resting(order, until: now + configuration.lookPause.wholeNanoseconds)
    }

    /// Gives up what is under way for a check.
    mutating func stopLooking() {
        if case .looking = check { effects.append(.stopLooking) }
        check = .none
    }
}
