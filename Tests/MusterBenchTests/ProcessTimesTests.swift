import Glibc
import MusterTestSupport
import SystemPackage
import Testing

@testable import muster_bench

@Suite struct ProcessTimesTests {
    @Test func timesAreReadPastANameWithBlanksAndParentheses() throws {
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 30 20 20 0 1 0 100 0 0"
        let times = try #require(ProcessTimes(stat: line[...], ticksPerSecond: 100))
        #expect(times.own == 3)
        #expect(times.children == 0.5)
        #expect(ProcessTimes(stat: "42 (a) S 1", ticksPerSecond: 100) == nil)
        #expect(ProcessTimes(stat: "nothing", ticksPerSecond: 100) == nil)
    }

    @Test func meterSumsAProcessAndItsDescendants() throws {
        let meter = ProcessMeter(roots: [("tests", getpid()), ("nobody", .max)])
        #expect(try #require(meter.cpuSeconds()["tests"]) > 0)
        #expect(meter.cpuSeconds()["nobody"] == nil)
        #expect(try #require(meter.peakMebibytes()["tests"]) > 1)
        #expect(ProcessMeter.difference(["a": 3, "b": 1], ["a": 1]) == ["a": 2, "b": 1])
    }

    @Test func commandIsTimedWithWhatItsChildrenUsed() async throws {
        let loop = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
        let outcome = try await TimedCommand(program: "/bin/sh", arguments: ["-c", "sh -c '\(loop)'; echo done"]).run()
        #expect(outcome.output == "done\n")
        #expect(outcome.cpuSeconds > 0, "the child of the child worked")
        await #expect(throws: BenchFailure.self) {
            try await TimedCommand(program: "/bin/sh", arguments: ["-c", "echo why >&2; exit 3"]).run()
        }
    }
}
