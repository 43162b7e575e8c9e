import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// Each reason for which a task is not done, from facts alone.
@Suite("Why a task is not done")
struct ExplanationTests {
    private static let now = Timestamp(microseconds: 1_772_366_400_000_000)
    private static let later = Timestamp(microseconds: 1_772_366_460_000_000)
    /// A queued task whose one chunk is ready, with room everywhere.
    static func facts(
        _ state: TaskState = .queued, ready: Int64 = 1, waiting: Int64 = 0, leased: Int64 = 0,
        failure: TaskFailure? = nil
    ) -> TaskFacts {
        var task = TaskDocument(key: "k", state: state, urls: ["https://a.example/k"], path: "k", createdAt: now)
        task.failure = failure
        let situation = TaskSituation(
            chunks: .init(done: 0, leased: leased, ready: ready, waiting: waiting, parked: 0), groupConnections: 1,
            workers: .init(reaching: 2, draining: 0, freeSlots: 4), work: [], sources: [],
            origins: [.sample("a", connections: 1)], attempts: [], at: now)
        return TaskFacts(
            task: task, situation: situation, group: "g", sink: "default",
            workers: .init(reaching: 2, freeSlots: 4))
    }

    private static func work(_ kind: LeaseKind, _ worker: String = "w") -> TaskWork {
        .init(worker: worker, kind: kind, start: 0, end: 10, durable: 0, source: nil, since: now)
    }

    private func reasons(_ facts: TaskFacts) -> [ExplanationDocument.Reason] {
        Explanation(facts: facts).waits.map(\.reason)
    }

    @Test func aPausedTaskWaitsForNothingElse() {
        var facts = Self.facts(.paused)
        facts.workers.reaching = 0
        #expect(reasons(facts) == [.paused])
        #expect(Explanation(facts: facts).document.summary == "It is paused; go on with: muster resume g k.")
        #expect(Explanation(facts: facts).document.next == nil)
        var group = Self.facts()
        group.isGroupPaused = true
        #expect(Explanation(facts: group).document.summary == "The group is paused; go on with: muster resume g.")
    }

