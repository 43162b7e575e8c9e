import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Some tasks of a group")
struct GroupPartTests {
    @Test func theirNumbersAreShownWithoutThoseOfTheOthers() {
        var before = Samples.group(total: 40, succeeded: 12, unknown: 1)
        before.tasks.paused = 28
        before.bytes = .init(done: 1_000, total: 9_000, unknownTasks: 1)
        let half = Samples.part("half", done: 100, total: 500)
        let part = GroupPart(before: before, tasks: [half, Samples.part("unknown", done: 0, total: nil)])
        var now = before
        now.tasks.paused = 26
        #expect(part.numbers(of: now).bytes == .init(done: 100, total: 500, unknownTasks: 1))
        #expect(ProgressSnapshot(group: part.numbers(of: now)).filesText == "0/2 files")
        now.tasks.succeeded = 14
        now.bytes = .init(done: 1_700, total: 9_300, unknownTasks: 0)
        let snapshot = ProgressSnapshot(group: part.numbers(of: now))
        #expect(snapshot.filesText == "2/2 files" && snapshot.percent == 100 && snapshot.troubles.isEmpty)
        #expect(part.numbers(of: now).bytes == .init(done: 800, total: 800, unknownTasks: 0))
    }
}
