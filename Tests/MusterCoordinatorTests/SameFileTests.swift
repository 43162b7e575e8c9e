import MusterAPI
import Testing

@testable import MusterCoordinator
@testable import MusterStore

@Suite("Groups whose files others fetch")
struct SameFileTests {
    @Test func waitingForAnotherGroupsFileIsNoFailedTry() {
        var facts = GroupExplanationTests.facts()
        facts.group.tasks.active = 0
        facts.situation.origins = []
        facts.situation.putOff = .init(awaiting: 1, awaited: .init(group: "other", key: "theirs"))
        let one = GroupExplanation(facts: facts).document
        #expect(one.waits.map(\.reason) == [.sameFile])
        #expect(one.summary == "The same is being fetched for \"theirs\" of the group \"other\".")
        #expect(one.next?.contains("it is made of that file") == true)
        facts.situation.putOff.fetching = 1
        facts.situation.putOff.awaiting = 2
        let several = GroupExplanation(facts: facts).document
        #expect(several.waits.map(\.reason) == [.sameFile, .backoff])
        #expect(several.waits[1].detail.hasPrefix("a try of one chunk failed"))
        #expect(several.summary.contains("for other tasks, such as \"theirs\""))
    }
}
