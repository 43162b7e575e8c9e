import MusterAPI
import MusterCore
import MusterCurl

extension FetchJob {
    /// What follows from the answer to a request for the byte beyond the total that was stated (range contract, row 2). There is none (RFC 9110 §15.5.17),
    /// unless the answer shows it: a refusal, or a page with status 200, says nothing of what has come. `rung` is the one below.
    static func stepBeyondEnd(_ head: ResponseHead?, of known: Representation, at end: Int64, _ rung: Rung?) -> Step {
        guard let head, ResponseFacts(head).showsMore(of: known, than: end) else { return .complete }
        guard let rung else { return .failed(.badRange, "a part in answer to a plain GET", retryAfter: nil) }
        return .restart("the origin has more than the total that it stated", on: rung)
    }
}

extension ResponseFacts {
    /// Whether the answer to a request for the byte at `end` shows that the content goes on there: by a part that reaches beyond, or, where the Range was
    /// ignored, by a whole that is longer, or of no stated length but under the same validator.
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
    /// Begins a body anew whose end nothing has proved yet (row 14), after a pause, unless the lease is wanted back. Files that are cut together, since they
    /// are too many, are not asked for together again.
    func readAgain(_ plan: FetchPlan, _ writer: ChunkWriter) async {
        let share = Int(lease.task.rawValue % Self.moments)
        let end = ContinuousClock.now + plan.pauseBeforeReading * (Int(Self.moments) + share) / Int(Self.moments)
        while control.wish == .work, ContinuousClock.now < end { try? await Task.sleep(for: .milliseconds(250)) }
        writer.restart(at: lease.start)
    }

    /// The reads that follow a pause are spread over so many moments, by task.
    private static let moments: Int64 = 8

