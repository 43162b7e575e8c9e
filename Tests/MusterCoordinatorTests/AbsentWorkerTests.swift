import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator
@testable import MusterStore

@Suite("Groups whose workers are silent, or gone")
struct AbsentWorkerTests {
    private func document(_ facts: GroupFacts) -> GroupExplanationDocument { GroupExplanation(facts: facts).document }

    @Test func workersThatWereNotHeardOfAreNamed() {
        var facts = GroupExplanationTests.facts()
        facts.workers.silent = [.init(name: "b", since: GroupExplanationTests.now, endsAt: nil)]
        facts.situation.at = GroupExplanationTests.soon
        #expect(document(facts).summary.hasSuffix("lately; nothing has been heard of the worker b for 10 s."))
        facts.workers.silent.append(.init(name: "c", since: GroupExplanationTests.soon, endsAt: nil))
        #expect(document(facts).summary.hasSuffix("nothing has been heard of the worker b and 1 more for 10 s."))
        facts.group.tasks.finalizing = facts.group.tasks.active
        facts.group.tasks.active = 0
        facts.situation.leases.finalizing = 1
        #expect(document(facts).summary.contains("put in place; nothing has been heard of the worker b"))
    }

    @Test func nothingIsForetoldWhileAllWorkersAreSilent() {
        var facts = GroupExplanationTests.facts()
        facts.situation.stragglers = [
            .init(
                key: "k", kind: .fetch, origin: "https://a.example:443", worker: "b", bytesLeft: 900,
                bytesPerSecond: 100, grantedAt: GroupExplanationTests.now)
        ]
        facts.workers.silent = [.init(name: "b", since: GroupExplanationTests.now, endsAt: nil)]
        facts.situation.at = GroupExplanationTests.soon
        #expect(document(facts).eta.seconds != nil, "others may take over")
        facts.workers.areAllSilent = true
        let working = document(facts)
        #expect(working.waits.map(\.reason) == [.fetching], "the silence is part of the summary")
        #expect(working.eta.seconds == nil && working.slowestOrigin == nil)
        #expect(working.eta.because == "nothing has been heard of the worker b for 10 s")
        #expect(
            working.criticalPath == [
                "a worker has to be heard of again, or another one to come", "58.6 KiB to be fetched",
                "the last of its files has to be verified and put in place",
            ])
        facts.group.tasks.active = 0
        let waiting = document(facts)
        #expect(waiting.waits.map(\.reason) == [.noWorker])
        #expect(waiting.summary == "Nothing has been heard of the worker b for 10 s.")
        #expect(waiting.next == "it goes on when that is heard of again, or another worker for the sink is there")
    }

    @Test func noCommandIsGivenForAWorkerThatStartsByItself() {
        var facts = GroupExplanationTests.facts()
        facts.group.tasks.active = 0
        facts.workers.reaching = 0
        #expect(document(facts).summary.contains("muster work --sink default=DIR"))
        facts.workers.own = .coming
        #expect(
            document(facts).summary
                == #"No live worker reaches the sink "default" now; muster up starts its own by itself, and says what keeps them."#
        )
        facts.workers.own = .left
        #expect(document(facts).summary.contains("told to leave, and come back when that is started again; or start"))
        facts.workers.own = .within
        #expect(document(facts).summary.contains("that of this command comes back by itself"))
    }

    @Test func aWorkerThatIsLeavingDoesNotComeBackByItself() {
        var own = OwnProcess()
        #expect(own.workers("s", leaving: 1) == .none)
        own.workers = { _ in .coming }
        #expect(own.workers("s", leaving: 0) == .coming && own.workers("s", leaving: 1) == .left)
    }

    /// With a full database disk, workers' reports can't be stored; the workers themselves are fine.
    @Test func lackOfTheDatabaseIsNamedInsteadOfTheWorkers() {
        var facts = GroupExplanationTests.facts()
        facts.workers.silent = [
            .init(name: "b", since: GroupExplanationTests.now, endsAt: nil, databaseTrouble: "the disk is full")
        ]
        #expect(document(facts).summary.hasSuffix("lately; what workers report can't be stored: the disk is full."))
    }

    @Test func workersThatAreAboutToBeginOrToEndAreNotMissed() async throws {
        let arePassing = Observed(true)
        try await RunningCoordinator.with {
            $0.ownProcess.workers = { _ in arePassing.value ? .passing : .none }
        } _: { coordinator in
            let tasks = [TaskRequest(urls: ["http://127.0.0.1:1/a"], size: 10)]
            let made = try await coordinator.client.createGroup(GroupRequest(name: "g", tasks: tasks))
            #expect(made.notes.isEmpty)
            arePassing.update { $0 = false }
            #expect(try await coordinator.client.group("g").notes.contains { $0.contains("no live worker") })
        }
    }
}
