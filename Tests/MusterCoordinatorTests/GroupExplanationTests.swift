import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// What a group waits for, what its end depends on, and when that is, from facts alone.
@Suite("Why a group is not done")
struct GroupExplanationTests {
    static let now = Timestamp(microseconds: 1_772_366_400_000_000)
    static let soon = Timestamp(microseconds: 1_772_366_410_000_000)
    static let later = Timestamp(microseconds: 1_772_370_000_000_000)

    static func origin(
        _ name: String = "a", own: Int64 = 2, ready: Int64 = 0, speed: Int64 = 1_000
    ) -> GroupSituation.Origin {
        GroupSituation.Origin(
            origin: .sample(name, connections: own, bytesPerSecond: speed), connections: own, bytesPerSecond: speed,
            bytesLeft: own * 1_000, readyChunks: ready)
    }

    /// A sealed group of ten tasks: two are being fetched, six wait, two are there; 60,000 of 80,000 bytes are left, and 1,000 come a second.
    static func facts(_ state: GroupState = .sealed) -> GroupFacts {
        var group = GroupDocument(name: "g", state: state, sink: "default", createdAt: now)
        group.tasks = .init(total: 10, queued: 6, active: 2, succeeded: 2)
        group.bytes = .init(done: 20_000, total: 80_000, unknownTasks: 0)
        group.bytesPerSecond = 1_000
        var situation = GroupSituation(at: now)
        situation.leases.connections = 2
        situation.origins = [origin(ready: 6)]
        return GroupFacts(group: group, situation: situation, workers: .init(reaching: 1, freeSlots: 0))
    }

    private func document(_ facts: GroupFacts) -> GroupExplanationDocument { GroupExplanation(facts: facts).document }

    private func reasons(_ facts: GroupFacts) -> [ExplanationDocument.Reason] { document(facts).waits.map(\.reason) }

    @Test func aGroupThatIsFetchedSaysHowMuchOfItAndWhatComes() {
        let document = document(Self.facts())
        #expect(document.waits.map(\.reason) == [.fetching] && document.waits[0].tasks == 2)
        #expect(document.summary == "2 tasks are being fetched over 2 connections, 1000 B/s lately.")
        #expect(document.next == "6 more tasks are begun as there is room")
    }

    @Test func theGroupThatIsShownHasTheEstimateOfItsExplanation() {
        let document = document(Self.facts())
        #expect(document.eta.seconds == 60 && document.group.etaSeconds == 60)
        #expect(self.document(Self.facts(.open)).group.etaSeconds == nil)
    }