    /// Whether what came may be due to the manner of asking, and not to what was asked for: then the same is asked at once in another one, which is no
    /// try. What is seen so is remembered of the origin.
    func asksOtherwise(_ ending: FetchTransfer.Ending, to question: FetchQuestion, _ plan: inout FetchPlan) -> Bool {
        let wasTried = plan.triesManner
        plan.triesManner = false
        if wasTried, ending.wasAccepted { context.conduct.wants(plan.manner, origin) }
        // What comes behind an answer may come a moment too late to be told from the next one (row 28).
        if ending.outcome.hasSurplus {
            plan.manner.isAlone = true
            context.conduct.wants(plan.manner, origin)
        }
        if ending.wasAccepted, plan.manner.saysIdentity { context.conduct.trustIdentity(of: origin) }
        // What may be for the Range says nothing of connections.
        if wasTried, plan.manner.isAlone, ending.mayBeForConnection, question.range == nil || !ending.mayBeForRange {
            context.conduct.trustKept(of: origin)
        }
        let isKept = ending.outcome.statistics.connectionReused
        // Where a new connection was no better before, it is not the connection.
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
    /// Whether the failure of a request for a range may be for that: a part ended early, or nothing came. Where nobody was reached it is not, nor where what is
    /// left of a plain GET did not come.
    func endsPart(after received: Int64, on rung: Rung) -> Bool {
        if head?.status == 206 { return true }
        switch outcome {
        case .failed(.dns, _), .failed(.connect, _), .failed(.proxy, _): return false
        case .failed, .completed, .refused, .stopped, .cancelled: return received == 0 && skipped == 0 && rung != .whole
        }
    }

    /// Whether it is a refusal, or a silence, that some origins have for the second request of a connection.
    fileprivate var mayBeForConnection: Bool {
        if case .failed(.firstByteTimeout, _) = outcome { return head == nil }
        guard case .judged(.refuse(let kind, _, nil)) = judgement, let status = head?.status else { return false }
        return status >= 400 && kind.rule == .nextSource
    }

    /// Whether it is a refusal that may be for the Range alone.
    fileprivate var mayBeForRange: Bool {
        guard case .judged(.refuse(let kind, _, nil)) = judgement else { return false }
        return kind.mayBeForRange
    }

    /// Whether it is a refusal that `Accept-Encoding: identity` is answered with, which curl does not send: by 406, or on the last rung by 400.
    fileprivate func isRefusalOfIdentity(isLast: Bool) -> Bool {
        guard case .judged(.refuse) = judgement, let status = head?.status else { return false }
        return status == 406 || isLast && status == 400
    }
}

extension FetchPlan {
    /// Whether it is a refusal with which a file is about to fail of which nothing has come: no rung of the ladder is left for it, nor another source, and
    /// further tries don't change it, or are over. It asks for no credentials and no patience.
    fileprivate func isLastTry(_ ending: FetchTransfer.Ending, of question: FetchQuestion) -> Bool {
        guard isUntouched, let looks = lease.looks, case .judged(.refuse(let kind, _, nil)) = ending.judgement,
            let status = ending.head?.status, status >= 400, ![401, 407, 408, 425, 429].contains(status)
        else { return false }
        let isFinal = kind.rule == .nextSource
        return question.range == nil ? isFinal || looks == .failed : isFinal && !kind.mayBeForRange && looks != .failed
    }
}

extension Ladder.Contradiction {
    /// What about a transfer contradicts the way in which the source was asked; `nil` for all else, good or bad.
    init?(_ ending: FetchTransfer.Ending) {
        switch (ending.judgement, ending.outcome) {
        case (.judged(.descend(let what, let rung)), _): self = .answer(what, to: rung)
        case (.judged(.refuse(let kind, let detail, let retryAfter)), _):
            self = .refusal(kind, detail, retryAfter: retryAfter)
        case (_, .failed(.protocolViolation(let detail), _)):
            self = .answer(TransferError.protocolViolation(detail).description, to: .stream)
        // The connection ended before anything was answered. That a stream of HTTP/2 did says more of HTTP/2 (row 23).
        case (.waiting, .failed(.reset(let detail), _)):
            self = .refusal(.network, TransferError.reset(detail).description, retryAfter: nil)
        case (.waiting, .failed(.truncated(let detail), _)):
            self = .refusal(.network, TransferError.truncated(detail).description, retryAfter: nil)
        case (.waiting, .failed(.firstByteTimeout(let detail), _)):
            self = .refusal(.timeout, TransferError.firstByteTimeout(detail).description, retryAfter: nil)
        // Where a redirect leads nowhere, or round in circles, it may do so for the Range alone.
        case (.waiting, .failed(let error, _)) where error.failureKind == .httpStatus(302):
            self = .refusal(.httpStatus(302), error.description, retryAfter: nil)
        case (.judged, _), (.standing, _), (.waiting, _): return nil
        }
    }
}

extension FetchJob {
    /// Notes which version of HTTP the origin speaks. Returns whether that is a reason to ask again at once, in HTTP/2: a request in HTTP/1.1 came to
    /// nothing, or was refused what HTTP/2 serves, and the origin was not offered another version lately. The plan is as it was asked then.
    func noteProtocol(
        _ ending: FetchTransfer.Ending, of request: TransferRequest, _ settings: RequestSettings, _ asked: FetchPlan,
        _ plan: inout FetchPlan
    ) -> Bool {
        if let head = ending.head, 200...299 ~= head.status { context.protocols.serves(in: head.version, origin) }
        if let event = ProtocolHistory.Event(ending.head, ending.outcome) { context.protocols.note(event, of: origin) }
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
    /// Whether a request in HTTP/1.1 came to nothing as it does where that is not spoken, or was refused for it.
    fileprivate var refusesHTTP1: Bool {
        switch (head?.status, outcome) {
        // Misdirected Request, Upgrade Required, HTTP Version Not Supported (RFC 9110, sections 15.5.20, 15.5.22 and 15.6.6).
        case (421?, _), (426?, _), (505?, _): true
        case (nil, .failed(.tls, _)), (nil, .failed(.protocolViolation, _)): true
        default: false
        }
    }

    /// Whether a request in HTTP/1.1 met what may be meant for that version, where HTTP/2 serves the same file.
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
    init?(_ head: ResponseHead?, _ outcome: TransferOutcome) {
        let wasHTTP2 = head?.version == .http2
        switch outcome {
        case .failed(.streamReset, _): self = .reset
        case .completed where wasHTTP2 && head?.isEndUncertain == true: self = .endless
        // The connection went away under the stream.
        case .failed(.reset, _) where wasHTTP2, .failed(.truncated, _) where wasHTTP2: self = .reset
        case .completed where wasHTTP2: self = .served
        case .completed, .failed, .refused, .stopped, .cancelled: return nil
        }
    }
}
