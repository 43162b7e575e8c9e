import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// How the pause of an origin can be ended early.
@Suite("Groups whose origin is paused")
struct PausedOriginTests {
    /// All of a group waits for one origin, which is paused for an hour.
    private static var facts: GroupFacts {
        var facts = GroupExplanationTests.facts()
        (facts.group.tasks.active, facts.situation.leases.connections) = (0, 0)
        facts.situation.origins = [GroupExplanationTests.origin(own: 0, ready: 6)]
        facts.situation.origins[0].origin.pausedUntil = GroupExplanationTests.later
        return facts
    }

    private func next(_ facts: GroupFacts) -> String? { GroupExplanation(facts: facts).document.next }

    @Test func aPauseThatAnOperatorSetEndsByTheCommandThatIsNamed() {
        #expect(
            next(Self.facts)
                == "it goes on at \(GroupExplanationTests.later); sooner with: muster origins set https://a.example:443 --pause-until none"
        )
    }

    /// A pause that the origin asked for itself, and one that is over within seconds.
    @Test func aPauseThatTheOriginAskedForNamesNoCommand() {
        var facts = Self.facts
        facts.situation.origins[0].origin.isTried = true
        #expect(next(facts) == "it goes on at \(GroupExplanationTests.later)")
        facts.situation.origins[0].origin.isTried = false
        facts.situation.origins[0].origin.pausedUntil = GroupExplanationTests.soon
        #expect(next(facts) == "it goes on at \(GroupExplanationTests.soon)")
    }

    @Test func theOriginThatAnOperatorPausedIsNamedAmongOthers() {
        var facts = Self.facts
        facts.situation.origins[0].origin.isTried = true
        facts.situation.origins.append(GroupExplanationTests.origin("b", own: 0, ready: 1))
        facts.situation.origins[1].origin.pausedUntil = GroupExplanationTests.later
        #expect(next(facts)?.hasSuffix("set https://b.example:443 --pause-until none") == true)
    }
}
