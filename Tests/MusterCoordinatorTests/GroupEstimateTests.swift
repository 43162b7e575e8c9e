import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// When a group will be done; without a basis there is no estimate.
@Suite("When a group will be done")
struct GroupEstimateTests {
    private typealias Facts = GroupExplanationTests

    private func estimate(_ facts: GroupFacts) -> GroupExplanationDocument.Estimate {
        GroupEstimate(facts: facts).document
    }

    private func moment(_ seconds: Int64) -> Timestamp {
        Timestamp(microseconds: Facts.now.microseconds + seconds * 1_000_000)
    }

    @Test func theRestAtTheSpeedOfNowIsTheEstimateOfAGroupWithOneOrigin() {
        let estimate = estimate(Facts.facts())
        #expect(estimate.seconds == 60 && estimate.latest == nil && estimate.earliest == nil)
        #expect(estimate.because == "58.6 KiB are left, and 1000 B/s come")
    }

    @Test func aPartOfASecondIsASecond() {
        var facts = Facts.facts()
        facts.group.bytes.done += 999
        #expect(estimate(facts).seconds == 60)
        facts.group.bytes.done += 1
        #expect(estimate(facts).seconds == 59)
    }

    @Test func withSeveralOriginsThereIsNoBoundAbove() {
        var facts = Facts.facts()
        facts.situation.origins.append(Facts.origin("b"))
        let estimate = estimate(facts)
        #expect(estimate.seconds == 60)
        #expect(estimate.because.hasSuffix("an origin that ends later than the others is not foreseen"))
    }

    @Test func theOriginThatEndsLastDecidesWhereAllOfThemAreKnown() {
        var facts = Facts.facts()
        facts.situation.origins = [Facts.origin("a", speed: 900), Facts.origin("b", speed: 100)]
        (facts.situation.origins[0].bytesLeftInAll, facts.situation.origins[1].bytesLeftInAll) = (18_000, 42_000)
        let estimate = estimate(facts)
        #expect(estimate.seconds == 420)
        #expect(GroupEstimate(facts: facts).slowest?.origin.key == "https://b.example:443")
        #expect(!estimate.because.contains("not foreseen"))
        // Deferred chunks are also left to fetch, and their origin is unknown.
        facts.situation.putOff = .init(fetching: 1)
        #expect(GroupEstimate(facts: facts).slowest?.bytesLeftInAll == nil)
    }

