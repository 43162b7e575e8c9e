import MusterCurl
import Testing

@testable import MusterWorker

@Suite struct OriginProtocolsTests {
    @Test func secondResetInARowCausesTheFallback() {
        var history = ProtocolHistory()
        history.note(.reset, of: "a")
        #expect(!history.fellBack("a"))
        history.note(.reset, of: "a")
        #expect(history.fellBack("a"))
        #expect(!history.fellBack("b"))
    }

    /// Its HTTP/2 may be broken from the first frame on. What has served is not given up for an outage.
    @Test(arguments: [false, true])
    func secondConnectionWithoutAnAnswerCausesTheFallbackUnlessHTTP2HasServed(hasServed: Bool) {
        var history = ProtocolHistory()
        if hasServed { history.serves(in: .http2, "a") }
        for _ in 0..<2 {
            #expect(!history.fellBack("a"))
            history.note(.unanswered, of: "a")
        }
        #expect(history.fellBack("a") != hasServed)
    }

    @Test func servedRequestInBetweenStartsTheCountAnew() {
        var history = ProtocolHistory()
        for _ in 0..<5 {
            history.note(.reset, of: "a")
            history.note(.served, of: "a")
        }
        #expect(!history.fellBack("a"))
    }

    @Test func fallbackLastsWhateverIsServedLater() {
        var history = ProtocolHistory()
        for event in [ProtocolHistory.Event.reset, .reset, .served, .served] { history.note(event, of: "a") }
        #expect(history.fellBack("a"))
    }

    @Test func originThatRefusesHTTP1IsOfferedHTTP2UntilItResetsThat() {
        var history = ProtocolHistory()
        for event in [ProtocolHistory.Event.reset, .reset, .refusedHTTP1, .served, .reset, .served] {
            history.note(event, of: "a")
        }
        #expect(history.refusesHTTP1("a") && !history.fellBack("a"))
        for _ in 0..<2 { history.note(.reset, of: "a") }
        #expect(!history.refusesHTTP1("a") && history.fellBack("a"))
        #expect(history.count == 1)
    }

    @Test func originThatServesHTTP2AloneMayRefuseHTTP1() {
        var history = ProtocolHistory()
        #expect(!history.mayRefuseHTTP1("a"))
        history.serves(in: .http11, "a")
        #expect(!history.mayRefuseHTTP1("a") && history.count == 0)
        history.serves(in: .http2, "a")
        #expect(history.mayRefuseHTTP1("a"))
        history.note(.refusedHTTP1, of: "a")
        #expect(!history.mayRefuseHTTP1("a") && history.refusesHTTP1("a"))
        history.serves(in: .http11, "a")
        #expect(!history.mayRefuseHTTP1("a") && !history.refusesHTTP1("a"), "it serves that after all")
        // After two resets the worker asks in HTTP/1.1 anew, and finds out once more what that serves.
        for _ in 0..<2 { history.note(.reset, of: "a") }
        #expect(history.fellBack("a") && history.mayRefuseHTTP1("a"))
    }

    /// An origin that has served both versions may stop serving one of them.
    @Test func originThatStopsHTTP1MayRefuseIt() {
        var history = ProtocolHistory()
        history.doubtHTTP1("a")
        #expect(history.count == 0, "nothing is known of its HTTP/2")
        history.serves(in: .http2, "a")
        history.serves(in: .http11, "a")
        history.doubtHTTP1("a")
        #expect(!history.mayRefuseHTTP1("a"))
        history.serves(in: .http11, "a")
        history.doubtHTTP1("a")
        #expect(!history.mayRefuseHTTP1("a"), "it has served that in between")
        history.doubtHTTP1("a")
        #expect(history.mayRefuseHTTP1("a"))
        history.note(.refusedHTTP1, of: "a")
        #expect(history.refusesHTTP1("a"))
    }

    /// What looked like a refusal of the version may have been an outage.
    @Test func originThatRefusesHTTP1IsAskedInThatOnceMoreNowAndThen() {
        var history = ProtocolHistory()
        history.serves(in: .http2, "a")
        for _ in 0..<2 {
            history.note(.refusedHTTP1, of: "a")
            for _ in 1..<ProtocolHistory.servedBeforeRetry { history.note(.served, of: "a") }
            #expect(history.refusesHTTP1("a"))
            history.note(.served, of: "a")
            #expect(!history.refusesHTTP1("a") && history.mayRefuseHTTP1("a"))
        }
    }

    @Test func onlySoManyOriginsAreRememberedAndAccidentsGoFirst() {
        var history = ProtocolHistory()
        for _ in 0..<2 { history.note(.reset, of: "broken") }
        for number in 0..<ProtocolHistory.originLimit * 2 { history.note(.reset, of: "origin \(number)") }
        // Plain values, since a failure would print a thousand origins otherwise.
        var (count, isKnown) = (history.count, history.fellBack("broken"))
        #expect(count == ProtocolHistory.originLimit)
        #expect(isKnown)
        for number in 0..<ProtocolHistory.originLimit * 2 {
            for _ in 0..<2 { history.note(.reset, of: "worse \(number)") }
        }
        (count, isKnown) = (history.count, history.fellBack("broken"))
        #expect(count == ProtocolHistory.originLimit)
        #expect(!isKnown)
    }

    @Test func onlyWhatHappenedOverHTTP2Counts() {
        let detail = TransferError.Detail(code: 0, message: "")
        let two = ResponseHead(status: 206, version: .http2, bodyFraming: .contentLength(1))
        let endless = ResponseHead(status: 200, version: .http2, bodyFraming: .chunked)
        let one = ResponseHead(status: 206, version: .http11, bodyFraming: .chunked)
        let statistics = TransferStatistics()
        #expect(ProtocolHistory.Event(nil, .failed(.streamReset(detail), statistics), isOffered: false) == .reset)
        for error in [TransferError.reset(detail), .sendFailed(detail)] {
            #expect(ProtocolHistory.Event(nil, .failed(error, statistics), isOffered: true) == .unanswered)
            #expect(ProtocolHistory.Event(nil, .failed(error, statistics), isOffered: false) == nil)
        }
        #expect(ProtocolHistory.Event(two, .failed(.reset(detail), statistics), isOffered: false) == .reset)
        #expect(ProtocolHistory.Event(two, .failed(.truncated(detail), statistics), isOffered: false) == .reset)
        #expect(ProtocolHistory.Event(one, .failed(.reset(detail), statistics), isOffered: false) == nil)
        #expect(ProtocolHistory.Event(two, .failed(.tooSlow(detail), statistics), isOffered: false) == nil)
        #expect(ProtocolHistory.Event(two, .completed(statistics, .framed), isOffered: false) == .served)
        #expect(ProtocolHistory.Event(endless, .completed(statistics, .framed), isOffered: false) == .endless)
        #expect(ProtocolHistory.Event(one, .completed(statistics, .framed), isOffered: false) == nil)
    }
}
