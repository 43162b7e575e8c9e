import MusterAPI
import Testing

@testable import MusterCoordinator

@Suite("Groups whose files others fetch")
struct SameFileTests {
    @Test func waitingForAnotherGroupsFileIsNoFailedTry() {
        var facts = GroupExplanationTests.facts()
        facts.group.tasks.active = 0
        facts.origins = []
        facts.putOff = .init(
            chunks: .init(number: 1, more: false), awaiting: 1, awaited: (group: "other", key: "theirs"), firstDue: nil)
        let one = GroupExplanation(facts: facts).document
        #expect(one.waits.map(\.reason) == [.sameFile])
        #expect(one.summary == "The same is being fetched for \"theirs\" of the group \"other\".")
        #expect(one.next?.contains("it is made of that file") == true)
        facts.putOff.chunks.number = 3
        facts.putOff.awaiting = 2
        let several = GroupExplanation(facts: facts).document
        #expect(several.waits.map(\.reason) == [.sameFile, .backoff])
        #expect(several.waits[1].detail.hasPrefix("a try of one chunk failed"))
        #expect(several.summary.contains("for other tasks, such as \"theirs\""))
    }
}
