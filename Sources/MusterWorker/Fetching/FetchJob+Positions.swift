import MusterAPI
import MusterCore
import MusterCurl
import Synchronization

extension FetchJob {
    /// Checks that a server of ftp sends a file from the position that it is told, before bytes from another position than the first are believed. Its answer
    /// does not say so, since it may reply 350 to REST whatever it does then (range contract, row 37). Returns the next step if the server does not, or if
    /// that can't be seen; `nil` when the question can be asked.
    func provePositions(
        _ question: FetchQuestion, _ plan: inout FetchPlan, _ settings: RequestSettings
    ) async -> Step? {
        guard let first = question.range?.start, first > 0, ["ftp:", "ftps:"].contains(where: origin.hasPrefix),
            !context.conduct.keepsPositions(origin)
        else { return nil }
        guard let size = plan.known.size else { return .restart("the end of the file is unknown", on: .whole) }
        guard first < size else { return nil }
        var request = request(question, plan, settings, ProxiedRedirects(nil))
        request.range = RangeSpec(first: size - 1, last: nil)
        request.readsToEnd = true
        request.firstByteTimeout = min(request.firstByteTimeout, Self.patience)
        guard let visit = await context.conduct.admit(origin, for: control) else { return .stopped }
        // One byte more than may come.
        let collector = AnswerCollector(limitBytes: 2, keepsBody: false)
        let ending = await context.loops.withLoop(for: request.url, at: control.seat) { [request, control] loop in
            await collector.run(request, on: loop, control: control)
        }
        _ = context.conduct.isOver(visit, origin)
        plan.answer = nil
        if let step = Self.step(afterLastByte: ending) { return step }
        context.conduct.provedPositions(of: origin)
        return nil
    }

    /// The step after a request for the last byte of a file; `nil` if only that byte came.
    static func step(afterLastByte ending: AnswerCollector.Ending) -> Step? {
        switch ending {
        case .answered(let head, _, let read) where head.status == 206 && read.offset <= 1: nil
        // Whatever followed: a file that is sent from its beginning comes in larger pieces.
        case .failed(_, let statistics) where statistics.bytesDelivered == 1: nil
        case .answered(let head, _, _) where head.status >= 400:
            .failed(.network, "asked for the last byte, the origin answered \(head.status)", retryAfter: nil)
        // The server refuses REST, and would send no part.
        case .failed(.protocolViolation(let detail), _): .restart(detail.message, on: .whole)
        case .failed(let error, _):
            .failed(error.failureKind, "asked for the last byte: \(error)", retryAfter: nil)
        case .answered, .tooLarge:
            .restart("the server does not send the file from the position on that it is told", on: .whole)
        case .cancelled: .stopped
        }
    }

    /// How long to wait for the last byte and for the server's reply after it.
    private static let patience: Duration = .seconds(15)
}

extension OriginConduct {
    /// Notes that the origin sent the end of a file, and nothing else, when it was told to begin there.
    func provedPositions(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.positioned.note((), of: origin, until: until) }
    }

    /// Whether the origin was seen to send files from the position that it is told.
    func keepsPositions(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.positioned.value(of: origin, at: moment) } != nil
    }
}