    @Test func theSlowestChunkOfNowIsWaitedFor() {
        var facts = Facts.facts()
        facts.situation.stragglers = [
            .init(
                key: "k", kind: .fetch, origin: "https://a.example:443", worker: "w", bytesLeft: 5_000,
                bytesPerSecond: 10, grantedAt: Facts.now)
        ]
        #expect(estimate(facts).seconds == 500)
        facts.situation.stragglers[0].bytesPerSecond = 0
        #expect(estimate(facts).seconds == 60, "a stalled chunk says nothing about the end")
        let path = GroupExplanation(facts: facts).document.criticalPath
        #expect(
            path.contains(
                "the slowest chunk of now has to end: k from https://a.example:443 by the worker w, 4.9 KiB left at 0 B/s"
            ))
    }

    @Test func underARateOnlyTheWholeRestCounts() {
        var facts = Facts.facts()
        facts.group.bytesPerSecond = 10_000
        facts.situation.stragglers = [
            .init(
                key: "k", kind: .fetch, origin: "https://a.example:443", worker: "w", bytesLeft: 5_000,
                bytesPerSecond: 10, grantedAt: Facts.now)
        ]
        facts.bytesPerSecondAllowed = 12_000
        #expect(estimate(facts).seconds == 6, "the slow chunk gets what the others no longer use")
        facts.bytesPerSecondAllowed = 50_000
        #expect(estimate(facts).seconds == 500, "the rate is not what limits it")
        facts.situation.fleet = .init(bytesPerSecondLimit: 100_000, bytesPerSecond: 95_000)
        #expect(estimate(facts).seconds == 6)
    }

    @Test func leasesOfASingleOriginThatHaveJustBegunSlowNothingDown() {
        var facts = Facts.facts()
        facts.situation.origins = [Facts.origin(ready: 6, speed: 300)]
        #expect(estimate(facts).seconds == 60)
    }

    @Test func deferredChunksAreNotDoneBeforeTheyAreDue() {
        var facts = Facts.facts()
        facts.situation.putOff = .init(fetching: 1, dueAt: Facts.later)
        let putOff = estimate(facts)
        #expect(putOff.seconds == 3_600 && putOff.earliest == Facts.later)
        // A due time in the past bounds nothing, and how long a pause lasts is unknown.
        facts.situation.putOff.dueAt = moment(-1)
        #expect(estimate(facts).earliest == nil)
        facts.situation.putOff.dueAt = Facts.later
        facts.isPaused = true
        #expect(estimate(facts).earliest == nil)
        facts.isPaused = false
        facts.situation.putOff = .init()
        facts.situation.origins.append(Facts.origin("b", own: 0, ready: 1))
        facts.situation.origins[1].origin.pausedUntil = Facts.later
        #expect(estimate(facts).seconds == 3_600)
    }

    @Test func aRateThatIsAllowedIsABoundBelowUnlessATimetableRaisesIt() {
        var facts = Facts.facts()
        facts.bytesPerSecondAllowed = 500
        #expect(estimate(facts).earliest == moment(120))
        facts.group.limits.timetable = [.init(from: "00:00", to: "06:00", bytesPerSecond: 500)]
        #expect(estimate(facts).earliest == nil)
    }

    @Test func aWindowThatClosesBeforeTheEndLeavesItOpen() {
        var facts = Facts.facts()
        facts.window = .open(until: Facts.soon)
        let estimate = estimate(facts)
        #expect(estimate.seconds == nil)
        #expect(estimate.because.hasSuffix("its window closes before that, at \(Facts.soon)"))
        facts.window = .open(until: Facts.later)
        #expect(GroupEstimate(facts: facts).document.seconds == 60)
    }

    /// A case without an estimate, and the reason that is given for it.
    struct Unknown: Sendable, CustomStringConvertible {
        let because: String
        let change: @Sendable (inout GroupFacts) -> Void

        init(_ because: String, _ change: @escaping @Sendable (inout GroupFacts) -> Void) {
            self.because = because
            self.change = change
        }

        var description: String { because }
    }

    private static let unknowns = [
        Unknown("it is paused") { $0.isPaused = true },
        Unknown(#"it waits for the group "a", and begins only after that"#) {
            $0.prerequisites = [.init(group: "a", on: .succeeded, state: .sealed)]
        },
        Unknown("it is open: more tasks may come") { $0.group.state = .open },
        Unknown("one task is paused") { $0.group.tasks.paused = 1 },
        Unknown(#"no worker reaches the sink "default""#) { $0.workers.reaching = 0 },
        Unknown("in trouble at every worker") { $0.workers.isSinkParked = true },
        Unknown("its window is closed") { $0.window = .closed(until: nil) },
        Unknown("the sizes of 3 tasks are unknown") { $0.group.bytes.unknownTasks = 3 },
        Unknown("how long the verification takes isn't known") {
            $0.group.tasks.active = 0
            $0.group.tasks.queued = 0
            $0.group.tasks.finalizing = 1
        },
        Unknown("nothing of it is being fetched now") { $0.group.tasks.active = 0 },
        Unknown("nothing comes now") { $0.group.bytesPerSecond = 0 },
        Unknown("more than a year") {
            $0.group.bytesPerSecond = 1
            $0.group.bytes.total = 1 << 40
        },
        Unknown("it has succeeded") { $0.group.state = .succeeded },
        Unknown("it has been cancelled") { $0.group.state = .cancelled },
    ]

    @Test(arguments: unknowns)
    func thereIsNoEstimateWithoutAGroundForIt(_ unknown: Unknown) {
        var facts = Facts.facts()
        unknown.change(&facts)
        let estimate = estimate(facts)
        #expect(estimate.seconds == nil && estimate.latest == nil)
        #expect(estimate.because.contains(unknown.because), "\(estimate.because)")
    }

    @Test func theSlowestOriginIsTheOneWithTheMostToDoForItsSpeed() {
        var facts = Facts.facts()
        facts.situation.origins = [
            Facts.origin("a", speed: 1_000), Facts.origin("b", speed: 10), Facts.origin("c", speed: 100),
        ]
        #expect(GroupEstimate(facts: facts).slowest?.origin.key == "https://b.example:443")
        facts.situation.origins[2].readyChunks = GroupSituation.most + 1
        #expect(GroupEstimate(facts: facts).slowest?.origin.key == "https://c.example:443")
        facts.situation.origins.append(Facts.origin("d", own: 0, ready: 1, speed: 0))
        #expect(GroupEstimate(facts: facts).slowest?.origin.key == "https://d.example:443", "nothing comes from there")
        facts.situation.origins = [Facts.origin("e", own: 0)]
        #expect(GroupEstimate(facts: facts).slowest == nil, "there is nothing to do there")
    }

    @Test func theSlowestOriginIsShownWithItsNumbers() {
        let document = GroupExplanation(facts: Facts.facts()).document
        #expect(
            document.slowestOrigin
                == .init(key: "https://a.example:443", leases: 2, allowed: 8, bytesPerSecond: 1_000, bytesLeft: 60_000))
        #expect(
            document.criticalPath.first
                == "58.6 KiB to be fetched; slowest from https://a.example:443 over 2 of 8 connections at 1000 B/s, "
                + "about 1m 0s")
        #expect(document.criticalPath.last == "the last of its files has to be verified and put in place")
    }

    @Test func anOriginThatNothingComesFromHasNoSpeed() {
        func step(_ origin: GroupSituation.Origin) -> String? {
            var facts = Facts.facts()
            facts.situation.origins = [origin]
            facts.group.bytesPerSecond = 0
            return GroupExplanation(facts: facts).document.criticalPath.first
        }
        let key = "https://a.example:443"
        #expect(
            step(Facts.origin(own: 0, ready: 3, speed: 0))
                == "58.6 KiB to be fetched; nothing is asked for from \(key) now")
        #expect(step(Facts.origin(own: 2, speed: 0)) == "58.6 KiB to be fetched; nothing comes from \(key) now")
        var paused = Facts.origin(own: 0, ready: 3, speed: 0)
        paused.origin.pausedUntil = Facts.facts().situation.at
        #expect(step(paused)?.hasSuffix("now, which is paused until \(Facts.facts().situation.at)") == true)
    }
}
