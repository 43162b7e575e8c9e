import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Some tasks of a group")
struct GroupPartTests {
    @Test func numbersOfSomeTasksAreShownWithoutThoseOfTheOthers() {
        var before = Samples.group(total: 40, succeeded: 12, unknown: 1)
        before.tasks.paused = 28
        before.bytes = .init(done: 1_000, total: 9_000, unknownTasks: 1)
        let half = Samples.part("half", done: 100, total: 500)
        let part = GroupPart(before: before, tasks: [half, Samples.part("unknown", done: 0, total: nil)])
        var now = before
        now.tasks.paused = 26
        #expect(part.numbers(of: now, beside: nil).bytes == .init(done: 100, total: 500, unknownTasks: 1))
        #expect(ProgressSnapshot(group: part.numbers(of: now, beside: nil)).filesText == "0/2 files")
        now.tasks.succeeded = 14
        now.bytes = .init(done: 1_700, total: 9_300, unknownTasks: 0)
        let snapshot = ProgressSnapshot(group: part.numbers(of: now, beside: nil))
        #expect(snapshot.filesText == "2/2 files" && snapshot.percent == 100 && snapshot.troubles.isEmpty)
        #expect(part.numbers(of: now, beside: nil).bytes == .init(done: 800, total: 800, unknownTasks: 0))
    }

    @Test func tasksOfTheNewGroupAreCountedWithThoseOfTheOldOne() {
        var before = Samples.group("get-old", total: 4, succeeded: 2)
        before.tasks.paused = 2
        before.bytes = .init(done: 100, total: 900, unknownTasks: 0)
        let part = GroupPart(before: before, tasks: [Samples.part("half", done: 100, total: 500)], beside: "get-new")
        var other = Samples.group("get-new", total: 3, succeeded: 1)
        other.bytes = .init(done: 10, total: 30, unknownTasks: 0)
        let snapshot = ProgressSnapshot(group: part.numbers(of: before, beside: other))
        #expect(snapshot.group.name == "get-new" && snapshot.filesText == "1/4 files")
        #expect(snapshot.bytesText == "110 B/530 B")
    }
}
