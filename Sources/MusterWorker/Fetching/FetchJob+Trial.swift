import MusterAPI
import MusterCore
import MusterCurl

extension FetchJob {
    /// Asks the origin for the bytes of a lease of kind `trial`, and keeps nothing of them: says whether it serves another request for a
    /// file of which one request brings all (range contract, row 22).
    func tryAgain() async -> JobEnding {
        let plan = FetchPlan(lease, source: source)
        let settings: RequestSettings
        do throws(StorageError) {
            switch try await self.settings() {
            case .success(let known): settings = known
            case .failure(let refusal): return refused(.authentication, refusal.description)
            }
        } catch {
            return JobEnding(error)
        }
        if settings.isProxied, let reason = await refusal(byProxyOf: source.url) {
            return refused(.refusedAddress, reason)
        }
        let question = plan.question(from: lease.start)
        var request = plan.request(question, settings, fellBack: context.protocols.fellBack(origin))
        request.addressAllowed = { [sources = context.sources] in sources.allows($0) }
        if settings.isProxied {
            let redirects = ProxiedRedirects(context.sources)
            request.redirectAllowed = { redirects.allows($0) }
        }
        request.authentication = context.conduct.authentication(at: origin)
        let collector = AnswerCollector(limitBytes: question.range?.count ?? 1)
        let ending = await context.loops.withLoop(at: control.seat) { [request, control] loop in
            await collector.run(request, on: loop, control: control)
        }
        switch ending {
        case .answered(let head, _), .tooLarge(let head): return judge(head, question)
        case .failed(let error, let statistics):
            let failure = Report.Failure(kind: error.failureKind, detail: settings.withoutSecrets(error.description))
            return .failed(failure.following(OriginAnswer(nil, statistics)), nil, nil)
        case .cancelled: return control.wish == .abort ? .aborted : .released(nil, nil)
        }
    }

    private func judge(_ head: ResponseHead, _ question: FetchQuestion) -> JobEnding {
        let facts = ResponseFacts(
            status: head.status, headers: head.headers.fields.map { (name: $0.name, value: $0.value) })
        let failure: Report.Failure
        switch ResponseVerdict.judge(facts, to: question) {
        case .accept where head.status == 206: return .servedAgain
        case .refuse(let kind, let detail, let retryAfter):
            failure = Report.Failure(kind: kind, detail: detail, retryAfter: retryAfter)
        case .accept, .askUnconditionally, .askPlainly, .unmodified, .complete, .descend:
            failure = Report.Failure(kind: .badRange, detail: "the origin answered \(head.status)")
        }
        return .failed(failure.following(OriginAnswer(head, TransferStatistics())), nil, nil)
    }
}
