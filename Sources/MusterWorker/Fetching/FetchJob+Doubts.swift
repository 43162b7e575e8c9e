import MusterAPI
import MusterCore
import MusterCurl
import MusterSystem

extension FetchJob {
    /// The step after a request for the byte beyond the stated total (range contract, row 2). The file ends there (RFC 9110 §15.5.17) unless the answer shows
    /// more: a refusal, or a page with status 200, says nothing about the bytes that came. `rung` is the next lower rung.
    static func stepBeyondEnd(_ head: ResponseHead?, of known: Representation, at end: Int64, _ rung: Rung?) -> Step {
        guard let head, ResponseFacts(head).showsMore(of: known, than: end) else { return .complete }
        guard let rung else { return .failed(.badRange, "a part in answer to a plain GET", retryAfter: nil) }
        return .restart("the origin has more than the total that it stated", on: rung)
    }
}

extension ResponseFacts {
    /// Whether the answer to a request for the byte at `end` shows that the content goes on there: by a part that reaches beyond it, or, if the Range was
    /// ignored, by a whole body that is longer, or that states no length but the same validator.
    fileprivate func showsMore(of known: Representation, than end: Int64) -> Bool {
        let length = (try? contentLength()) ?? nil
        if status == 206 {
            guard let part = values("content-range").first.flatMap({ ContentRange($0) }) else { return length ?? 0 > 0 }
            return max(part.size ?? 0, part.range?.end ?? 0) > end
        }
        guard [200, 203, 226].contains(status), contentCoding == nil else { return false }
        let stated = representation(size: nil)
        switch Representation(etag: known.etag, lastModified: known.lastModified).agreement(with: stated) {
        case .same: return length.map { $0 > end } ?? true
        case .unknown: return length ?? 0 > end
        case .different: return false
        }
    }
}

extension FetchJob {
    /// Begins a body again whose end is not proved yet (row 14), after a pause that ends early if the job has to stop. The pauses differ by task, so that
    /// files which were cut off together, for being too many, are not asked for together again.
    func readAgain(_ plan: FetchPlan, _ writer: ChunkWriter) async {
        let share = Int(lease.task.rawValue % Self.moments)
        let end = SteadyClock.now + plan.pauseBeforeReading * (Int(Self.moments) + share) / Int(Self.moments)
        while control.wish == .work, SteadyClock.now < end { try? await MonotonicClock.sleep(for: .milliseconds(250)) }
        writer.restart(at: lease.start)
    }

    /// The number of moments, by task, over which the reads after a pause are spread.
    private static let moments: Int64 = 8

    /// Whether the answer may be due to the manner of asking, and not to what was asked for. Then the same question is asked at once in another manner, which
    /// costs no attempt. The result is remembered for the origin.
    func asksOtherwise(_ ending: FetchTransfer.Ending, to question: FetchQuestion, _ plan: inout FetchPlan) -> Bool {
        let wasTried = plan.triesManner
        plan.triesManner = false
        if wasTried, ending.wasAccepted { context.conduct.wants(plan.manner, origin) }
        // Surplus bytes behind an answer may come too late to be told apart from the next answer (row 28).
        if ending.outcome.hasSurplus {
            plan.manner.isAlone = true
            context.conduct.wants(plan.manner, origin)
        }
        if ending.wasAccepted, plan.manner.saysIdentity { context.conduct.trustIdentity(of: origin) }
        // A refusal that may be due to the Range says nothing about connections.
        if wasTried, plan.manner.isAlone, ending.mayBeForConnection, question.range == nil || !ending.mayBeForRange {
            context.conduct.trustKept(of: origin)
        }
        let isKept = ending.outcome.statistics.connectionReused
        // If a new connection is refused as well, the connection is not the cause.
        if !isKept, ending.mayBeForConnection { plan.doubtsKept = false }
        if !plan.manner.isAlone, isKept,
            ending.isOfOtherAnswer
                || ending.mayBeForConnection && plan.doubtsKept && context.conduct.doubtsKept(of: origin)
                    && (ending.head != nil || !context.conduct.lingers(origin))
        {
            plan.manner.isAlone = true
        } else if plan.manner.saysIdentity,
            ending.isRefusalOfIdentity(isLast: question.range == nil)
                || plan.isLastTry(ending, of: question) && context.conduct.doubtsIdentity(of: origin)
        {
            plan.manner.saysIdentity = false
        } else {
            return false
        }
        plan.triesManner = true
        return true
    }
}

