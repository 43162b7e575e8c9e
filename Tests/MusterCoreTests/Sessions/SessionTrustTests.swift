import MusterCore
import Testing

private let second: Int64 = 1_000_000_000

struct SessionTrustTests {
    @Test func trustEndsATenthBeforeTheTimeToLiveCountedFromBeforeTheRequest() {
        let trust = SessionTrust(requested: 100 * second, timeToLive: .seconds(30))
        #expect(trust.end == 127 * second)
        #expect(trust.holds(at: 127 * second - 1))
        #expect(!trust.holds(at: 127 * second))
        #expect(trust.renewInterval == .seconds(10))
    }

    @Test func renewalExtendsTheWindow() {
        var trust = SessionTrust(requested: 0, timeToLive: .seconds(30))
        trust.renew(requested: 10 * second, timeToLive: .seconds(30))
        #expect(trust.end == 37 * second)
    }

    @Test func lateAnswerToAnEarlierRequestNeverShortensTheWindow() {
        var trust = SessionTrust(requested: 0, timeToLive: .seconds(30))
        trust.renew(requested: 20 * second, timeToLive: .seconds(30))
        trust.renew(requested: 10 * second, timeToLive: .seconds(30))
        #expect(trust.end == 47 * second)
    }

    @Test func windowOpensAgainAfterItHadClosed() {
        var trust = SessionTrust(requested: 0, timeToLive: .seconds(30))
        #expect(!trust.holds(at: 50 * second))
        trust.renew(requested: 50 * second, timeToLive: .seconds(30))
        #expect(trust.holds(at: 50 * second))
    }

    @Test func newTimeToLiveCountsFromTheNextRenewal() {
        var trust = SessionTrust(requested: 0, timeToLive: .seconds(30))
        trust.renew(requested: 20 * second, timeToLive: .seconds(60))
        #expect(trust.timeToLive == .seconds(60))
        #expect(trust.end == 74 * second)
    }

    @Test(arguments: [Duration.milliseconds(Int64.max), .seconds(601)])
    func timeToLiveIsCappedAtTheLongestOfACoordinator(timeToLive: Duration) {
        #expect(SessionTrust(requested: 0, timeToLive: timeToLive).end == 540 * second)
    }

    @Test(arguments: [Duration.zero, .seconds(-30)])
    func sessionWithoutTimeToLiveIsNeverTrusted(timeToLive: Duration) {
        #expect(!SessionTrust(requested: 5 * second, timeToLive: timeToLive).holds(at: 5 * second))
    }
}
