import MusterCore
import Testing

/// When deliveries are tried.
struct DeliveryScheduleTests {
    @Test func tenTriesTakeAboutThreeDays() {
        let schedule = DeliverySchedule()
        let seconds = (1...9).map { schedule.wait(afterFailures: $0, retryAfter: nil, random: 0.5)?.components.seconds }
        #expect(seconds == [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400])
        #expect(schedule.wait(afterFailures: 10, retryAfter: nil, random: 0.5) == nil)
        #expect(schedule.wait(afterFailures: 10, retryAfter: .seconds(1), random: 0.5) == nil)
        #expect(schedule.waits.first == .zero)
    }

    @Test func jitterIsATenthEachWay() {
        let schedule = DeliverySchedule()
        #expect(schedule.wait(afterFailures: 2, retryAfter: nil, random: 0) == .seconds(270))
        let most = schedule.wait(afterFailures: 2, retryAfter: nil, random: 0.999_999) ?? .zero
        #expect(most > .seconds(329) && most < .seconds(330))
    }

    @Test func receiverCanOnlyMakeTheWaitLonger() {
        let schedule = DeliverySchedule()
        #expect(schedule.wait(afterFailures: 1, retryAfter: .seconds(60), random: 0.5) == .seconds(60))
        #expect(schedule.wait(afterFailures: 2, retryAfter: .seconds(1), random: 0.5) == .seconds(300))
        #expect(schedule.wait(afterFailures: 2, retryAfter: .seconds(1 << 40), random: 0.5) == .seconds(86_400))
    }
}