extension TransferOutcome {
    /// Whether more came than was asked for, behind this answer or behind the one before it on the same connection.
    fileprivate var hasSurplus: Bool {
        if case .completed(_, .surplus) = self { true } else { statistics.followsSurplus }
    }
}

extension FetchTransfer.Ending {
    /// Whether the Range may be the reason for the failure: a part ended early, or nothing came. It is not the reason if no server was reached, or if the
    /// rest of a plain GET did not come.
    func endsPart(after received: Int64, on rung: Rung) -> Bool {
        if head?.status == 206 { return true }
        switch outcome {
        case .failed(.dns, _), .failed(.connect, _), .failed(.proxy, _): return false
        case .failed, .completed, .refused, .stopped, .cancelled: return received == 0 && skipped == 0 && rung != .whole
        }
    }

    /// Whether it is a refusal, or a silence, with which some origins meet the second request of a connection.
    fileprivate var mayBeForConnection: Bool {
        if case .failed(.firstByteTimeout, _) = outcome { return head == nil }
        guard case .judged(.refuse(let kind, _, nil)) = judgement, let status = head?.status else { return false }
        return status >= 400 && kind.rule == .nextSource
    }

    /// Whether it is a refusal that may be due to the Range alone.
    fileprivate var mayBeForRange: Bool {
        guard case .judged(.refuse(let kind, _, nil)) = judgement else { return false }
        return kind.mayBeForRange
    }

    /// Whether it may be a refusal of `Accept-Encoding: identity`, which curl does not send: status 406, or 400 on the last rung.
    fileprivate func isRefusalOfIdentity(isLast: Bool) -> Bool {
        guard case .judged(.refuse) = judgement, let status = head?.status else { return false }
        return status == 406 || isLast && status == 400
    }
}

extension FetchPlan {
    /// Whether the refusal is about to fail a file of which nothing has come: no rung of the ladder and no other source is left, and further attempts change
    /// nothing or are used up. The refusal asks for no credentials and no patience.
    fileprivate func isLastTry(_ ending: FetchTransfer.Ending, of question: FetchQuestion) -> Bool {
        guard isUntouched, let looks = lease.looks, case .judged(.refuse(let kind, _, nil)) = ending.judgement,
            let status = ending.head?.status, status >= 400, ![401, 407, 408, 425, 429].contains(status)
        else { return false }
        let isFinal = kind.rule == .nextSource
        return question.range == nil ? isFinal || looks == .failed : isFinal && !kind.mayBeForRange && looks != .failed
    }
}

extension Ladder.Contradiction {
    /// How a transfer contradicts the way in which the source was asked; `nil` for every other end, good or bad.
    init?(_ ending: FetchTransfer.Ending) {
        switch (ending.judgement, ending.outcome) {
        case (.judged(.descend(let what, let rung)), _): self = .answer(what, to: rung)
        case (.judged(.refuse(let kind, let detail, let retryAfter)), _):
            self = .refusal(kind, detail, retryAfter: retryAfter)
        case (_, .failed(.protocolViolation(let detail), _)):
            self = .answer(TransferError.protocolViolation(detail).description, to: .stream)
        // The connection ended before any answer. The reset of an HTTP/2 stream is left out: it says more about HTTP/2
        // (row 23).
        case (.waiting, .failed(.reset(let detail), _)):
            self = .refusal(.network, TransferError.reset(detail).description, retryAfter: nil)
        case (.waiting, .failed(.truncated(let detail), _)):
            self = .refusal(.network, TransferError.truncated(detail).description, retryAfter: nil)
        case (.waiting, .failed(.firstByteTimeout(let detail), _)):
            self = .refusal(.timeout, TransferError.firstByteTimeout(detail).description, retryAfter: nil)
        // A redirect that leads nowhere, or in a circle, may do so because of the Range alone.
        case (.waiting, .failed(let error, _)) where error.failureKind == .httpStatus(302):
            self = .refusal(.httpStatus(302), error.description, retryAfter: nil)
        case (.judged, _), (.standing, _), (.waiting, _): return nil
        }
    }
}