    @Test func filesWithoutRoomAreNamedWithWhatTheyLack() {
        var facts = Self.facts()
        (facts.situation.roomless.tasks, facts.situation.putOff.fetching) = (4, 4)
        facts.situation.roomless.first = [
            .init(key: "a", kind: .noSpace, status: nil, detail: "the file needs 3 MiB more, 1 MiB are free"),
            .init(key: "b", kind: .noSpace, status: nil, detail: "the file needs 9 MiB more, 1 MiB are free"),
        ]
        let wait = document(facts).waits.first { $0.detail.contains("room") }
        #expect(wait?.reason == .backoff && wait?.tasks == 4)
        #expect(
            wait?.detail
                == "4 files find no room in the sink \"default\": a (the file needs 3 MiB more, 1 MiB are free), "
                + "b (the file needs 9 MiB more, 1 MiB are free) and 2 more; make room there: each is tried again by itself"
        )
        facts.situation.roomless.tasks = 1
        facts.situation.roomless.first.removeLast()
        #expect(
            document(facts).waits.contains {
                $0.detail.hasPrefix("one file finds no room")
                    && $0.detail.hasSuffix("make room there: it is tried again by itself")
            })
    }

    @Test func aPausedGroupWaitsForNothingElseButWhatIsUnderWay() {
        var facts = Self.facts()
        facts.isPaused = true
        facts.workers.reaching = 0
        facts.group.tasks.active = 0
        facts.group.tasks.finalizing = 2
        facts.situation.leases.finalizing = 1
        #expect(reasons(facts) == [.paused, .finalizing])
        #expect(document(facts).summary == "The group is paused; go on with: muster resume g.")
        #expect(document(facts).next == nil)
    }

    @Test func aGroupThatWaitsForOthersNamesThem() {
        var facts = Self.facts()
        facts.group.tasks.active = 0
        facts.prerequisites = [
            .init(group: "a", on: .succeeded, state: .sealed), .init(group: "b", on: .finished, state: .open),
        ]
        let document = document(facts)
        #expect(document.waits.map(\.reason) == [.prerequisites])
        #expect(document.summary == #"It waits for the groups "a", "b"."#)
        #expect(document.next == "it begins when these have succeeded")
        #expect(
            document.criticalPath.prefix(2) == [
                #"the group "a" has to succeed; it is sealed"#, #"the group "b" has to end; it is open"#,
            ])
    }

    @Test func noOriginIsToBlameWhileAllOfTheGroupWaits() {
        var facts = Self.facts()
        facts.situation.origins = [Self.origin(own: 0, ready: 6)]
        #expect(document(facts).slowestOrigin?.key == "https://a.example:443")
        facts.prerequisites = [.init(group: "a", on: .succeeded, state: .sealed)]
        #expect(document(facts).slowestOrigin == nil)
        #expect(document(facts).criticalPath[1] == "58.6 KiB to be fetched")
        facts.situation.origins[0].connections = 1
        #expect(document(facts).slowestOrigin != nil, "what is under way is waited for")
    }

    @Test func restToBeFetchedIsToldAsFarAsItIsKnown() {
        var facts = Self.facts()
        facts.situation.origins = []
        facts.group.bytes.unknownTasks = 2
        #expect(document(facts).criticalPath[0] == "58.6 KiB and 2 tasks of unknown size to be fetched")
        facts.group.bytes.total = facts.group.bytes.done
        facts.group.bytes.unknownTasks = 1
        #expect(document(facts).criticalPath[0] == "1 task of unknown size to be fetched")
    }

    @Test func aGroupThatFailedNamesWhatFailedAndWhy() {
        var facts = Self.facts(.failed)
        facts.group.tasks.failed = 5
        facts.situation.failures = [
            .init(key: "a", kind: .notFound, status: 404, detail: nil),
            .init(key: "b", kind: .storage, status: nil, detail: String(repeating: "x", count: 500)),
        ]
        let summary = document(facts).summary
        #expect(summary.hasPrefix("It failed: 5 of 10 tasks failed: a (404 Not Found), b (file not stored: xxx"))
        #expect(
            summary.contains("xxx…) and 3 more; put them back with what they have: muster retry g")
                && summary.count < 320)
    }

    @Test func aGroupThatWaitsForOneThatFailedSaysThatItNeverBeginsSo() {
        var facts = Self.facts()
        facts.group.tasks.active = 0
        facts.prerequisites = [.init(group: "a", on: .succeeded, state: .failed)]
        let document = document(facts)
        #expect(document.summary.contains(#""a" has failed already, so that only a change helps"#))
        #expect(document.next == nil)
        #expect(
            document.criticalPath[0].contains("muster retry a") && document.criticalPath[0].contains("--after none"))
        #expect(document.eta.seconds == nil && document.eta.because.contains("has failed"))
        facts.prerequisites = [.init(group: "a", on: .succeeded, state: .cancelled)]
        let cancelled = self.document(facts).criticalPath[0]
        #expect(
            cancelled.hasSuffix(
                "it has been cancelled: muster add a --reopen … with new tasks, or let this one go without it: muster limit g --after none"
            ))
    }

    @Test func theEndOfAChainIsNamedWhereItFailed() {
        var facts = Self.facts()
        facts.group.tasks.active = 0
        facts.prerequisites = [.init(group: "b", on: .succeeded, state: .sealed)]
        facts.situation.lost = [.init(group: "a", on: .succeeded, state: .failed)]
        let document = document(facts)
        #expect(document.summary.contains(#"at the end of that chain "a" has failed: muster retry a"#))
        #expect(
            document.criticalPath.prefix(2) == [
                #"the group "a" has to succeed, but it has failed: muster retry a"#,
                #"the group "b" has to succeed; it is sealed"#,
            ])
    }

    @Test func aClosedWindowSaysWhenItOpens() {
        var facts = Self.facts()
        facts.group.limits.between = TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin")
        (facts.group.tasks.active, facts.group.tasks.queued) = (0, 8)
        facts.window = .closed(until: Self.later)
        let document = document(facts)
        #expect(document.waits.map(\.reason) == [.windowClosed] && document.waits[0].until == Self.later)
        #expect(document.summary == "It may run only from 22:00 to 06:00 (Europe/Berlin), which is not now.")
        #expect(document.next == "it goes on at \(Self.later)")
        #expect(document.eta.seconds == nil && document.eta.earliest == Self.later)
        #expect(document.criticalPath.contains("its window has to open at \(Self.later)"))
        (facts.group.tasks.queued, facts.group.tasks.succeeded) = (0, 10)
        #expect(!self.document(facts).criticalPath.contains { $0.hasPrefix("its window") }, "only sealing is left")
    }

    @Test func obstaclesOfTheWholeGroupComeBeforeWhatIsBeingDone() {
        var facts = Self.facts()
        facts.workers.reaching = 0
        #expect(reasons(facts) == [.noWorker, .fetching])
        #expect(document(facts).summary.contains("muster work --sink default=DIR"))
        facts.workers = .init(reaching: 2, isSinkParked: true, parkedDetail: "no space left", freeSlots: 0)
        #expect(reasons(facts) == [.sinkParked, .fetching])
        #expect(document(facts).summary.contains("no space left"))
        facts.workers.isSinkParked = false
        #expect(reasons(facts) == [.fetching])
    }

    @Test func everythingThatChunksWaitForIsCountedOnce() {
        var facts = Self.facts()
        facts.group.tasks.queued = 200
        facts.group.limits.maxConnections = 2
        facts.situation.putOff = .init(fetching: 3, dueAt: Self.soon)
        facts.situation.origins = [
            Self.origin("a", ready: 4), Self.origin("b", own: 0, ready: 5), Self.origin("c", own: 8, ready: 100),
        ]
        facts.situation.origins[1].origin.pausedUntil = Self.later
        facts.situation.origins[2].readyChunks += 1
        let waits = document(facts).waits
        #expect(waits.map(\.reason) == [.fetching, .backoff, .originPaused, .groupFull, .originFull])
        #expect(waits.map(\.tasks) == [2, 3, 5, 109, 100] && waits.map(\.more) == [false, false, false, true, true])
        #expect(waits[1].until == Self.soon && waits[2].until == Self.later)
        #expect(waits[2].detail == "the origin https://b.example:443 is paused")
        facts.group.limits.maxConnections = nil
        #expect(reasons(facts).suffix(2) == [.originFull, .workersBusy], "a has room")
    }

    @Test func anOriginThatRefusedOthersSaysWhatKeepsItsConnectionsFew() {
        var facts = Self.facts()
        facts.situation.origins[0].readyChunks = 5
        facts.situation.origins[0].origin.connections = 2
        facts.situation.origins[0].origin.allowedConnections = 2
        facts.situation.origins[0].origin.limit = .init(status: 404, seconds: 6)
        let detail = document(facts).waits.first { $0.reason == .originFull }?.detail
        #expect(
            detail?.hasSuffix("may have now: it refused others with 404 6 s ago; one more is tried every 10 s") == true)
    }

    @Test func aWaitIsNeverAboutMoreTasksThanThereAre() {
        var facts = Self.facts()
        facts.group.limits.maxConnections = 2
        facts.situation.origins[0].readyChunks = GroupSituation.most + 1
        let full = document(facts).waits.first { $0.reason == .groupFull }
        #expect(full?.tasks == 8 && full?.more == false)
        #expect(full?.detail == "the group has all of the 2 connections that it may have")
        facts.group.limits.maxConnections = 1
        #expect(
            document(facts).waits.first { $0.reason == .groupFull }?.detail
                == "the group has 2 connections, more than the 1 that it may have now")
    }

    @Test func onlyARateThatIsUsedUpIsAReason() {
        var facts = Self.facts()
        facts.bytesPerSecondAllowed = 1_050
        #expect(reasons(facts) == [.fetching, .rateLimited])
        facts.bytesPerSecondAllowed = 2_000
        #expect(reasons(facts) == [.fetching])
        facts.situation.origins[0].origin.bytesPerSecondLimit = 2_048
        facts.situation.origins[0].origin.bytesPerSecond = 2_000
        #expect(
            document(facts).waits.last?.detail
                == "all of the 2.0 KiB/s that may come from https://a.example:443 are used")
        facts.situation.origins[0].origin.bytesPerSecond = 500
        #expect(reasons(facts) == [.fetching])
        facts.situation.fleet = .init(bytesPerSecondLimit: 10_000, bytesPerSecond: 9_500)
        #expect(document(facts).waits.last?.detail == "the whole fleet uses all of the 9.8 KiB/s that it may have")
        facts.situation.fleet?.bytesPerSecond = 5_000
        #expect(reasons(facts) == [.fetching])
    }

    /// At ten bytes a second nothing is read for minutes, and then a large block: the measured speed can't show that the rate is the limit.
    @Test func aTinyRateIsTheReasonWhateverTheSpeedSeemsToBe() {
        for speed in [0, 1_600] as [Int64] {
            var facts = Self.facts()
            facts.group.bytesPerSecond = speed
            facts.bytesPerSecondAllowed = 10
            facts.situation.origins[0].origin.connections = 8
            #expect(reasons(facts) == [.fetching, .rateLimited], "more connections would bring nothing more")
            let eta = document(facts).eta
            #expect(eta.seconds == 6_000 && eta.because == "58.6 KiB are left, and 10 B/s may come")
            facts.bytesPerSecondAllowed = nil
            facts.situation.fleet = .init(bytesPerSecondLimit: 10, bytesPerSecond: speed)
            #expect(document(facts).eta.seconds == 6_000)
        }
    }

    @Test func everyRateThatIsUsedUpIsNamed() {
        var facts = Self.facts()
        facts.bytesPerSecondAllowed = 1_000
        facts.situation.origins = [Self.origin("a", ready: 6), Self.origin("b")]
        for index in 0...1 { facts.situation.origins[index].origin.bytesPerSecondLimit = 1_000 }
        facts.situation.fleet = .init(bytesPerSecondLimit: 1_000, bytesPerSecond: 1_000)
        #expect(
            document(facts).waits.filter { $0.reason == .rateLimited }.map(\.detail) == [
                "the group uses all of the 1000 B/s that it may have",
                "all that may come from 2 of its origins is used",
                "the whole fleet uses all of the 1000 B/s that it may have",
            ])
    }

    @Test func readyChunksThatNoWorkerTakesWaitForWorkers() {
        var facts = Self.facts()
        facts.group.tasks.active = 0
        facts.group.tasks.queued = 8
        facts.situation.origins[0].connections = 0
        #expect(reasons(facts) == [.workersBusy] && document(facts).summary.contains("is busy"))
        facts.workers.freeSlots = 3
        #expect(document(facts).summary == "6 chunks can be fetched as soon as it is the group's turn.")
    }

    @Test func pausedTasksAndAMissingSealHoldTheGroupOpen() {
        var facts = Self.facts(.open)
        facts.group.tasks = .init(
            total: 3, queued: 0, active: 0, paused: 3, finalizing: 0, succeeded: 0, failed: 0, cancelled: 0)
        facts.situation.origins = []
        let document = document(facts)
        #expect(document.waits.map(\.reason) == [.paused, .unsealed])
        #expect(document.summary.hasPrefix("3 tasks are paused and hold the group open"))
        #expect(document.criticalPath.last == "it has to be sealed: muster seal g")
    }

    @Test func filesThatWaitToBePutInPlaceAreToldApartFromThoseThatAWorkerHas() {
        var facts = Self.facts()
        facts.group.tasks = .init(
            total: 2, queued: 0, active: 0, paused: 0, finalizing: 2, succeeded: 0, failed: 0, cancelled: 0)
        facts.situation.origins = []
        #expect(document(facts).summary == "2 tasks are fetched and wait to be verified and put in place.")
        facts.situation.leases.finalizing = 2
        #expect(document(facts).summary == "2 tasks are being verified and put in place.")
        #expect(document(facts).criticalPath == ["2 tasks have to be verified and put in place"])
    }

    @Test func questionsToTheResolverAreAReason() {
        var facts = Self.facts()
        facts.situation.leases.asking = 1
        #expect(reasons(facts) == [.fetching, .resolver])
    }

    @Test func theDeadlineIsPartOfWhatHappensNext() {
        var facts = Self.facts()
        facts.group.deadlineAt = Self.later
        #expect(document(facts).next?.hasSuffix("; what is not done by \(Self.later) fails") == true)
        facts.group.onDeadline = .continue
        #expect(
            document(facts).next?.hasSuffix("; it is overdue after \(Self.later), and goes on all the same") == true)
        facts.group.overdue = true
        #expect(document(facts).next?.hasSuffix("; it is overdue since \(Self.later)") == true)
    }

    @Test func aGroupThatHasEndedWaitsForNothingAndSaysHow() {
        for (state, summary) in [
            (GroupState.succeeded, #"all of its 2 files stand in the sink "default""#),
            (.failed, "0 of 10 tasks failed; put them back with what they have: muster retry g"),
            (.cancelled, "cancelled"),
        ] {
            let document = document(Self.facts(state))
            #expect(document.summary.contains(summary))
            #expect(document.waits.isEmpty && document.next == nil && document.criticalPath.isEmpty)
            #expect(document.slowestOrigin == nil && document.eta.seconds == nil)
        }
    }
}
