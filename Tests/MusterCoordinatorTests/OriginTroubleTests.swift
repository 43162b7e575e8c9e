import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// Explanations while an origin is down, or doesn't answer.
@Suite("Origins that deliver nothing")
struct OriginTroubleTests {
    private typealias Facts = GroupExplanationTests

    private func document(_ facts: GroupFacts) -> GroupExplanationDocument { GroupExplanation(facts: facts).document }

    @Test func aGroupThatIsTriedAgainNamesTheOriginAndWhatItFailedWith() {
        var facts = Facts.facts()
        facts.group.tasks.active = 0
        facts.situation.origins = []
        facts.situation.putOff = .init(fetching: 3, dueAt: Facts.soon)
        facts.situation.retried = .init(
            failure: .init(key: "k", kind: .network, status: nil, detail: nil), origin: "https://a.example:443")
        #expect(
            document(facts).summary
                == "A try of 3 chunks failed (one of them with: connection failed from https://a.example:443), and the next one is not due yet."
        )
    }

    @Test func onlyADeadlineSaysWhenAGroupEndsAtTheLatest() {
        var facts = Facts.facts()
        facts.group.deadlineAt = Facts.later
        #expect(document(facts).eta.latest == Facts.later && document(facts).eta.seconds == 60)
        facts.group.tasks.active = 0
        #expect(document(facts).eta.latest == Facts.later && document(facts).eta.seconds == nil)
        facts.group.onDeadline = .continue
        #expect(document(facts).eta.latest == nil)
    }

    @Test func aGroupOfWhichNothingComesSaysFromWhere() {
        var facts = Facts.facts()
        facts.situation.stragglers = [
            .init(
                key: "k", kind: .fetch, origin: "https://a.example:443", worker: "w", bytesLeft: nil,
                bytesPerSecond: 0, grantedAt: Facts.now)
        ]
        #expect(document(facts).summary.hasSuffix("1000 B/s lately."), "it has just been asked for")
        facts.situation.at = Facts.soon
        #expect(
            document(facts).summary.hasSuffix(
                "1000 B/s lately; nothing has come for 10s of k from https://a.example:443."))
        facts.situation.stragglers[0].bytesPerSecond = 1
        #expect(document(facts).summary.hasSuffix("1000 B/s lately."))
    }
}