extension FetchJob {
    /// Notes which version of HTTP the origin speaks. Returns whether to ask again at once, in HTTP/2: a request in HTTP/1.1 failed, or was refused what
    /// HTTP/2 serves, and the origin was not offered another version lately. In that case `plan` is set back to `asked`.
    func noteProtocol(
        _ ending: FetchTransfer.Ending, of request: TransferRequest, _ settings: RequestSettings, _ asked: FetchPlan,
        _ plan: inout FetchPlan
    ) -> Bool {
        if let head = ending.head, 200...299 ~= head.status { context.protocols.serves(in: head.version, origin) }
        let isOffered = request.httpVersion == .http2OverTLS && origin.hasPrefix("https:")
        if let event = ProtocolHistory.Event(ending.head, ending.outcome, isOffered: isOffered) {
            context.protocols.note(event, of: origin)
        }
        guard control.wish == .work, settings.leavesVersionOpen, request.httpVersion == .http1,
            origin.hasPrefix("https:"), !context.protocols.refusesHTTP1(origin)
        else { return false }
        let isDoubted = ending.mayRefuseHTTP1 && asked.known.size != nil
        if isDoubted { context.protocols.doubtHTTP1(origin) }
        guard ending.refusesHTTP1 || isDoubted && context.protocols.mayRefuseHTTP1(origin) else { return false }
        context.protocols.note(.refusedHTTP1, of: origin)
        plan = asked
        return true
    }
}

extension FetchTransfer.Ending {
    /// Whether a request in HTTP/1.1 failed as it does at an origin that does not speak HTTP/1.1, or was refused for its
    /// version.
    fileprivate var refusesHTTP1: Bool {
        switch (head?.status, outcome) {
        // Misdirected Request, Upgrade Required, HTTP Version Not Supported (RFC 9110, sections 15.5.20, 15.5.22 and 15.6.6).
        case (421?, _), (426?, _), (505?, _): true
        case (nil, .failed(.tls, _)), (nil, .failed(.protocolViolation, _)): true
        default: false
        }
    }

    /// Whether a request in HTTP/1.1 failed in a way that may be due to its version, if HTTP/2 serves the same file.
    fileprivate var mayRefuseHTTP1: Bool {
        switch (head?.status, outcome) {
        case (408?, _), (425?, _), (429?, _): false
        case (let status?, _): 400...499 ~= status
        case (nil, .failed(.reset, _)), (nil, .failed(.truncated, _)), (nil, .failed(.firstByteTimeout, _)): true
        default: false
        }
    }
}

extension ProtocolHistory.Event {
    /// What the end of a transfer tells about the origin's HTTP/2; `nil` when there was none, or nothing follows from it.
    ///
    /// - Parameter isOffered: whether the connection, if it was a new one, was offered HTTP/2.
    init?(_ head: ResponseHead?, _ outcome: TransferOutcome, isOffered: Bool) {
        let wasHTTP2 = head?.version == .http2
        switch outcome {
        case .failed(.streamReset, _): self = .reset
        case .completed where wasHTTP2 && head?.isEndUncertain == true: self = .endless
        // The connection went away under the stream.
        case .failed(.reset, _) where wasHTTP2, .failed(.truncated, _) where wasHTTP2: self = .reset
        case .failed(.reset, _) where head == nil && isOffered: self = .unanswered
        case .failed(.sendFailed, _) where head == nil && isOffered: self = .unanswered
        case .completed where wasHTTP2: self = .served
        case .completed, .failed, .refused, .stopped, .cancelled: return nil
        }
    }
}
