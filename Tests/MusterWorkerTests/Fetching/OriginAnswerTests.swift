import MusterCurl
import Testing

@testable import MusterWorker

@Suite struct OriginAnswerTests {
    @Test func firstFieldThatNamesTheRequestCounts() {
        #expect(OriginAnswer.requestID(in: ["x-correlation-id": "c", "CF-RAY": "ray", "X-Trace-Id": "t"]) == "ray")
        #expect(OriginAnswer.requestID(in: ["X-Request-Id": "", "X-Correlation-Id": "c"]) == "c")
        #expect(OriginAnswer.requestID(in: ["Date": "now"]) == nil)
    }

    @Test func nameOfARequestIsPrintableAndShort() {
        #expect(OriginAnswer.requestID(in: ["X-Request-Id": "a\u{1b}[31m"]) == nil)
        #expect(OriginAnswer.requestID(in: ["X-Request-Id": "é", "X-Trace-Id": "t"]) == "t")
        #expect(OriginAnswer.requestID(in: ["X-Request-Id": String(repeating: "a", count: 300)])?.utf8.count == 200)
    }

    @Test func addressIsKnownEvenWithoutAHead() {
        var statistics = TransferStatistics()
        #expect(OriginAnswer(nil, statistics) == OriginAnswer(nil, TransferStatistics()))
        #expect(OriginAnswer(nil, statistics).address == nil)
        statistics.remoteAddress = "192.0.2.1"
        #expect(OriginAnswer(nil, statistics).address == "192.0.2.1")
        let head = ResponseHead(status: 503, remoteAddress: "192.0.2.2", bodyFraming: .none)
        #expect(OriginAnswer(head, statistics).address == "192.0.2.2")
        #expect(OriginAnswer(head, statistics).status == 503)
        #expect(OriginAnswer(head, statistics).redirectedTo == nil)
    }

    /// What follows the origin in a URL may be a secret.
    @Test func redirectIsToldByItsOriginAlone() {
        let head = ResponseHead(
            status: 404, effectiveURL: "https://cdn.example:8443/f?signature=secret", redirectCount: 2,
            bodyFraming: .none)
        #expect(OriginAnswer(head, TransferStatistics()).redirectedTo == "https://cdn.example:8443")
    }

    /// The origin was reached, so it does not count as away.
    @Test func redirectToAnUnreachableHostIsAnAnswerOfItsOrigin() {
        var statistics = TransferStatistics()
        statistics.redirectCount = 1
        statistics.effectiveURL = "http://gone.example:8080/f?signature=secret"
        let answer = OriginAnswer(nil, .failed(.dns(TransferError.Detail(code: 6, message: "gone")), statistics))
        #expect(answer.wasUnreached && answer.status == 302)
        #expect(answer.redirectedTo == "http://gone.example:8080")
    }
}
