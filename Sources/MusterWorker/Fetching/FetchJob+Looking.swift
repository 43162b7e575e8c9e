import MusterAPI
import MusterCore
import MusterCurl

/// Requests whose bytes are not kept: they show what an origin serves.
extension FetchJob {
    /// What a look has shown.
    enum Sight: Sendable {
        /// A plain GET brings the content that is known.
        case served
        /// It does not; the text says why.
        case refused(String)
        /// It would bring another content.
        case changed(String)
        /// The job was told to end.
        case stopped
    }

    /// How such a request ended.
    enum Answer: Sendable {
        /// With this head, and with as many bytes as were asked for; `end` is set if the body ended with or before them.
        case came(ResponseHead, ResponseVerdict, end: DurablePrefix?)
        /// Without those bytes; with the head, if one came.
        case failed(TransferError, TransferStatistics, ResponseHead?)
        /// The worker cut it.
        case cancelled
    }

    /// Checks whether the source serves a plain GET, before the bytes of the content version are given up for one (range contract, "The ladder").
    func look(_ plan: FetchPlan, _ settings: RequestSettings, _ budgets: [ByteBudget]) async -> Sight {
        switch await answer(to: plan.look, plan, settings, bytes: plan.bytesToSee, budgets) {
        // A body that ends with its connection, and before all has come.
        case .came(let head, .accept, let end?)
        where end.offset < plan.bytesToSee && !head.headers.contains("Content-Encoding"):
            .refused("the body ended after \(end.offset) bytes")
        case .came(_, .accept, _): .served
        case .came(_, .refuse(.changed, let detail, _), _): .changed(detail)
        case .came(_, .refuse(_, let detail, _), _): .refused(detail)
        case .came(_, .descend(let detail, _), _): .refused(detail)
        case .came(let head, .askUnconditionally, _), .came(let head, .askPlainly, _), .came(let head, .unmodified, _),
            .came(let head, .complete, _):
            .refused("the origin answered \(head.status)")
        case .failed(let error, _, _): .refused(error.description)
        case .cancelled: .stopped
        }
    }

    /// Works on a lease of kind `trial`: asks the origin for its bytes beside a running request for the same file, and reports whether the origin serves both
    /// (range contract, row 22). A trial of the first bytes uses a plain GET. It also shows whether a plain GET brings them sooner than the file has to wait,
    /// or whether another source does.
    func tryAgain() async -> JobEnding {
        let isPlain = lease.start == 0
        let isOther = lease.isOtherMirror == true
        let budgets = context.budgets.enter(lease)
        defer { context.budgets.leave(lease) }
        // Under a byte budget, the budget would set the speed.
        if isPlain, budgets.contains(where: { $0.bytesPerSecond != nil }) { return .released(nil, nil) }
        var plan = FetchPlan(isOther ? lease.asAnother : lease, source: source)
        plan.manner = context.conduct.manner(of: origin)
        let settings: RequestSettings
        do throws(StorageError) {
            switch try await checkedSettings() {
            case .usable(let known): settings = known
            case .over(let ending): return ending
            }
        } catch {
            return JobEnding(error)
        }
        let question = isPlain ? plan.look : plan.question(from: lease.start)
        let bytes = isPlain ? lease.end ?? 1 : 1
        let time = isPlain ? context.configuration.trialTime : nil
        switch await answer(to: question, plan, settings, bytes: bytes, within: time, budgets) {
        case .came(let head, .accept, let end) where isPlain ? (end?.offset ?? bytes) >= bytes : head.status == 206:
            if !isOther { context.witnesses.servedAgain(origin) }
            if isPlain, !isOther { context.conduct.servedPlainlyFaster(origin) }
            return .servedAgain
        case .came(let head, .refuse(let kind, let detail, let retryAfter), _):
            let failure = Report.Failure(kind: kind, detail: detail, retryAfter: retryAfter)
            return .failed(failure.following(OriginAnswer(head, TransferStatistics())), nil, nil)
        case .came(let head, _, _):
            let failure = Report.Failure(kind: .badRange, detail: "the origin answered \(head.status)")
            return .failed(failure.following(OriginAnswer(head, TransferStatistics())), nil, nil)
        case .failed(let error, let statistics, _):
            let failure = Report.Failure(kind: error.failureKind, detail: settings.withoutSecrets(error.description))
            return .failed(failure.following(OriginAnswer(nil, statistics)), nil, nil)
        case .cancelled: return control.wish == .abort ? .aborted : .released(nil, nil)
        }
    }

