import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Progress")
struct ProgressTests {
    private let plain = ProgressView(style: ProgressView.Style(colour: false, unicode: false))

    private func snapshot() -> ProgressSnapshot {
        ProgressSnapshot(
            group: Samples.group(failed: 2, notes: ["no live worker reaches the sink \u{1B}nas"]),
            files: [
                ProgressSnapshot.File(name: "a/b.tar", done: 120 << 20, total: 230 << 20, bytesPerSecond: 12 << 20),
                ProgressSnapshot.File(name: "unknown\u{7}.bin", done: 12 << 20, total: nil, bytesPerSecond: nil),
                ProgressSnapshot.File(name: "done.iso", done: 1 << 30, total: 1 << 30, isFinalizing: true),
            ]
        )
    }

    @Test func theLinesForAWideTerminal() {
        #expect(
            plain.lines(snapshot(), width: 120) == [
                "nightly  [###########-------------]   46%  12/40 files  1.1 GiB/2.5 GiB  35.0 MiB/s  ETA 42s  2 failed",
                "  a/b.tar                                         [############------------]   52%"
                    + "    120.0 MiB/230.0 MiB  12.0 MiB/s",
                "  unknown\\u{7}.bin                                [........................]      "
                    + "               12.0 MiB  ",
                "  done.iso                                        [#######################-]   99%"
                    + "        1.0 GiB/1.0 GiB  verifying",
                "  note: no live worker reaches the sink \\u{1b}nas",
            ]
        )
    }

    @Test func theLinesForANarrowTerminal() {
        #expect(
            plain.lines(snapshot(), width: 60).prefix(2) == [
                "nightly  [##----]   46%  12/40 files  1.1 GiB/2.5 GiB  35.0 MiB/s  ETA 42s  2 failed",
                "  a/b.tar     [###---]   52%    120.0 MiB/230.0 MiB  12.0 MiB/s",
            ]
        )
    }

    @Test func fileLinesFitAnOrdinaryTerminal() {
        for width in [80, 100, 120, 200] {
            for line in plain.lines(snapshot(), width: width).dropFirst() {
                #expect(TextWidth.columns(line) < width, "\(width): \(line)")
            }
        }
    }

    @Test func coloursAndBlocksAreForTerminalsThatShowThem() {
        let view = ProgressView(style: ProgressView.Style(colour: true, unicode: true))
        let line = view.lines(ProgressSnapshot(group: Samples.group(failed: 1)), width: 80)[0]
        #expect(line.contains("\u{1B}[32m█████\u{1B}[0m░░░░░░░"))
        #expect(line.contains("\u{1B}[31m1 failed\u{1B}[0m"))
        #expect(!plain.lines(snapshot(), width: 80).joined().contains("\u{1B}"))
    }

    @Test func aHundredPercentMeansComplete() {
        #expect(ProgressSnapshot.percent(999_999, of: 1_000_000) == 99)
        #expect(ProgressSnapshot.percent(2_000_000, of: 1_000_000) == 99)
        #expect(ProgressSnapshot(group: Samples.group(state: .succeeded, total: 3, succeeded: 3)).percent == 100)
        #expect(ProgressSnapshot(group: Samples.group(total: 0, succeeded: 0, unknown: 1)).percent == nil)
        // Of unknown sizes the files count.
        #expect(ProgressSnapshot(group: Samples.group(total: 40, succeeded: 10, unknown: 3)).percent == 25)
    }

    @Test func plainLinesComeNowAndThenAndOnlyWithNews() {
        var progress = PlainProgress()
        let start = ContinuousClock.now
        let first = ProgressSnapshot(group: Samples.group())
        let second = ProgressSnapshot(group: Samples.group(succeeded: 13))
        #expect(progress.line(first, now: start) == "nightly: 12/40 files, 1.1 GiB/2.5 GiB, 35.0 MiB/s, ETA 42s")
        #expect(progress.line(second, now: start + .seconds(1)) == nil)
        #expect(progress.line(second, now: start + .seconds(5))?.hasPrefix("nightly: 13/40 files") == true)
        #expect(progress.line(second, now: start + .seconds(60)) == nil)
    }

    @Test func theSummaryTellsHowItEnded() {
        #expect(
            PlainProgress.summary(Samples.group(state: .failed, total: 3, succeeded: 2, failed: 1))
                == "nightly: failed: 2 succeeded, 1 failed, 1.1 GiB"
        )
        #expect(
            PlainProgress.summary(Samples.group(state: .succeeded, total: 0, succeeded: 0))
                == "nightly: succeeded: no tasks, 1.1 GiB"
        )
    }

    @Test func eventsOfTasksBecomeLines() throws {
        func line(_ event: EventDocument) throws -> String? { FileNews(try event.payload(), at: event.time)?.line }
        #expect(
            try line(Samples.event("task.succeeded", Samples.success("a\u{1B}", size: 1_024)))
                == "finished: a\\u{1b} (1.0 KiB)")
        let failure: JSONValue = .object(["kind": .string("notFound"), "detail": .string("status 404")])
        #expect(
            try line(Samples.event("task.failed", Samples.task(with: ["failure": failure])))
                == "failed: k: notFound: status 404")
        #expect(try line(Samples.event("task.cancelled", Samples.task())) == nil)
        #expect(try line(Samples.event("group.succeeded", Samples.end(.succeeded))) == nil)
        #expect(try line(Samples.event("task.of-tomorrow", [:])) == nil)
        #expect(throws: DecodingError.self) { try line(Samples.event("task.succeeded", [:])) }
    }

    @Test func speedsComeFromTwoLooks() {
        var speeds = TransferSpeeds()
        let start = ContinuousClock.now
        func look(_ done: Int64, at seconds: Int) -> Int64? {
            var files = [ProgressSnapshot.File(name: "a", done: done, total: nil)]
            speeds.update(&files, now: start + .seconds(seconds))
            return files[0].bytesPerSecond
        }
        #expect(look(0, at: 0) == nil)
        #expect(look(2_000, at: 2) == 1_000)
        #expect(look(6_000, at: 4) == 1_300)
        // It has started over.
        #expect(look(0, at: 6) == nil)
    }
}
