/// Carries out any number of transfers at once, each for a ``TransferHandler``. `CurlLoop` does so by libcurl; the simulation has a loop
/// without sockets (adr/0050).
public protocol TransferLoop: AnyObject, Sendable {
    /// Begins a transfer; its handler gets exactly one `finished`. Throws `closed` if the loop is (being) shut down; then the handler is
    /// never called.
    @discardableResult
    func start(_ request: TransferRequest, handler: any TransferHandler) throws(CurlLoopError) -> TransferID
    /// Ends a transfer: its `finished` comes soon. Without effect on a transfer that is over.
    func cancel(_ id: TransferID)
    /// Goes on with a transfer whose handler paused. Without effect on a transfer that is not paused, or is over.
    func resume(_ id: TransferID)
    /// Closes the idle connections that a request like this one could reuse.
    func closeIdle(like request: TransferRequest)
    /// Cancels every transfer, and returns after the last `finished`.
    func shutdown() async
}
