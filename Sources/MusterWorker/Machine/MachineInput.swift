import MusterAPI
import MusterCore

/// Everything that can happen to a worker, as input of its machine.
enum MachineInput: Sendable {
    /// The process has started, or a moment that `nextDeadline` named has come. Harmless at any time.
    case tick
    /// A coordinator opened the session that was asked for, and it has begun in those sinks that are not in trouble (adr/0017).
    case sessionOpened(SessionDocument, sinks: [SinkStatus] = [])
    /// No coordinator opened a session.
    case sessionRefused(CallFailure)
    /// The answer to a sync.
    case syncAnswered(SessionID, sequence: Int64, SyncResponse)
    /// A sync had no answer.
    case syncFailed(SessionID, sequence: Int64, CallFailure)
    /// The session was closed, or could not be reached to be closed: there is nothing more to try.
    case sessionClosed
    /// Something about a running lease.
    case job(LeaseName, JobNews)
    /// Body bytes came in since the last such input. Another input follows.
    case received(Int64)
    /// What was used of the shares of byte budgets since the last such input. Another input follows.
    case traffic([Traffic])
    /// A parked sink was tried.
    case sinkProbed(String, ProbeResult)
    /// A call to a sink has not returned since then. Told again as long as it does not.
    case sinkHangs(String, since: Int64)
    /// A page of a check was looked at.
    case checked(CheckReport)
    /// A page of a check could not be looked at: the sink is in trouble.
    case checkFailed(CheckStep)
    /// The operator wants the process to end.
    case drain
}

/// Why a call to a coordinator failed.
enum CallFailure: Sendable, Hashable {
    /// No coordinator can be reached, or it can't answer now.
    case unreachable
    /// 404: the session is over.
    case sessionGone
    /// A refusal, or an answer that is not of the protocol; the worker can only try again.
    case refused(String)
}

/// What the engine says about one lease.
enum JobNews: Sendable {
    /// The durable prefix grew, something was learned, or a long verification is alive.
    case progress(DurablePrefix?, Report.Learned?)
    /// All bytes are here and only storage is busy: the slot can serve the next transfer.
    case fetched
    /// The chunk ends at `end` now: nothing is written at or beyond it any more. `speed` is its average so far, in bytes
    /// per second.
    case shrunk(end: Int64, speed: Int64? = nil)
    /// The work is over; nothing is written for this lease any more.
    case ended(JobEnding)
}

/// How the work on one lease ended.
enum JobEnding: Sendable {
    /// The chunk is durable, or the file is in place.
    case done(DurablePrefix?, Report.Learned?, Report.Finished?)
    /// The leftovers are deleted, and the file of a succeeded task if that was to be removed.
    case purged(RemovedFile?)
    /// The resolver gave a fresh URL.
    case resolved(ResolverAnswer)
    /// The origin served another request for the file.
    case servedAgain
    /// The work failed.
    case failed(Report.Failure, DurablePrefix?, Report.Learned?)
    /// The lease is given back as asked; its bytes are durable up to the prefix.
    case released(DurablePrefix?, Report.Learned?)
    /// The source contradicts the way in which it was asked, as the text says; it is asked on that rung from now on.
    case restart(String, on: Rung)
    /// The sink is at fault, not the task.
    case sinkTrouble(SinkTrouble, DurablePrefix?, Report.Learned?)
    /// The sink has failed while a file was put in place or deleted: a loss of power may undo what was done. The lease stays held until a probe has made
    /// that durable (I13).
    case unsettled(SinkTrouble)
    /// It was told to abort.
    case aborted
}

/// What is wrong with a sink.
struct SinkTrouble: Error, Sendable, Hashable {
    /// `storageFull` or `storage`.
    var kind: FailureKind
    /// What was seen, in words.
    var detail: String
}

/// What trying a parked sink showed.
enum ProbeResult: Sendable, Hashable {
    /// It can be written again; what was moved and deleted among Muster's own files before is durable.
    case well(freeBytes: Int64?)
    /// It still can't be written. If it is only full, what was moved and deleted before is durable all the same.
    case trouble(SinkTrouble)
    /// The directory is the same, but the session's own directory is not in it any more: only another session can work there (adr/0017).
    case sessionEnded
}
