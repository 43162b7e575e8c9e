import MusterAPI
import MusterCore

/// Everything that the machine can ask the engine to do. The engine does it at once and in order; the results return as
/// `MachineInput`.
enum MachineEffect: Sendable, Hashable {
    /// Ask for a session; ends as `sessionOpened` or `sessionRefused`.
    case openSession(SessionRequest)
    /// Send a sync; ends as `syncAnswered` or `syncFailed`.
    case sync(SessionID, SyncRequest)
    /// The answer to this sync is not awaited any more; the request may be cut.
    case abandonSync(sequence: Int64)
    /// Every write has stopped: end the session; ends as `sessionClosed`.
    case closeSession(SessionID)
    /// From now on only addresses that this allows are asked; `nil` allows all.
    case guardAddresses(AddressGuard?)
    /// Writes are allowed until this moment of the monotonic clock.
    case trust(until: Int64)
    /// The trust has ended: nothing may be written until `resumeWriting`.
    case suspendWriting
    /// The trust was renewed after it had ended.
    case resumeWriting
    /// Work on a lease, on the same seat as the leases before it in its lane, whose connection it finds there; ends as
    /// `job(_, .ended)`.
    case start(LeaseDocument, seat: Int?)
    /// Make durable what is there and end the job as `released`.
    case release(LeaseName)
    /// Stop the job at once and delete nothing; it ends as `aborted`.
    case abort(LeaseName)
    /// Bring the end of a running chunk nearer; answered with `job(_, .shrunk)` before anything else is told to the machine.
    case shrink(LeaseName, end: Int64)
    /// Ask the job to give its lease back, if no bytes have come yet.
    case giveBackUntouched(LeaseName)
    /// Let a running chunk end later, unless it has reached the agreed end; answered with `job(_, .shrunk)`, or not at
    /// all.
    case lengthen(LeaseName, end: Int64)
    /// From now on transfers keep to these shares, and to no others.
    case share([BudgetShare])
    /// Try a parked sink; ends as `sinkProbed`.
    case probe(sink: String)
    /// Look at a page of a check, and at no earlier one; ends as `checked` or `checkFailed`.
    case look(CheckOrder)
    /// Stop looking at the page that is under way; nothing follows.
    case stopLooking
    /// Log a note for the operator.
    case log(MachineNote)
    /// The worker is done: end everything and return.
    case stop
}

/// What the machine tells an operator.
enum MachineNote: Sendable, Hashable {
    /// A session was opened.
    case sessionOpened(SessionID)
    /// The session is over, although this worker did not end it.
    case sessionLost(SessionID)
    /// No coordinator can be reached, which is said once per outage; or one refuses this worker, which is said when the reason is
    /// new, and from time to time while it lasts.
    case unreachable(CallFailure)
    /// Coordinators answer again.
    case reachable
    /// No coordinator renewed the session in time: writing stops.
    case trustEnded
    /// A renewal came after that: writing goes on.
    case trustRenewed
    /// A lease was taken away.
    case leaseLost(LeaseName)
    /// A report can't be stored, and the lease has failed for that reason.
    case reportRefused(LeaseName, String)
    /// A sink takes no work for now.
    case sinkParked(String, SinkTrouble)
    /// A sink works again.
    case sinkRecovered(String)
    /// The worker takes nothing more.
    case draining
    /// The drain ran out of time and leaves leases to expire.
    case drainCutShort(leases: Int)
}
