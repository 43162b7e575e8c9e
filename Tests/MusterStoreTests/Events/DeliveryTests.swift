import MusterCore
import MusterStore
import MusterTestSupport
import Testing

/// Deliveries: created once, claimed like chunks, tried until they are settled (I9).
@Suite struct DeliveryTests {
    @Test func subscriptionGetsMatchingEventsFromItsCreationOn() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(["night-0"])
            try await fixture.subscribe("all")
            try await fixture.subscribe("night", groups: "night-*")
            try await fixture.subscribe("failures", types: ["dev.muster.group.failed.v1"])
            try await fixture.makeEvents(["night-1", "day-1", "night-2"])
            try await fixture.fanOut()
            func wanted(_ name: String) async throws -> [Int64] {
                try await fixture.store.deliveries(state: .pending, subscription: name, after: 0, limit: 10)
                    .map(\.position)
            }
            #expect(try await wanted("all") == [2, 3, 4])
            #expect(try await wanted("night") == [2, 4])
            #expect(try await wanted("failures") == [])
            #expect(try await fixture.store.subscription("failures").position == 4)
            let claimed = try await fixture.claim()
            #expect(
                claimed.count == 5 && Set(claimed.map(\.url)) == ["http://all.test/hook", "http://night.test/hook"])
            #expect(claimed.allSatisfy { $0.event.id.hasPrefix("grp-") && $0.attempts == 0 })
        }
    }

    @Test func everyEventIsFannedOutOnceUnderConcurrency() async throws {
        try await StoreFixture.run(connections: 10) { fixture in
            for number in 0..<3 { try await fixture.subscribe("s\(number)") }
            let writers = 4
            let each = 20
            let running = Observed(writers)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writers {
                    group.addTask {
                        for number in 0..<each { try await fixture.makeGroup("g\(writer)-\(number)", isSealed: true) }
                        running.update { $0 -= 1 }
                    }
                }
                for _ in 0..<3 {
                    group.addTask {
                        while running.value > 0 {
                            _ = try await fixture.store.sequenceEvents(limit: 3)
                            _ = try await fixture.store.fanOutEvents(limit: 2)
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await fixture.logEvents()
            try await fixture.fanOut()
            let made = try await fixture.store.deliveries(state: nil, subscription: nil, after: 0, limit: 1_000)
            #expect(made.count == 3 * writers * each)
            #expect(Set(made.map { "\($0.subscription):\($0.position)" }).count == made.count)
        }
    }

    @Test func noSubscriptionHasMoreThanItsShareUnderWay() async throws {
        try await StoreFixture.run(connections: 10) { fixture in
            for number in 0..<3 { try await fixture.subscribe("s\(number)") }
            try await fixture.makeEvents(30)
            try await fixture.fanOut()
            let claimed = try await withThrowingTaskGroup(of: [ClaimedDelivery].self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        var all: [ClaimedDelivery] = []
                        for _ in 0..<5 { all += try await fixture.claim(limit: 5, each: 8) }
                        return all
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(claimed.map(\.id)).count == claimed.count)
            for name in ["s0", "s1", "s2"] {
                let mine = claimed.filter { $0.subscription == name }.count
                #expect(mine <= 8)
            }
            // Deliveries that another transaction had locked are claimed next.
            #expect(try await claimed.count + fixture.claim(each: 8).count == 24)
            #expect(try await fixture.claim(each: 8).isEmpty)
            try await fixture.store.settle(claimed[0], as: .delivered(status: 204))
            #expect(try await fixture.claim(each: 8).map(\.subscription) == [claimed[0].subscription])
        }
    }

    @Test func expiredClaimComesBackAndItsResultIsIgnored() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(1)
            try await fixture.fanOut()
            let first = try #require(try await fixture.claim().first)
            #expect(try await fixture.claim().isEmpty)
            try await fixture.passWaits()
            let second = try #require(try await fixture.claim().first)
            #expect(second.id == first.id && second.epoch > first.epoch && second.event == first.event)
            #expect(try await !fixture.store.settle(first, as: .failed(status: 1, failure: "", wait: nil, until: nil)))
            #expect(try await fixture.store.settle(second, as: .delivered(status: 200)))
            #expect(try await !fixture.store.settle(second, as: .delivered(status: 200)))
            let record = try await fixture.store.deliveries(state: .delivered, subscription: nil, after: 0, limit: 9)
            #expect(record.map(\.attempts) == [1] && record.map(\.status) == [200])
        }
    }

    @Test func nextTryWaitsForScheduleAndReceiver() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(4)
            try await fixture.fanOut()
            let claimed = try await fixture.claim()
            let now = try await fixture.store.now()
            func wait(_ index: Int, _ wait: Duration?, until: Duration?) async throws -> Duration? {
                let until = until.map { Timestamp(microseconds: now.microseconds + $0.milliseconds * 1_000) }
                try await fixture.store.settle(
                    claimed[index], as: .failed(status: 503, failure: "busy", wait: wait, until: until))
                let record = try #require(
                    try await fixture.store.deliveries(
                        state: nil, subscription: "s", after: claimed[index].id - 1, limit: 1
                    ).first)
                #expect(record.attempts == 1 && record.status == 503 && record.failure == "busy")
                #expect((record.state == .dead) == (wait == nil))
                return record.nextTryAt?.since(now)
            }
            let plain = try #require(try await wait(0, .seconds(300), until: nil))
            #expect(plain >= .seconds(300) && plain < .seconds(600))
            let asked = try #require(try await wait(1, .seconds(5), until: .seconds(7_200)))
            #expect(asked == .seconds(7_200))
            let capped = try #require(try await wait(2, .seconds(5), until: .seconds(10_000_000)))
            #expect(capped >= Limits.webhookRetryAfter && capped < Limits.webhookRetryAfter + .seconds(300))
            #expect(try await wait(3, nil, until: nil) == nil)
            #expect(try await fixture.claim().isEmpty)
        }
    }

    @Test func releasedDeliveryIsDueAtOnceAndHasNotBeenTried() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(1)
            try await fixture.fanOut()
            let first = try #require(try await fixture.claim().first)
            #expect(try await fixture.store.settle(first, as: .released))
            let second = try #require(try await fixture.claim().first)
            #expect(second.id == first.id && second.attempts == 0)
        }
    }

    @Test func replayRestartsTheSchedule() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(2)
            try await fixture.fanOut()
            let claimed = try await fixture.claim()
            try await fixture.store.settle(claimed[0], as: .failed(status: 500, failure: "no", wait: nil, until: nil))
            try await fixture.store.settle(claimed[1], as: .delivered(status: 200))
            for delivery in claimed {
                let replayed = try await fixture.store.replay(delivery: delivery.id)
                #expect(replayed.state == .pending && replayed.attempts == 0 && replayed.event == delivery.event.id)
            }
            let again = try await fixture.claim()
            #expect(again.map(\.event) == claimed.map(\.event))
            // The result of a try that began before the replay does not end the replay.
            _ = try await fixture.store.replay(delivery: again[0].id)
            #expect(try await !fixture.store.settle(again[0], as: .delivered(status: 200)))
            await #expect(throws: EventRefusal.noSuchDelivery(99)) { try await fixture.store.replay(delivery: 99) }
        }
    }
}
