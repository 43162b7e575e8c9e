/// What to do with a response, decided from its head before any byte of its body.
public enum HeadVerdict: Sendable, Hashable {
    /// Deliver the body, at most `limit` bytes of it if a limit is given. If the peer sends (or announces) more, the
    /// first `limit` bytes are delivered, the connection is dropped, and the outcome is `completed` with
    /// ``BodyEnd/surplus``. A limit on its speed takes the place of ``TransferRequest/lowSpeed``.
    case accept(limit: Int64?, lowSpeed: LowSpeedLimit? = nil)
    /// Deliver nothing; the outcome is ``TransferOutcome/refused(_:)``.
    case refuse
}

/// What to do after a piece of the body.
public enum BodyVerdict: Sendable, Hashable {
    /// Go on.
    case proceed
    /// The bytes are taken, but no more are wanted before ``CurlLoop/resume(_:)``. No further `body` call comes until
    /// then; `finished` can come, if this was the last piece, or the transfer fails or is cancelled.
    case pause
    /// End the transfer now; the outcome is ``TransferOutcome/stopped(_:)`` and the connection is dropped.
    case stop
}

/// Receives what happens to one transfer.
///
/// All calls are made on a thread of the loop, never two at once, in the order `stalled`…, `head`, `body`…, `finished`, and `isTooSlow` between them. They
/// must not block for long, since every transfer of that thread waits meanwhile. They may call ``CurlLoop/start(_:handler:)``,
/// ``CurlLoop/cancel(_:)``, ``CurlLoop/resume(_:)`` and ``CurlLoop/closeIdle(like:)``. The loop keeps the handler alive until
/// `finished` returned.
public protocol TransferHandler: AnyObject, Sendable {
    /// The final response's head has come. Called exactly once before the first body byte, also if there is no body;
    /// not called if the transfer ends sooner.
    func head(_ head: ResponseHead) -> HeadVerdict

    /// The next piece of the body, 1 byte to 16 KiB, valid only during the call.
    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict

    /// No answer has come for a second, or for a further second. Returns whether the loop is to close its idle
    /// connections to the origin until an answer comes: the origin may serve no other connection before. The default is
    /// `false`.
    func stalled() -> Bool

    /// The answer, or the body, is slower than its limit allows. Returns whether the transfer fails; if not, the time of
    /// the limit begins anew. The default is `true`.
    func isTooSlow() -> Bool

    /// The transfer is over. Called exactly once for every started transfer; nothing is called for it afterwards.
    func finished(_ outcome: TransferOutcome)
}

extension TransferHandler {
    /// Leaves the connections alone.
    public func stalled() -> Bool { false }

    /// Fails the transfer.
    public func isTooSlow() -> Bool { true }
}
