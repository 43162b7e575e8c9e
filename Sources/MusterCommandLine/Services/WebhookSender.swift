import MusterCoordinator
import MusterCore
import MusterCurl

/// Posts deliveries of events over libcurl, to addresses that the guard allows: row 39 of the range contract applies to receivers too.
///
/// The guard checks every address at the moment of connecting: the address that a name had when the subscription was made may have changed.
/// No proxy is used, since the proxy would resolve the name.
struct WebhookSender: Sendable {
    private let client: CurlClient
    private let addressGuard: AddressGuard

    /// Starts the sender's thread, which ends with the last copy of the sender.
    ///
    /// - Throws: `CommandFailure.other` when libcurl or the system lacks the resources for it.
    init(addressGuard: AddressGuard) throws(CommandFailure) {
        do {
            client = CurlClient(loop: try CurlLoop(), userAgent: "muster/\(MusterVersion.current)")
        } catch {
            throw .other("the HTTP client does not start: \(error)")
        }
        self.addressGuard = addressGuard
    }

    /// The function by which a coordinator delivers.
    var post: WebhookSend {
        { request in await outcome(of: request) }
    }

    private func outcome(of request: WebhookRequest) async -> WebhookOutcome {
        var translated = HTTPRequest(
            method: "POST", url: request.url,
            headers: HeaderList(request.headers.map { HeaderField($0.name, $0.value) }), body: .bytes(request.body))
        translated.connectTimeout = request.timeout
        translated.responseTimeout = request.timeout
        translated.deadline = request.timeout
        translated.maxResponseBytes = Int(request.answerLimit.bytes)
        translated.addressAllowed = { [addressGuard] in addressGuard.allows($0) }
        do {
            let answer = try await client.sendForHead(translated)
            return .answered(
                WebhookAnswer(
                    status: answer.status, retryAfter: answer.headers["Retry-After"], date: answer.headers["Date"]))
        } catch {
            switch error {
            case .transfer(let failure): return .failed(failure.description)
            case .cancelled, .loopClosed, .responseTooLarge, .bodyFailed: return .cancelled
            }
        }
    }
}
