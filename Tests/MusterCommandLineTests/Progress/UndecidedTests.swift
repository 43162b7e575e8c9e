import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

/// Messages about work that has not ended.
@Suite struct UndecidedTests {
    /// Stopped workers bring nothing any more, but their average speed is known.
    @Test func aStoppedGroupSaysHowFastItCame() {
        var group = Samples.group()
        let start = Gain.Start(group, at: .now)
        group.bytes.done += 40 << 20
        group.bytesPerSecond = 0
        let gain = Gain(group, since: start, now: start.moment + .seconds(4))
        let line = PlainProgress.stopped(ProgressSnapshot(group: group), gain)
        #expect(
            line.contains(", 10.0 MiB/s on average") && !line.contains("ETA") && !line.contains(" 0 B/s"), "\(line)")
        let nothing = Gain(group, since: Gain.Start(group, at: start.moment), now: start.moment + .seconds(4))
        #expect(!PlainProgress.stopped(ProgressSnapshot(group: group), nothing).contains("/s"))
    }

    /// After a try that brought something, only the next try decides whether it is the file.
    @Test func aFileIsNotCalledAnotherOneBeforeThatIsDecided() throws {
        var task = Samples.troubled("a.txt", kind: .httpStatus(200))
        task.failure?.status = 200
        #expect(try #require(TroubleText(task)).reason == "not known whether it is the file (status 200)")
        let end = try #require(task.failure)
        #expect(FailureText.text(end, isDecided: true).hasPrefix("not the file (status 200)"))

        func row(_ task: TaskDocument) -> String {
            TasksCommand.table([task], mayMove: false).lines(width: nil).joined(separator: "\n")
        }
        #expect(row(task).contains("not known whether it is the file") && !row(task).contains("not the file"))
        task.state = .failed
        #expect(row(task).contains("not the file (status 200)"))

        var group = Samples.group()
        group.trouble = [.init(kind: .httpStatus(200), tasks: 1)]
        #expect(GroupFactLines.all(group).contains { $0 == ("retrying", "not known whether it is the file (1)") })
    }
}