    @Test func fileThatMayBeAPageIsNotCalledTheFile() {
        var facts = Self.facts(.succeeded, ready: 0)
        #expect(
            Explanation(facts: facts).document.summary == "It has succeeded: the file stands at k, whole and verified.")
        facts.task.attempts = 2
        facts.situation.isDoubtful = true
        let document = Explanation(facts: facts).document
        #expect(document.doubtful == true)
        #expect(document.summary.contains("was taken as the file at try 3, and nothing tells whether it is one"))
    }

    @Test func aTaskThatIsFetchedNamesItsWorkersAndSinceWhen() {
        var facts = Self.facts(.active, ready: 0, leased: 2)
        facts.situation.work = [Self.work(.fetch, "a"), Self.work(.fetch, "b")]
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.fetching] && document.waits[0].since == Self.now)
        #expect(document.summary == "2 workers are fetching 2 chunks of it.")
        #expect(document.next == "the file is verified and put in place when its last bytes are there")
    }

    /// An origin that accepts connections and answers nothing.
    @Test func aTaskOfWhichNothingComesSaysThatItIsTriedAgain() {
        var facts = Self.facts(.active, ready: 0, leased: 1)
        facts.situation.work = [Self.work(.fetch)]
        facts.situation.at = Self.later
        let document = Explanation(facts: facts).document
        #expect(document.summary.contains("nothing of that has come"))
        #expect(
            document.next
                == "a try that nothing comes of is over within minutes, and the file is tried again while it has tries left"
        )
        facts.task.attempts = 2
        #expect(Explanation(facts: facts).document.next?.hasSuffix("left; 2 of its tries have failed") == true)
    }

    /// Lists of tasks and progress show the same numbers.
    @Test func explanationAndDocumentOfATaskGiveTheSameEstimate() {
        var facts = Self.facts(.active, ready: 0, leased: 1)
        facts.situation.work = [Self.work(.fetch)]
        facts.task.etaSeconds = 60
        #expect(Explanation(facts: facts).document.next?.hasSuffix("as things go at \(Self.later)") == true)
        var paused = Self.facts()
        paused.situation.origins[0].pausedUntil = Timestamp(microseconds: Self.later.microseconds + 60_000_000)
        paused.situation.origins[0].isTried = true
        #expect(Explanation(facts: paused).document.next == "it goes on at 2026-03-01T12:02:00.000Z")
        paused.task.retry = .init(number: 2, inSeconds: 60)
        #expect(Explanation(facts: paused).document.next == "it goes on at \(Self.later)")
    }

    @Test func aWorkerThatIsSilentIsNamed() {
        var facts = Self.facts(.active, ready: 0, leased: 2)
        facts.situation.work = [Self.work(.fetch, "a"), Self.work(.fetch, "b")]
        facts.situation.work[1].silentSince = Self.now
        facts.situation.work[1].endsAt = Self.later
        facts.situation.at = Timestamp(microseconds: Self.now.microseconds + 6_200_000)
        #expect(
            Explanation(facts: facts).document.summary
                == "2 workers are fetching 2 chunks of it; nothing has been heard of the worker b for 6 s; it counts as gone in 53 s."
        )
        facts.situation.work.append(facts.situation.work[1])
        facts.situation.at = Self.later
        #expect(
            Explanation(facts: facts).document.summary.hasSuffix("of the worker b for 60 s; it counts as gone now."),
            "it is one worker")
    }

    @Test func aTaskThatIsReadyDoesNotPromiseASilentWorker() {
        var facts = Self.facts()
        facts.workers.silent = [.init(name: "b", since: Self.now, endsAt: nil)]
        facts.situation.at = Self.later
        #expect(reasons(facts) == [.workersBusy], "another one takes it")
        facts.workers.areAllSilent = true
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.noWorker])
        #expect(document.summary == "Nothing has been heard of the worker b for 60 s.")
        #expect(document.next == "it goes on when that is heard of again, or another worker for the sink is there")
    }

    @Test func aTaskThatIdlePlacesHelpWithSaysHow() {
        var facts = Self.facts(.active, ready: 0, leased: 2)
        facts.situation.work = [Self.work(.fetch, "a"), Self.work(.fetch, "b"), Self.work(.fetch, "c")]
        facts.situation.shrinking = 1
        #expect(
            Explanation(facts: facts).document.summary
                == "3 workers are fetching 3 chunks of it; one is to give the tail to others.")
    }

    @Test func otherWaitsOfATaskComeAfterItsFetching() {
        var facts = Self.facts(.active, ready: 2, waiting: 1, leased: 1)
        facts.situation.work = [Self.work(.fetch)]
        facts.situation.dueAt = Self.later
        facts.situation.origins[0].connections = 8
        #expect(reasons(facts) == [.fetching, .backoff, .originFull])
        #expect(Explanation(facts: facts).document.next?.hasPrefix("3 more chunks are fetched") == true)
    }

    @Test func aTaskThatIsVerifiedSaysSo() {
        var facts = Self.facts(.finalizing, ready: 0, leased: 1)
        facts.situation.work = [Self.work(.finalize)]
        #expect(reasons(facts) == [.finalizing])
        #expect(Explanation(facts: facts).document.summary == "The worker w verifies the file and puts it in place.")
    }

    @Test func aFileThatIsToBePutInPlaceNeedsAWorkerAndNoConnection() {
        var facts = Self.facts(.finalizing)
        facts.situation.origins = []
        facts.groupCap = 1
        #expect(reasons(facts) == [.workersBusy])
        facts.workers.reaching = 0
        #expect(reasons(facts) == [.noWorker])
    }

    @Test func backoffSaysUntilWhenAndWhatWentWrong() {
        var facts = Self.facts(ready: 0, waiting: 1)
        facts.situation.dueAt = Self.later
        facts.situation.attempts = [
            .init(
                at: Self.now, worker: "w", source: nil, kind: .httpStatus(503), status: 503, detail: "busy",
                requestID: nil, address: nil, offset: 0, outcome: .retry)
        ]
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.backoff])
        #expect(document.waits[0].until == Self.later && document.waits[0].since == Self.now)
        #expect(document.summary == "The last try failed: 503 Service Unavailable: busy.")
        #expect(document.next == "it is tried again at \(Self.later)")
    }

    @Test func aPausedOriginIsAReasonOnlyIfEveryOriginIsPaused() {
        var facts = Self.facts()
        facts.situation.origins[0].pausedUntil = Self.later
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.originPaused] && document.waits[0].until == Self.later)
        #expect(document.summary == "The origin https://a.example:443 is paused.")
        let sooner = "muster origins set https://a.example:443 --pause-until none"
        #expect(document.next == "it goes on at \(Self.later); sooner with: \(sooner)")
        facts.situation.origins.append(.sample("b"))
        #expect(reasons(facts) == [.workersBusy])
    }

    @Test func aFullOriginIsAReasonOnlyIfNoOtherHasRoom() {
        var facts = Self.facts()
        facts.situation.origins[0].allowedConnections = 1
        #expect(reasons(facts) == [.originFull])
        #expect(Explanation(facts: facts).document.summary.contains("the one connection"))
        facts.situation.origins.append(.sample("b"))
        facts.situation.origins[1].pausedUntil = Self.later
        #expect(reasons(facts) == [.originFull], "a paused one has no room either")
        facts.situation.origins[1].pausedUntil = nil
        #expect(reasons(facts) == [.workersBusy])
    }

    @Test func anOriginThatRefusedOthersSaysWhatKeepsItsConnectionsFew() {
        var facts = Self.facts()
        facts.situation.origins[0].allowedConnections = 1
        facts.situation.origins[0].limit = .init(status: 404, seconds: 6)
        #expect(
            Explanation(facts: facts).document.summary
                == "The origin https://a.example:443 has the one connection that it may have now: it refused others with 404 6 s ago; "
                + "one more is tried every 10 s.")
        facts.situation.origins[0].limit = .init(status: nil, seconds: 6)
        #expect(Explanation(facts: facts).document.summary.contains("it ended connections of others 6 s ago"))
    }

    @Test func theSameFileThatAnotherTaskFetchesIsAReason() {
        var facts = Self.facts(ready: 0, waiting: 1)
        facts.situation.awaited = .init(group: "other", key: "theirs")
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.sameFile])
        #expect(document.summary == #"The same is being fetched for "theirs" of the group "other"."#)
        #expect(document.next == "it is made of that file when that is there; if that one fails, it is fetched")
        // Without the other task, it waits for the backoff after its own failure.
        facts.situation.awaited = nil
        facts.situation.dueAt = Self.later
        #expect(reasons(facts) == [.backoff])
    }

    @Test func aFullGroupIsAReason() {
        var facts = Self.facts()
        facts.groupCap = 1
        #expect(reasons(facts) == [.groupFull])
        facts.situation.groupConnections = 0
        #expect(reasons(facts) == [.workersBusy])
    }

    @Test func aSinkThatNoWorkerReachesIsNamedWithTheCommandThatHelps() {
        var facts = Self.facts()
        facts.workers = .init(reaching: 0, freeSlots: 0)
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.noWorker])
        #expect(document.summary.contains("muster work --sink default=DIR"))
    }

    @Test func aSinkInTroubleIsAReasonOnlyIfItIsSoEverywhere() {
        var facts = Self.facts()
        facts.workers = .init(reaching: 2, isSinkParked: true, parkedDetail: "no space left", freeSlots: 0)
        #expect(reasons(facts) == [.sinkParked])
        #expect(Explanation(facts: facts).document.summary.contains("no space left"))
        facts.workers.isSinkParked = false
        #expect(reasons(facts) == [.workersBusy])
    }

    @Test func busyWorkersAreTheLastReason() {
        var facts = Self.facts()
        facts.workers.freeSlots = 0
        let busy = Explanation(facts: facts).document
        #expect(busy.waits.map(\.reason) == [.workersBusy] && busy.summary.contains("is busy"))
        facts.workers.freeSlots = 1
        #expect(Explanation(facts: facts).document.summary.contains("as soon as a connection is free"))
    }

    @Test func aQuestionToTheResolverIsAReasonWhileItIsAskedAndBefore() {
        var facts = Self.facts(ready: 0, waiting: 2)
        facts.situation.question = .asked(worker: "w", since: Self.now)
        #expect(reasons(facts) == [.resolver])
        #expect(Explanation(facts: facts).document.next == "it goes on with the fresh URL")
        facts.situation.question = .due(Self.later)
        #expect(Explanation(facts: facts).document.next == "the resolver is asked again at \(Self.later)")
    }

    @Test func aDeadlineIsPartOfWhatHappensNext() {
        var facts = Self.facts()
        facts.task.deadlineAt = Self.later
        let document = Explanation(facts: facts).document
        #expect(document.next?.hasSuffix("it fails at \(Self.later) if it is not done by then") == true)
        #expect(document.deadlineAt == Self.later)
    }

    @Test func aFailedTaskSaysHowItEndedAndWhatCanBeDone() {
        let failure = TaskFailure(
            kind: .notFound, detail: "it does not have it", at: Self.now, status: 404, source: "https://a.example/k")
        let document = Explanation(facts: Self.facts(.failed, ready: 0, failure: failure)).document
        #expect(
            document.summary
                == "It failed: 404 Not Found from https://a.example/k: it does not have it")
        #expect(document.waits.isEmpty && document.next == "put it back with what it has: muster retry g k")
    }

    @Test func aTaskThatIsThereOrCancelledWaitsForNothing() {
        for state in [TaskState.succeeded, .cancelled] {
            let document = Explanation(facts: Self.facts(state)).document
            #expect(document.waits.isEmpty && document.next == nil && document.deadlineAt == nil)
        }
        #expect(Explanation(facts: Self.facts(.succeeded)).document.summary.contains("stands at k"))
        var facts = Self.facts(.succeeded)
        facts.task.reusedFrom = "earlier/k"
        let summary = Explanation(facts: facts).document.summary
        #expect(summary.hasSuffix(" the origin said that earlier/k is still the same, of which it was made."))
    }

    @Test func reasonsOfAGroupHoldItsTasksButNotThoseThatAreFetchedAlready() {
        var facts = Self.facts()
        facts.prerequisites = ["a", "b"]
        #expect(reasons(facts) == [.prerequisites])
        #expect(Explanation(facts: facts).document.summary == #"Its group waits for the groups "a", "b"."#)
        facts.prerequisites = []
        facts.window = .closed(until: Self.later)
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.windowClosed] && document.waits[0].until == Self.later)
        #expect(document.next == "it goes on at \(Self.later)")
        facts.task.state = .finalizing
        #expect(reasons(facts) == [.workersBusy])
        facts.window = .always
        facts.isGroupPaused = true
        #expect(reasons(facts) == [.workersBusy])
        facts.situation.chunks = .init(done: 0, leased: 1, ready: 0, waiting: 0, parked: 0)
        facts.situation.work = [Self.work(.finalize)]
        let placing = Explanation(facts: facts).document
        #expect(placing.waits.map(\.reason) == [.finalizing])
        #expect(placing.summary == "The worker w verifies the file and puts it in place.")
        #expect(placing.next == "the task succeeds if the bytes are the right ones")
    }

    @Test func aTaskOfAPausedGroupThatIsStillFetchedSaysBoth() {
        var facts = Self.facts(.active, ready: 0, leased: 1)
        facts.isGroupPaused = true
        facts.situation.work = [Self.work(.fetch)]
        #expect(reasons(facts) == [.paused, .fetching])
    }

    @Test func aRateThatTheGroupUsesUpIsAReason() {
        var facts = Self.facts()
        facts.bytesPerSecondAllowed = 10_240
        facts.groupBytesPerSecond = 10_000
        #expect(reasons(facts) == [.rateLimited])
        #expect(Explanation(facts: facts).document.summary.contains("10.0 KiB/s"))
        facts.groupBytesPerSecond = 100
        #expect(reasons(facts) == [.workersBusy])
    }

    @Test func everyReasonIsGivenInSomeCase() {
        // The other tests, and those of groups, cover each reason; this one fails when a new reason has no test.
        #expect(
            Set(ExplanationDocument.Reason.allCases) == [
                .paused, .prerequisites, .windowClosed, .backoff, .originPaused, .originFull, .groupFull, .rateLimited,
                .noWorker, .sinkParked, .workersBusy, .resolver, .fetching, .finalizing, .unsealed,
                .sameFile,
            ])
    }
}