    /// Notes for later leases whether the origin answered. A silence that may be due to the Range alone is not noted.
    func noteSilence(_ ending: FetchTransfer.Ending, to question: FetchQuestion) {
        switch ending.outcome {
        case .failed(.connectTimeout, _), .failed(.firstByteTimeout, _):
            // On a connection that was used before, the reuse alone may be the reason for a silence.
            let isKept = ending.outcome.statistics.connectionReused && !context.conduct.lingers(origin)
            guard !isKept || !context.conduct.doubtsKept(of: origin) else { return }
            if question.range == nil || lease.mayMoveOn == true { context.conduct.silent(origin) }
        default:
            guard ending.head != nil else { return }
            context.conduct.answered(origin, after: ending.outcome.statistics.startTransferTime)
        }
    }

    /// Asks, and takes `bytes` of the body. They have to come within `time`; without it, within 30 s or the time of the options' speed limit, whichever is
    /// longer.
    func answer(
        to question: FetchQuestion,
        _ plan: FetchPlan,
        _ settings: RequestSettings,
        bytes: Int64 = 1,
        within time: Duration? = nil,
        _ budgets: [ByteBudget] = []
    ) async -> Answer {
        let redirects = ProxiedRedirects(settings.isProxied ? context.sources : nil)
        var plan = plan
        while true {
            var request = request(question, plan, settings, redirects, budgets)
            // A body that takes longer is no better than parts.
            if bytes > 1 || request.lowSpeed == nil {
                request.lowSpeed = .bringing(bytes, within: time, request.lowSpeed)
                if let time { request.firstByteTimeout = min(request.firstByteTimeout, time) }
            }
            let collector = AnswerCollector(limitBytes: bytes, keepsBody: false)
            let ending = await context.loops.withLoop(for: request.url, at: control.seat) { [control] loop in
                await collector.run(request, on: loop, control: control)
            }
            switch ending {
            case .answered(let head, _, _), .tooLarge(let head):
                let end: DurablePrefix? = if case .answered(_, _, let read) = ending { read } else { nil }
                if request.authentication == .preemptive, request.hasCredentials, head.wantsDigest(of: origin) {
                    context.conduct.challenged(by: origin)
                    continue
                }
                if settings.isProxied, let reason = context.sources.refusal(byProxyOf: head.effectiveURL) {
                    return .came(head, .refuse(.refusedAddress, detail: reason, retryAfter: nil), end: end)
                }
                return .came(head, ResponseVerdict.judge(ResponseFacts(head), to: question), end: end)
            case .failed(let error, let statistics):
                guard !plan.manner.isAlone, error.isOfOtherAnswer(statistics) else {
                    return .failed(error, statistics, collector.head)
                }
                plan.manner.isAlone = true
            case .cancelled: return .cancelled
            }
        }
    }
}

extension LeaseDocument {
    /// The same lease for a source whose content may differ from that of the version: only the size has to be the same.
    fileprivate var asAnother: LeaseDocument {
        var other = self
        other.isOtherMirror = nil
        other.planned = false
        other.expectedSize = expectedSize ?? representation.size
        other.representation = Representation()
        return other
    }
}

extension LowSpeedLimit {
    /// The limit at which `bytes` come within `time`; without it, within 30 s or the time of `limit`, whichever is longer.
    static func bringing(_ bytes: Int64, within time: Duration?, _ limit: LowSpeedLimit? = nil) -> LowSpeedLimit {
        let over = time ?? max(limit?.over ?? .zero, .seconds(30))
        return LowSpeedLimit(
            bytesPerSecond: max(limit?.bytesPerSecond ?? 0, bytes / max(1, over.components.seconds), 1), over: over)
    }
}

extension ResponseHead {
    /// Whether the origin itself, not another one that it redirects to, asks for credentials by Digest (RFC 7616 §3.3).
    func wantsDigest(of origin: String) -> Bool {
        guard status == 401, (try? SourceURL(validating: effectiveURL))?.origin == origin else { return false }
        return headers.all("WWW-Authenticate").contains { $0.lowercased().contains("digest") }
    }
}
