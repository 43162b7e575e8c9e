import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// The summary of a group without files.
@Suite("Groups without files")
struct EmptyGroupTests {
    private func summary(cancelled: Int64) -> String {
        var facts = GroupExplanationTests.facts(.succeeded)
        facts.group.tasks = .init(
            total: 0, queued: 0, active: 0, paused: 0, finalizing: 0, succeeded: 0, failed: 0, cancelled: cancelled)
        return GroupExplanation(facts: facts).document.summary
    }

    @Test func summaryOfAGroupWithoutFilesSaysThatItHasNone() {
        #expect(summary(cancelled: 0) == "It has succeeded: it has no files.")
        #expect(summary(cancelled: 2) == "It has succeeded: it has no files, since its tasks were cancelled.")
    }
}
