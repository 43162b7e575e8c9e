/// Small requests with whole responses, over a ``CurlLoop``.
public struct CurlClient: Sendable {
    /// The loop that carries out the requests; its owner shuts it down.
    public let loop: CurlLoop
    /// The User-Agent of every request, nil for none.
    public var userAgent: String?
    /// A PEM file of certificate authorities to trust instead of the system's.
    public var caFile: String?
    /// A client certificate to offer.
    public var clientCertificate: ClientCertificate?
    /// The proxy that the requests use, if any.
    public var proxy: ProxyChoice

    /// Makes a client over a loop; the caller keeps the ownership of the loop.
    public init(loop: CurlLoop, userAgent: String? = nil, caFile: String? = nil) {
        self.loop = loop
        self.userAgent = userAgent
        self.caFile = caFile
        self.clientCertificate = nil
        self.proxy = .direct
    }

    /// Sends a request and waits for its whole response. Cancelling the task cancels the transfer.
    ///
    /// After an error of kind `transfer`, `cancelled` or `responseTooLarge` the peer may have acted on the request.
    public func send(_ request: HTTPRequest) async throws(CurlClientError) -> HTTPResponse {
        let exchange = HTTPExchange(maxResponseBytes: request.maxResponseBytes)
        let pipe = BodyPipe()
        let (transfer, stream) = transferRequest(for: request, pipe)
        let id: TransferID
        do {
            id = try loop.start(transfer, handler: exchange)
        } catch {
            throw .loopClosed
        }
        let loop = self.loop
        let ending = await withTaskCancellationHandler {
            guard let stream else { return await exchange.ending() }
            return await withTaskGroup(of: Void.self) { group in
                group.addTask { await pipe.fill(from: stream) { loop.resume(id) } }
                let ending = await exchange.ending()
                // The source may still be waiting for room, or for its own next chunk.
                pipe.close()
                group.cancelAll()
                return ending
            }
        } onCancel: {
            loop.cancel(id)
        }
        return try response(of: ending, request, pipe)
    }

    /// The transfer for a request, and the stream that produces its body; nil if the body is not a stream.
    func transferRequest(
        for request: HTTPRequest,
        _ pipe: BodyPipe
    ) -> (TransferRequest, stream: HTTPBodyStream?) {
        var transfer = TransferRequest(url: request.url, method: request.method, headers: request.headers)
        transfer.connectTimeout = request.connectTimeout
        transfer.isAlone = request.isAlone
        transfer.firstByteTimeout = request.responseTimeout
        transfer.deadline = request.deadline
        // Once a small response has begun, a minute without a byte means that it will not end.
        transfer.lowSpeed = LowSpeedLimit(bytesPerSecond: 1, over: .seconds(60))
        transfer.maxRedirects = request.maxRedirects
        transfer.addressAllowed = request.addressAllowed
        transfer.receiveBufferBytes = 64 * 1024
        transfer.userAgent = userAgent
        transfer.caFile = caFile
        transfer.clientCertificate = clientCertificate
        transfer.proxy = proxy
        switch request.body {
        case .none:
            return (transfer, nil)
        case .bytes(let bytes):
            transfer.body = .bytes(bytes)
            return (transfer, nil)
        case .stream(let stream, let length):
            transfer.body = .stream(pipe, length: length)
            return (transfer, stream)
        }
    }

    private func response(
        of ending: HTTPExchange.Ending,
        _ request: HTTPRequest,
        _ pipe: BodyPipe
    ) throws(CurlClientError) -> HTTPResponse {
        switch ending {
        case .response(let response): return response
        case .tooLarge: throw .responseTooLarge(limit: request.maxResponseBytes)
        case .cancelled: throw Task.isCancelled ? .cancelled : .loopClosed
        case .failed(let error):
            // A cancelled source ends with an error of its own, which is not the cause.
            if Task.isCancelled { throw .cancelled }
            if let failure = pipe.failure { throw .bodyFailed(failure) }
            throw .transfer(error)
        }
    }
}
