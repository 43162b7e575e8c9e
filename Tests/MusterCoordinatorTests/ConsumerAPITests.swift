import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// `/v1/consumers`: readers whose position the coordinator keeps.
@Suite struct ConsumerAPITests {
    @Test func readerIsGivenTheSameUntilItAcknowledges() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            try await coordinator.makeEvents(3)
            try await coordinator.waitForEvents(upTo: 3)
            for _ in 0..<2 {
                let events = try await client.consumerEvents("c", limit: 2, wait: .seconds(5))
                #expect(events.items.map(\.position) == [1, 2] && events.next == 2)
            }
            #expect(try await client.acknowledge(2, consumer: "c").position == 2)
            #expect(try await client.consumerEvents("c").items.map(\.position) == [3])
            // A late acknowledgement of an older position changes nothing.
            #expect(try await client.acknowledge(1, consumer: "c").position == 2)
            #expect(try await client.consumerEvents("c").items.map(\.position) == [3])
            #expect(try await client.consumers().items.map(\.behind) == [1])
            try await client.removeConsumer("c")
            #expect(try await client.consumerEvents("c").items.map(\.position) == [1, 2, 3])
        }
    }

    /// Two processes of one name never deal with the same event at once.
    @Test func oneHolderAtATimeHasAConsumer() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            func isRefused(_ holder: String) async throws -> Bool {
                do {
                    _ = try await client.holdConsumer("c", holder: holder, for: .seconds(60))
                    return false
                } catch let problem as Problem where problem.code == .conflict {
                    return true
                }
            }
            let first = try await client.holdConsumer("c", holder: "a", for: .seconds(60)).until
            #expect(try await isRefused("b"))
            #expect(try await client.holdConsumer("c", holder: "a", for: .seconds(60)).until > first)
            #expect(try await client.holdConsumer("d", holder: "b", for: .seconds(60)).name == "d")
            // Only the holder can give the hold back.
            try await client.releaseConsumer("c", holder: "b")
            #expect(try await isRefused("b"))
            try await client.releaseConsumer("c", holder: "a")
            #expect(try await !isRefused("b"))
            // A hold also ends by itself.
            _ = try await client.holdConsumer("e", holder: "a", for: .seconds(1))
            try await eventually("the end of the hold") {
                (try? await client.holdConsumer("e", holder: "b", for: .seconds(1))) != nil
            }
            for body in [#"{"holder": "", "seconds": 9}"#, #"{"holder": "a", "seconds": 0}"#, #"{"holder": "a"}"#] {
                #expect(try await coordinator.raw("PUT", "/v1/consumers/c/holder", body: body).status == 400, "\(body)")
            }
            #expect(try await coordinator.raw("DELETE", "/v1/consumers/c/holder").status == 400)
        }
    }

    @Test func positionThatNamesAnotherLogIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            try await coordinator.makeEvents(2)
            let client = coordinator.client
            let page = try await client.consumerEvents("c", wait: .seconds(5))
            #expect(try await client.acknowledge(1, of: page.log, consumer: "c").position == 1)
            await #expect {
                try await client.acknowledge(2, of: "another", consumer: "c")
            } throws: { error in
                (error as? Problem)?.code == .otherLog
            }
            #expect(try await client.acknowledge(1, of: page.log, consumer: "c").position == 1)
        }
    }

    @Test func refusalsSayWhy() async throws {
        try await RunningCoordinator.with { coordinator in
            try await coordinator.makeEvents(1)
            _ = try await coordinator.client.events(after: 0, wait: .seconds(5))
            let table = [
                (#"{"position": 2}"#, 409, "the log ends at 1"),
                (#"{"position": -1}"#, 400, "must not be negative"), (#"{}"#, 400, "is missing"),
                (#"{"position": "1"}"#, 400, "wrong type"), (#"{"position": 1, "x": 1}"#, 400, "unknown field"),
            ]
            for (body, status, reason) in table {
                let answer = try await coordinator.raw("POST", "/v1/consumers/c/ack", body: body)
                #expect(
                    answer.status == status && String(decoding: answer.body, as: UTF8.self).contains(reason), "\(body)")
            }
            #expect(
                try await coordinator.raw("POST", "/v1/consumers/a%20b/ack", body: #"{"position":1}"#).status == 400)
            #expect(try await coordinator.raw("DELETE", "/v1/consumers/none").status == 404)
            #expect(try await coordinator.raw("GET", "/v1/consumers/c/events?groups=%5Ba%5D").status == 400)
            #expect(try await coordinator.client.consumers().items.isEmpty)
        }
    }

    @Test func filterMovesThePlaceOverWhatItDoesNotWant() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            try await coordinator.makeEvents(["day-1", "night-1", "day-2"])
            try await coordinator.waitForEvents(upTo: 3)
            let events = try await client.consumerEvents("c", groups: "night-*")
            #expect(events.items.map(\.position) == [2] && events.next == 3)
            #expect(try await client.acknowledge(events.next, consumer: "c").behind == 0)
            let types = ["dev.muster.group.failed.v1"]
            #expect(try await client.consumerEvents("d", types: types).items.isEmpty)
        }
    }

    /// Killed in the middle of anything, a consumer never misses a position, and sees them in order.
    @Test func consumerThatIsCutOffAtRandomSeesEverythingInOrder() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let count: Int64 = 60
            let seen = Observed<[Int64]>([])
            var generator = SeededGenerator.forTest()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await coordinator.makeEvents(Int(count)) }
                while seen.value.last != count {
                    let target = seen.value.count + Int.random(in: 1...6, using: &generator)
                    await withTaskGroup(of: Void.self) { lives in
                        lives.addTask {
                            try? await Self.consume(client, seen)
                        }
                        lives.addTask {
                            _ = try? await seen.wait(for: "some events") { $0.count >= target || $0.last == count }
                        }
                        await lives.next()
                        lives.cancelAll()
                    }
                }
                try await group.waitForAll()
            }
            var last: Int64 = 0
            for position in seen.value {
                #expect(position <= last + 1, "\(last + 1) was passed over")
                last = max(last, position)
            }
            #expect(last == count)
        }
    }

    /// Reads, records and acknowledges events until it is cancelled.
    private static func consume(_ client: MusterClient, _ seen: Observed<[Int64]>) async throws {
        while !Task.isCancelled {
            for event in try await client.consumerEvents("c", limit: 4, wait: .seconds(5)).items {
                seen.update { $0.append(event.position) }
                _ = try await client.acknowledge(event.position, consumer: "c")
            }
        }
    }
}
