import MusterCore
import Testing

@testable import MusterStore

/// Requests with an idempotency key (I10, F7).
@Suite("Requests that are done once")
struct RequestTests {
    /// The transaction itself refuses, however long ago the request was checked.
    @Test func requestThatWasAnsweredMeanwhileHasNoEffect() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            let store = fixture.store
            try await fixture.serving("pause") {
                _ = try await store.apply(.pause, to: "g", keys: nil)
                _ = try await store.keep(RequestAnswer(status: 200, body: "{}"), to: try #require(Store.request))
            }
            _ = try await store.apply(.resume, to: "g", keys: nil)
            let late: [@Sendable () async throws -> Void] = [
                { _ = try await store.apply(.pause, to: "g", keys: nil) },
                { _ = try await store.apply(.cancel, to: "g", keys: nil) },
                { _ = try await store.remove("g", keys: nil, deletingFiles: true) },
                { _ = try await store.seal("g") },
                { _ = try await store.change("g", GroupChange(priority: 9)) },
            ]
            for request in late {
                await #expect(throws: Store.RequestAnswered.self) { try await fixture.serving("pause", request) }
            }
            let group = try await store.group("g")
            #expect(group.tasks[.queued] == 2 && group.priority == 0 && group.state == .open)
            try await fixture.check()
        }
    }

    @Test func firstAnswerOfARequestIsKept() async throws {
        try await StoreFixture.run { fixture in
            let request = NamedRequest(key: "k", about: "a")
            let answers = [RequestAnswer(status: 201, body: "{}"), RequestAnswer(status: 200, body: "[]")]
            #expect(try await fixture.store.answer(to: request) == nil)
            for answer in answers { #expect(try await fixture.store.keep(answer, to: request) == answers[0]) }
            #expect(try await fixture.store.answer(to: request) == answers[0])
            let other = NamedRequest(key: "k", about: "b")
            await #expect(throws: Store.Refusal.keyReused) { try await fixture.store.answer(to: other) }
            #expect(try await fixture.store.dropRequests(olderThan: .seconds(60)) == 0)
            #expect(try await fixture.store.answer(to: request) != nil)
            let dropped = try await fixture.store.dropRequests(olderThan: .zero)
            #expect(dropped == 1)
            #expect(try await fixture.store.answer(to: request) == nil)
        }
    }

    /// Another coordinator has removed a group that this one no longer finds, and has not answered yet.
    @Test func refusalGivesWayToTheAnswerOfAnotherProcess() async throws {
        try await StoreFixture.run { fixture in
            let (store, request) = (fixture.store, NamedRequest(key: "k", about: ""))
            let (refusal, answer) = (RequestAnswer(status: 404, body: "{}"), RequestAnswer(status: 200, body: "{}"))
            #expect(try await store.keep(refusal: refusal, of: request) == nil)
            #expect(try await store.answer(to: request) == refusal)
            _ = try await store.dropRequests(olderThan: .zero)
            try await fixture.makeGroup("g", Wanted.many(1))
            try await fixture.serving("k") { _ = try await store.apply(.pause, to: "g", keys: nil) }
            async let told = store.keep(refusal: refusal, of: request)
            #expect(try await store.keep(answer, to: request) == answer)
            #expect(try await told == answer)
        }
    }

    /// A key is refused for another request even while neither has been answered.
    @Test func keyBelongsToOneRequest() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(1))
            try await fixture.serving("k") { _ = try await fixture.store.apply(.pause, to: "g", keys: nil) }
            await #expect(throws: Store.Refusal.keyReused) {
                try await Store.$request.withValue(NamedRequest(key: "k", about: "other")) {
                    _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
                }
            }
            #expect(try await fixture.store.group("g").tasks[.paused] == 1)
        }
    }
}

extension StoreFixture {
    /// Runs `body` as the request with a key, or without a key.
    func serving<Answer: Sendable>(_ key: String?, _ body: () async throws -> Answer) async throws -> Answer {
        guard let key else { return try await body() }
        return try await Store.$request.withValue(NamedRequest(key: key, about: ""), operation: body)
    }
}
