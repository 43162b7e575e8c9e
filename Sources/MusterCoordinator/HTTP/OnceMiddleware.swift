import Crypto
import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import NIOCore

/// Runs a request that changes something, and has a name (`Idempotency-Key`), only once. A repetition, or a copy that was
/// delayed, gets the answer of the first one, whatever has happened since (I10, fault F7;
/// docs/adr/0040-a-request-is-done-once.md).
///
/// A refusal because of the current state (404, 409) is repeated as well, since a delayed copy of the request might
/// succeed. A request that can't be understood, or can't be done now (also by `Store.Refusal.passes`), has no effect, and its
/// name may come again.
struct OnceMiddleware<Context: RequestContext>: RouterMiddleware {
    let store: Store

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard request.method != .get, let key = try request.idempotencyKey() else {
            return try await next(request, context)
        }
        let (request, about) = try await Self.read(request)
        let named = NamedRequest(key: key, about: about)
        if let answer = try await store.answer(to: named) { return Response(answer) }
        do {
            let response = try await Store.$request.withValue(named) { try await next(request, context) }
            let (status, body) = (Int32(response.status.code), BodyCollector())
            try await response.body.write(body)
            return Response(
                try await store.keep(RequestAnswer(status: status, body: String(buffer: body.collected)), to: named))
        } catch is Store.RequestAnswered {
            // Another coordinator got the same request, and has done it.
            guard let answer = try await store.answer(to: named) else { throw Problem(.busy, "try again") }
            return Response(answer)
        } catch {
            let problem = Problem(error)
            guard [404, 409].contains(problem.status), (error as? Store.Refusal)?.passes != true else { throw error }
            let body = String(decoding: try JSONEncoder().encode(problem), as: UTF8.self)
            let refusal = RequestAnswer(status: Int32(problem.status), body: body)
            guard let answer = try await store.keep(refusal: refusal, of: named) else { throw error }
            return Response(answer)
        }
    }

    /// A digest of the request: the method, the path with its query, and the body. The body of a stream is not read for it.
    private static func read(_ request: Request) async throws -> (Request, about: String) {
        var request = request
        var digest = SHA256()
        digest.update(data: Data("\(request.method.rawValue) \(request.uri.description)\n".utf8))
        // A body whose declared length is too large is refused where it is read.
        let length = request.headers[.contentLength].flatMap { Int64($0) } ?? 0
        if try request.bodyForm != .lines, length <= Limits.requestBody.bytes {
            let body = try await request.body.collect(upTo: Int(Limits.requestBody.bytes))
            body.withUnsafeReadableBytes { digest.update(bufferPointer: $0) }
            request.body = RequestBody(buffer: body)
        }
        return (request, Data(digest.finalize()).base64EncodedString())
    }
}

/// Collects the body of an answer, which is a document.
private final class BodyCollector: ResponseBodyWriter {
    private(set) var collected = ByteBuffer()

    func write(_ buffer: ByteBuffer) { collected.writeImmutableBuffer(buffer) }

    func finish(_ trailingHeaders: HTTPFields?) {}
}

extension Response {
    /// A response that repeats a stored answer.
    fileprivate init(_ answer: RequestAnswer) {
        let isEmpty = answer.body.isEmpty
        self.init(
            status: .init(code: Int(answer.status)),
            headers: isEmpty ? [:] : [.contentType: "application/\(answer.status >= 400 ? "problem+" : "")json"],
            body: isEmpty ? .init() : ResponseBody(byteBuffer: ByteBuffer(string: answer.body)))
    }
}
