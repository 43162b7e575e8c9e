import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterCurl

/// The work on one resolve lease: asks the group's resolver for a fresh URL of one source (range contract, row 21).
struct ResolveJob: Sendable {
    let lease: LeaseDocument
    let station: SinkStation
    let context: JobContext
    let control: LeaseControl

    /// Maximum size of an answer, in bytes.
    static let answerLimitBytes: Int64 = 64 << 10
    /// Time limit of a request to the resolver, from the first packet to the last.
    private static let deadline: Duration = .seconds(90)

    /// Asks the resolver and returns how the job ended.
    func run() async -> JobEnding {
        guard let resolver = lease.resolver, let question = lease.question else {
            return failed(.authentication, "no resolver is named")
        }
        var request: TransferRequest
        do throws(StorageError) {
            switch try await self.request(resolver, question) {
            case .success(let known): request = known
            case .failure(let refusal): return failed(.authentication, refusal.description)
            }
        } catch {
            return JobEnding(error)
        }
        request.addressAllowed = { [sources = context.sources] in sources.allows($0) }
        let collector = AnswerCollector(limitBytes: Self.answerLimitBytes)
        let ending = await context.loops.withLoop(for: request.url) { [request, control] loop in
            await collector.run(request, on: loop, control: control)
        }
        switch ending {
        case .answered(let head, let body, _): return Self.judge(head, body, failed)
        case .tooLarge(let head):
            return failed(
                .authentication,
                "the resolver's answer is over \(Self.answerLimitBytes) bytes",
                OriginAnswer(head, TransferStatistics())
            )
        case .failed(let error, let statistics):
            return failed(error.failureKind, "the resolver: \(error.description)", OriginAnswer(nil, statistics))
        case .cancelled: return control.wish == .abort ? .aborted : .released(nil, nil)
        }
    }

    private typealias Fail = (FailureKind, String, OriginAnswer?, Int64?) -> JobEnding

    private static func judge(_ head: ResponseHead, _ body: [UInt8], _ failed: Fail) -> JobEnding {
        let answer = OriginAnswer(head, TransferStatistics())
        guard head.status == 200 else {
            // Another status of 2xx or 3xx carries no answer either; it is handled like an error status.
            return failed(
                .status(head.status),
                "the resolver answered \(head.status)",
                answer,
                ResponseFacts(head).retryAfterSeconds
            )
        }
        guard let fresh = try? JSONDecoder().decode(ResolverAnswer.self, from: Data(body)) else {
            return failed(.authentication, "the resolver's answer is no JSON object with a URL", answer, nil)
        }
        do {
            _ = try fresh.checked()
            return .resolved(fresh)
        } catch {
            return failed(.authentication, "the resolver's answer can't be used: \(error)", answer, nil)
        }
    }

    private func request(
        _ resolver: Resolver,
        _ question: ResolverQuestion
    ) async throws(StorageError) -> Result<TransferRequest, SecretRefusal> {
        // The certificate authorities that the group trusts for its origins also apply to its resolver.
        let authorities = lease.options?.caFile
        let make = { @Sendable [context] () -> Result<TransferRequest, SecretRefusal> in
            Result { () throws(SecretRefusal) in
                let secrets = context.secrets.sending(to: resolver.url)
                var request = TransferRequest(url: resolver.url, method: "POST")
                request.caFile =
                    try RequestSettings.file(authorities, secrets) ?? context.configuration.caFile
                request.headers = HeaderList(
                    try RequestSettings.merged(
                        ["Content-Type": "application/json", "Accept": "application/json"],
                        over: resolver.headers ?? [:],
                        secrets
                    )
                )
                return request
            }
        }
        let isBlocking = authorities != nil || resolver.headers?.values.contains(where: \.isInFile) == true
        var result = isBlocking ? try await station.pool.run { () throws(StorageError) in make() } : make()
        guard case .success(var request) = result else { return result }
        // A question consists of strings and numbers, so encoding it never fails.
        request.body = .bytes(Array((try? JSONEncoder().encode(question)) ?? Data()))
        request.userAgent = "muster/\(context.configuration.version)"
        request.connectTimeout = .seconds(15)
        request.firstByteTimeout = .seconds(60)
        request.deadline = Self.deadline
        // A redirect would take the question, with the URL in it, elsewhere.
        request.maxRedirects = 0
        result = .success(request)
        return result
    }

    private func failed(
        _ kind: FailureKind,
        _ detail: String,
        _ answer: OriginAnswer? = nil,
        _ retryAfter: Int64? = nil
    ) -> JobEnding {
        context.logger.debug(
            "A resolver did not help",
            metadata: .init([.task: "\(lease.task)", .kind: kind.rawValue, .reason: detail])
        )
        let failure = Report.Failure(
            kind: kind,
            detail: detail,
            retryAfter: retryAfter,
            source: lease.question?.source ?? lease.source?.ordinal
        )
        return .failed(failure.following(answer), nil, nil)
    }
}
