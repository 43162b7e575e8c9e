import MusterCore
import MusterStore

/// The parameters of deliveries. Only tests use other values than the defaults.
struct DeliveryPolicy: Sendable, Hashable {
    /// The times of the tries.
    var schedule = DeliverySchedule()
    /// How long one try may take.
    var timeout = Limits.webhookTimeout
    /// How much longer than `timeout` a claim lasts. After that, the coordinator that made it is considered dead.
    var claimMargin = Duration.seconds(5)
    /// How many deliveries this coordinator has under way at once.
    var concurrency: Int32 = 256
    /// How many times at most the database makes deliveries of new events before due deliveries are claimed.
    var fanOuts = 20
    /// How often the database is asked for due deliveries. New events wake the deliverer at once.
    var poll = Duration.seconds(1)
    /// How long deliveries under way may go on once the coordinator is told to stop.
    var patience = Duration.seconds(2)
}

extension DeliveryResult {
    /// The result that follows from the outcome of a try.
    ///
    /// | answer | result |
    /// |---|---|
    /// | 2xx | delivered |
    /// | 410 | the receiver is gone: its subscription is disabled |
    /// | any other, 3xx among them; none | failed: the next try comes by the schedule, no sooner than Retry-After says |
    ///
    /// - Parameters:
    ///   - failures: tries that failed before this one.
    ///   - random: from 0 to less than 1.
    init(_ outcome: WebhookOutcome, failures: Int32, schedule: DeliverySchedule, random: Double) {
        let tries = Int(failures) + 1
        switch outcome {
        case .cancelled: self = .released
        case .failed(let reason):
            self = .failed(
                status: nil, failure: reason,
                wait: schedule.wait(afterFailures: tries, retryAfter: nil, random: random),
                until: nil)
        case .answered(let answer):
            let status = Int32(clamping: answer.status)
            switch answer.status {
            case 200..<300: self = .delivered(status: status)
            case 410: self = .gone(status: status, reason: "the receiver answered 410: it wants no more deliveries")
            default:
                let redirect = (300..<400).contains(answer.status) ? ": redirects are not followed" : ""
                let (wait, until) = answer.patience
                self = .failed(
                    status: status, failure: "the receiver answered \(answer.status)\(redirect)",
                    wait: schedule.wait(afterFailures: tries, retryAfter: wait, random: random), until: until)
            }
        }
    }
}

extension WebhookAnswer {
    /// The wait that Retry-After asks for (RFC 9110 §10.2.3): a duration from now, or a moment. If the receiver sent its
    /// own time, the moment is read on the receiver's clock, so that no other clock matters (I11).
    fileprivate var patience: (wait: Duration?, until: Timestamp?) {
        guard let retryAfter else { return (nil, nil) }
        // More digits than ten are cut: ten are more than a day anyway.
        if let seconds = Int64(retryAfter.prefix(10)) { return (.seconds(max(0, seconds)), nil) }
        guard let moment = HTTPDate(retryAfter) else { return (nil, nil) }
        if let now = date.flatMap({ HTTPDate($0) }) {
            return (.seconds(max(0, moment.secondsSince1970 - now.secondsSince1970)), nil)
        }
        return (nil, Timestamp(microseconds: moment.secondsSince1970 * 1_000_000))
    }
}
