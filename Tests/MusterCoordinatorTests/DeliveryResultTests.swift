import MusterCore
import MusterStore
import Testing

@testable import MusterCoordinator

/// What follows from a receiver's answer, and how a delivery is signed.
struct DeliveryResultTests {
    private static let schedule = DeliverySchedule(waits: [.zero, .seconds(10), .seconds(20)], jitter: 0)

    private func result(_ outcome: WebhookOutcome, failures: Int32 = 0) -> DeliveryResult {
        DeliveryResult(outcome, failures: failures, schedule: Self.schedule, random: 0.5)
    }

    private func answer(_ status: Int, retryAfter: String? = nil, date: String? = nil) -> WebhookOutcome {
        .answered(WebhookAnswer(status: status, retryAfter: retryAfter, date: date))
    }

    @Test(arguments: [200, 201, 202, 204, 299])
    func everyTwoHundredIsAnAcknowledgement(status: Int) {
        #expect(result(answer(status)) == .delivered(status: Int32(status)))
    }

    @Test(arguments: [100, 301, 302, 304, 307, 308, 400, 401, 404, 409, 429, 500, 503, 599, 999])
    func everyOtherAnswerIsAFailure(status: Int) {
        guard case .failed(let seen, let failure, .seconds(10), nil) = result(answer(status)) else {
            Issue.record("\(status) is no failure")
            return
        }
        #expect(seen == Int32(status) && failure.contains("\(status)"))
    }

    @Test func receiverThatIsGoneIsNotAskedAgain() {
        guard case .gone(410, _) = result(answer(410, retryAfter: "5")) else {
            Issue.record("410 does not disable")
            return
        }
    }

    @Test func lastTryIsFollowedByNone() {
        func wait(_ failures: Int32) -> Duration? {
            guard case .failed(nil, "refused", let wait, nil) = result(.failed("refused"), failures: failures) else {
                return nil
            }
            return wait
        }
        #expect((0...3).map { wait($0) } == [.seconds(10), .seconds(20), nil, nil])
        #expect(result(.cancelled, failures: 2) == .released)
    }

    @Test(
        arguments: [
            ("120", nil, Duration.seconds(120)), ("3", nil, .seconds(10)), ("-5", nil, .seconds(10)),
            ("99999999999999999999", nil, .seconds(86_400)), ("soon", nil, .seconds(10)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", .seconds(60)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", .seconds(10)),
        ] as [(String, String?, Duration)])
    func retryAfterMakesTheWaitLonger(field: String, date: String?, wait: Duration) {
        guard case .failed(503, _, wait, nil) = result(answer(503, retryAfter: field, date: date)) else {
            Issue.record("\(field) means \(result(answer(503, retryAfter: field, date: date)))")
            return
        }
    }

    @Test func retryAfterDateWithoutADateFieldIsComparedWithTheDatabaseClock() {
        let outcome = answer(429, retryAfter: "Sun, 06 Nov 1994 08:49:37 GMT")
        guard case .failed(429, _, .seconds(10), let until?) = result(outcome) else {
            Issue.record("there is no moment")
            return
        }
        #expect(until == Timestamp(microseconds: 784_111_777_000_000))
    }

    /// The example of the Standard Webhooks specification's own libraries.
    @Test func signatureIsThatOfTheSpecification() throws {
        let signature = WebhookRequest.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330", body: Array(#"{"test": 2432232314}"#.utf8),
            secret: try WebhookSecret(validating: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        #expect(signature == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    /// In each process a dictionary has an order of its own; the bytes of an event have none of that (I9).
    @Test func bytesOfAnEventDependOnNoProcess() throws {
        let names = "zyxwvutsrqponmlkjihgfedcba".map { "field\($0)" }
        let bytes = try EventBytes.encode(Dictionary(uniqueKeysWithValues: names.map { ($0, 1) }))
        let expected = names.sorted().map { "\"\($0)\":1" }.joined(separator: ",")
        #expect(String(decoding: bytes, as: UTF8.self) == "{\(expected)}")
    }

    @Test func gateLimitsOpenStreamsAndFreesThePlaceOfOneThatEnded() {
        let gate = StreamGate(limit: 2)
        let first = gate.enter()
        var second = gate.enter()
        #expect(first != nil && second != nil && gate.enter() == nil)
        second = nil
        #expect(second == nil && gate.enter() != nil)
        withExtendedLifetime(first) {}
    }
}
