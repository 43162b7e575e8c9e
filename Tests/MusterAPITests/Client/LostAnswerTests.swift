import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

private let one = "http://one:7300"
private let two = "http://two:7300"

/// A request that is done, but whose answer is lost, is repeated at the next server (F6).
@Suite("Lost answers")
struct LostAnswerTests {
    /// Two servers, of which the first does what is asked and never answers.
    private func client(then reaction: Script.Reaction, first: Script.Reaction = .unreachable) -> (MusterClient, Script)
    {
        let script = Script([
            "\(one)/healthz": .answer(200, ""), "\(one)/v1": first, "\(two)/v1/groups": reaction,
            "\(two)/v1/subscriptions": reaction, "\(two)/v1/consumers": reaction,
            "\(two)/v1/removals": .answer(200, #"{"files":3,"group":"g","sink":"s","workersReaching":1}"#),
        ])
        return (script.client([one, two]), script)
    }

    @Test func repeatedRemovalThatFindsNothingIsDone() async throws {
        let (client, script) = client(then: .problem(Problem(.groupNotFound, "no")))
        #expect(try await client.removeGroup("g").files == 3)
        #expect(script.urls.last == "\(two)/v1/removals/g")
        try await self.client(then: .problem(Problem(.taskNotFound, "no"))).0.removeTask("k", of: "g")
        try await self.client(then: .problem(Problem(.subscriptionNotFound, "no"))).0.removeSubscription("s")
        try await self.client(then: .problem(Problem(.consumerNotFound, "no"))).0.removeConsumer("c")
    }

    /// A "not found" counts as done only after a lost answer. Here the first server refuses the connection, or the second reports another problem.
    @Test(arguments: [
        (Script.Reaction.refused, Problem(.groupNotFound, "no")), (.unreachable, Problem(.conflict, "no")),
    ])
    func removalThatWasNotDoneIsRefused(first: Script.Reaction, refusal: Problem) async throws {
        let (client, _) = client(then: .problem(refusal), first: first)
        await #expect(throws: refusal) { try await client.removeGroup("g") }
        await #expect(throws: refusal) { try await client.removeTask("k", of: "g") }
        await #expect(throws: refusal) { try await client.removeSubscription("s") }
    }

    /// The answer to a repetition does not count what the first request changed.
    @Test(arguments: [Script.Reaction.unreachable, .refused])
    func changedTasksAreUnknownAfterALostAnswer(first: Script.Reaction) async throws {
        let group =
            #"{"bytes":{"done":0,"total":0,"unknownTasks":0},"bytesPerSecond":0,"changedTasks":0,"#
            + #""createdAt":"2026-01-02T03:04:05.000006Z","etaSeconds":null,"finishedAt":null,"generation":1,"limits":{},"#
            + #""name":"g","notes":[],"priority":0,"sealed":true,"sink":"s","state":"sealed","tasks":{"active":0,"cancelled":0,"#
            + #""failed":0,"finalizing":0,"paused":0,"queued":0,"succeeded":0,"total":0},"weight":1}"#
        let isLost = if case .unreachable = first { true } else { false }
        let (client, _) = client(then: .answer(200, group), first: first)
        #expect(try await client.apply(.retry, to: "g").changedTasks == (isLost ? nil : 0))
        let (other, _) = self.client(then: .answer(200, group), first: first)
        #expect(try await other.removeTasks(["k"], of: "g").changedTasks == (isLost ? nil : 0))
    }

    @Test func lostAnswerSaysWhetherTheChangeMayBeDone() async throws {
        for (first, mayBeDone) in [(Script.Reaction.unreachable, true), (.silent, true), (.refused, false)] {
            let script = Script(["\(one)/healthz": .answer(200, ""), "\(one)/v1": first])
            let failure = await #expect(throws: Unreachable.self) { try await script.client([one]).drain(worker: "w") }
            #expect(failure?.mayBeDone == mayBeDone)
            let reading = await #expect(throws: Unreachable.self) { try await script.client([one]).workers() }
            #expect(reading?.mayBeDone == false)
        }
    }
}
