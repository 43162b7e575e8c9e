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
                "nightly  [###########-------------]   46%  12/40 files  1.2 GiB/2.6 GiB  35.1 MiB/s  ETA 42s  2 failed",
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

    @Test func theLinesForAnOrdinaryAndANarrowTerminal() {
        #expect(
            plain.lines(snapshot(), width: 80).prefix(2) == [
                "[##----]   46%  12/40 files  1.2 GiB/2.6 GiB  35.1 MiB/s  ETA 42s  2 failed",
                "  a/b.tar             [######------]   52%    120.0 MiB/230.0 MiB  12.0 MiB/s",
            ]
        )
        #expect(
            plain.lines(snapshot(), width: 60).prefix(2) == [
                " 46%  12/40 files  1.2 GiB/2.6 GiB  ETA 42s  2 failed",
                "  a/b.tar          52%    120.0 MiB/230.0 MiB  12.0 MiB/s",
            ]
        )
    }

    @Test func filesThatAreNotShownAreCounted() {
        var snapshot = snapshot()
        snapshot.moreFiles = 8
        #expect(plain.lines(snapshot, width: 80)[4] == "  and 8 more")
        snapshot.moreFiles = 0
        #expect(!plain.lines(snapshot, width: 80).joined().contains("more"))
    }

    @Test func troubleStandsUnderItsFile() throws {
        var snapshot = snapshot()
        snapshot.group.trouble = [.init(kind: .httpStatus(503), tasks: 2), .init(kind: .network, tasks: 1)]
        snapshot.files = [
            ProgressSnapshot.File(Samples.troubled("a.bin")),
            ProgressSnapshot.File(Samples.troubled("b.bin", kind: .network, inSeconds: nil)),
        ]
        let lines = plain.lines(snapshot, width: 80)
        #expect(lines[0].hasSuffix("2 failed  3 retrying"))
        #expect(lines[2] == "    503 Service Unavailable, try 3 of 8 in 4s")
        #expect(
            lines[4...5] == ["    connection failed: what was seen of it", "    try 3 of 8 when a connection is free"])
        let narrow = plain.lines(snapshot, width: 40)
        #expect(narrow[2...3] == ["    503 Service Unavailable", "    try 3 of 8 in 4s"])
        #expect(narrow[5] == "    connection failed: what was seen…")
        let facts = GroupFactLines.all(snapshot.group).filter { $0.0 == "retrying" }.map(\.1)
        #expect(facts == ["503 Service Unavailable (2), connection failed (1)"])
    }

    @Test func numberOfTriesIsToldWhereItIsKnown() throws {
        var task = Samples.troubled("a.bin", kind: .network)
        func next() throws -> String { try #require(TroubleText(task)).next }
        task.retry?.limit = nil
        #expect(try next() == "try 3 in 4s")
        // The origin refused too many requests at once, which doesn't count as a try.
        task.retry = TaskRetry(number: 1, limit: 8)
        #expect(try next() == "next try when a connection is free")
        task.retry = TaskRetry(number: 2, limit: 3)
        task.state = .active
        #expect(try next() == "try 2 of 3 now")
        // The name of an origin that has served lately isn't taken for wrong, so the limit is a time.
        task.retry = TaskRetry(number: 3, inSeconds: 4, onForSeconds: 110)
        #expect(try next() == "try 3 in 4s, given up in 1m 50s at the earliest")
    }

    @Test func filesThatNoWorkerBeginsAreReportedOnceThatLasts() {
        var group = Samples.group()
        (group.tasks.queued, group.tasks.active) = (3, 2)
        group.trouble = [.init(kind: .timeout, tasks: 1)]
        let start = ContinuousClock.now
        let first = Standstill(group, after: nil, now: start)
        #expect(first?.count == 2 && first?.isLong == false)
        let later = Standstill(group, after: first, now: start + .seconds(6))
        #expect(later?.isLong == true)
        group.tasks.queued = 2
        #expect(Standstill(group, after: later, now: start + .seconds(7))?.isLong == false, "one was begun")
        group.tasks.queued = 1
        #expect(Standstill(group, after: later, now: start + .seconds(8)) == nil)
    }

    @Test func aGroupOfWhichNothingMayComeHasNoSpeed() {
        var group = Samples.group(total: 3, succeeded: 1)
        #expect(ProgressSnapshot(group: group).speedText == "35.1 MiB/s")
        (group.tasks.queued, group.tasks.paused) = (0, 2)
        #expect(ProgressSnapshot(group: group).speedText == nil)
        #expect(!PlainProgress.sentence(ProgressSnapshot(group: group)).contains("/s"))
        #expect(!GroupFactLines.all(group).contains { $0.0 == "speed" })
    }

    /// A link that hangs: the try fails only after a minute, but the user wonders after seconds.
    @Test func silenceIsToldWithTheFilesThatNothingComesOf() async throws {
        var group = Samples.group()
        (group.tasks.active, group.tasks.finalizing, group.notes) = (3, 0, [])
        func moment(_ seconds: Int64) -> Timestamp {
            Timestamp(microseconds: Samples.moment.microseconds + seconds * 1_000_000)
        }
        let first = Silence(group, after: nil, ownsWorkers: false, now: moment(0))
        let later = try #require(Silence(group, after: first, ownsWorkers: false, now: moment(8)))
        #expect(first?.isLong == false && later.isLong && later.since == moment(0))
        let own = Silence(group, after: nil, ownsWorkers: true, now: moment(0))
        #expect(Silence(group, after: own, ownsWorkers: true, now: moment(4))?.isLong == true)
        let log = ScriptedLog(.init(tasks: [Samples.finished("a.bin", size: 3), Samples.finished("b.bin", size: 3)]))
        #expect(
            try await later.note(of: group, log.client())
                == "nothing new has come since \(Samples.moment) of a.bin, b.bin from https://example.org:443",
            "one has ended since the group was looked at")
        var silent = Samples.part("c.bin", done: 0, total: nil)
        silent.urls = ["https://a.example/c.bin"]
        #expect(
            later.text([silent], more: 0)
                == "not one byte has come since \(Samples.moment) of c.bin from https://a.example:443")
        group.bytes.done += 1
        #expect(Silence(group, after: later, ownsWorkers: false, now: moment(9))?.isLong == false, "something has come")
        group.notes = ["no live worker"]
        #expect(Silence(group, after: later, ownsWorkers: false, now: moment(12)) == nil, "it says what it waits for")
        group.bytes.done -= 1
        let between = Silence(group, after: later, ownsWorkers: false, now: moment(12))
        group.notes = []
        let again = Silence(group, after: between, ownsWorkers: false, now: moment(13))
        #expect(
            between?.isLong == false && again?.isLong == true && again?.since == moment(0))
    }

    @Test func aTroubleIsToldOnceInPlainLines() {
        var progress = PlainProgress()
        var group = Samples.group()
        group.trouble = [.init(kind: .httpStatus(503), tasks: 9)]
        let tasks = (1...5).map { Samples.troubled("\($0).bin\u{1B}") }
        let start = ContinuousClock.now
        let first = progress.lines(tasks, of: group, now: start)
        #expect(first.count == 6)
        #expect(first[0] == "retrying: 1.bin\\u{1b}: 503 Service Unavailable, try 3 of 8 in 4s")
        #expect(first[5] == "… and 4 more are tried again")
        #expect(progress.lines(tasks, of: group, now: start + .seconds(1)).isEmpty)
        var again = tasks[0]
        again.failure?.at = Timestamp(microseconds: Samples.moment.microseconds + 1)
        #expect(
            progress.lines([again], of: group, now: start + .seconds(3)).isEmpty,
            "another chunk of it, before the try that was told of")
        #expect(progress.lines([again], of: group, now: start + .seconds(4)).count == 1)
        again.failure?.at = Timestamp(microseconds: Samples.moment.microseconds + 2)
        again.retry?.number += 1
        #expect(progress.lines([again], of: group, now: start + .seconds(5)).count == 1, "one more try has failed")
    }

    /// As long as the disk is full, further tries of these and other files fail.
    @Test func aFullDiskIsToldOfByAFewFiles() {
        var progress = PlainProgress()
        var group = Samples.group()
        let start = ContinuousClock.now
        func lines(_ names: ClosedRange<Int>, at second: Int64) -> Int {
            let tasks = names.map { name in
                var task = Samples.troubled("\(name).bin")
                task.failure?.kind = .noSpace
                task.failure?.at = Timestamp(microseconds: Samples.moment.microseconds + second)
                return task
            }
            return progress.lines(tasks, of: group, now: start + .seconds(second)).count
        }
        group.trouble = [.init(kind: .noSpace, tasks: 4)]
        #expect(lines(1...3, at: 10) == 3 && lines(4...5, at: 20) == 2 && lines(1...5, at: 30) == 0)
        group.trouble = []
        #expect(lines(1...1, at: 40) == 1, "there was room in between")
    }

    @Test func aFileOfWhichNothingIsThereYetHasBeenAskedFor() {
        func row(_ done: Int64, _ speed: Int64) -> String {
            let file = ProgressSnapshot.File(name: "a.bin", done: done, total: nil, bytesPerSecond: speed)
            return plain.lines(ProgressSnapshot(group: Samples.group(), files: [file]), width: 80)[1]
        }
        #expect(row(0, 0).hasSuffix("asked for") && row(9, 0).hasSuffix("0 B/s") && row(0, 9).hasSuffix("9 B/s"))
    }

    /// A terminal cuts a line that is too long, wherever that is, so no line may be too long.
    @Test(arguments: [24, 40, 60, 80, 100, 120, 200])
    func everyLineFitsItsTerminal(width: Int) {
        for line in plain.lines(snapshot(), width: width) {
            #expect(TextWidth.columns(line) < width, "\(line)")
        }
    }

    /// Parts are left out as a whole: a number without its unit is another number.
    @Test(arguments: [24, 40, 60, 80, 100, 120])
    func aLineIsMadeOfWholeParts(width: Int) {
        func parts(_ line: String) -> [String] {
            line.split(separator: "  ").map { $0.split(separator: " ").joined(separator: " ") }
                .filter { !$0.hasPrefix("[") && !$0.isEmpty }
        }
        let whole = Set(parts(plain.lines(snapshot(), width: 400)[0]))
        let shown = parts(plain.lines(snapshot(), width: width)[0])
        #expect(whole.isSuperset(of: shown), "\(shown)")
        #expect(shown.contains("12/40 files") && shown.contains("2 failed"))
        if width >= 40 { #expect(shown.contains("46%")) }
        if width >= 60 { #expect(shown.contains("ETA 42s")) }
        if width >= 80 { #expect(shown.contains("35.1 MiB/s")) }
    }

    @Test func coloursAndBlocksAreForTerminalsThatShowThem() {
        let view = ProgressView(style: ProgressView.Style(colour: true, unicode: true))
        let line = view.lines(ProgressSnapshot(group: Samples.group(failed: 1)), width: 100)[0]
        #expect(line.contains("\u{1B}[32m█████\u{1B}[0m░░░░░░░"))
        #expect(line.contains("\u{1B}[31m1 failed\u{1B}[0m"))
        #expect(!plain.lines(snapshot(), width: 80).joined().contains("\u{1B}"))
    }

    @Test func aHundredPercentMeansComplete() {
        #expect(ProgressSnapshot.percent(999_999, of: 1_000_000) == 99)
        #expect(ProgressSnapshot.percent(2_000_000, of: 1_000_000) == 99)
        #expect(ProgressSnapshot(group: Samples.group(state: .succeeded, total: 3, succeeded: 3)).percent == 100)
        #expect(ProgressSnapshot(group: Samples.group(total: 0, succeeded: 0, unknown: 1)).percent == nil)
        // A share of the files is no share of the bytes: it is shown only as a bar, and only for several files.
        let unknown = ProgressSnapshot(group: Samples.group(total: 40, succeeded: 10, unknown: 3))
        #expect(unknown.percent == nil && unknown.barPercent == 25)
        #expect(ProgressSnapshot(group: Samples.group(total: 1, succeeded: 0, unknown: 1)).barPercent == nil)
    }

    @Test func plainLinesComeNowAndThenAndOnlyWithNews() {
        var progress = PlainProgress()
        let start = ContinuousClock.now
        let first = ProgressSnapshot(group: Samples.group())
        let second = ProgressSnapshot(group: Samples.group(succeeded: 13))
        #expect(progress.line(first, now: start) == "nightly: 12/40 files, 1.2 GiB/2.6 GiB, 35.1 MiB/s, ETA 42s")
        #expect(progress.line(second, now: start + .seconds(1)) == nil)
        #expect(progress.line(second, now: start + .seconds(5))?.hasPrefix("nightly: 13/40 files") == true)
        #expect(progress.line(second, now: start + .seconds(65)) == nil, "nothing is under way")
    }

    /// A link that hangs brings nothing for a minute; without new lines, the command itself would seem to hang.
    @Test func aLineIsSaidAgainWhileAFileIsUnderWay() {
        var group = Samples.group(notes: ["not one byte has come since then of a.bin"])
        var progress = PlainProgress()
        let start = ContinuousClock.now
        func line(after seconds: Int) -> String? {
            progress.line(ProgressSnapshot(group: group), now: start + .seconds(seconds))
        }
        group.tasks.active = 1
        #expect(line(after: 0) != nil && line(after: 9) == nil)
        #expect(line(after: 10)?.hasSuffix("not one byte has come since then of a.bin") == true)
        #expect(line(after: 19) == nil && line(after: 20) != nil)
        (group.tasks.active, group.trouble) = (0, [.init(kind: .timeout, tasks: 1)])
        #expect(line(after: 25) != nil && line(after: 35) != nil, "or is tried again")
    }

    @Test func theSummaryTellsHowItEnded() {
        #expect(
            PlainProgress.summary(Samples.group(state: .failed, total: 3, succeeded: 2, failed: 1))
                == "nightly: failed: 2 succeeded, 1 failed, 1.2 GiB"
        )
        #expect(
            PlainProgress.summary(Samples.group(state: .succeeded, total: 0, succeeded: 0))
                == "nightly: succeeded: no tasks, 1.2 GiB"
        )
    }

    @Test func theSummaryTellsHowFastItCame() {
        let group = Samples.group(state: .succeeded, total: 3, succeeded: 3)
        let start = ContinuousClock.now
        func summary(_ begun: Gain.Start, after time: Duration) -> String {
            PlainProgress.summary(group, Gain(group, since: begun, now: start + time))
        }
        let nothing = Gain.Start(at: start)
        #expect(
            summary(nothing, after: .seconds(14)) == "nightly: succeeded: 3 succeeded, 1.2 GiB in 14s, 87.8 MiB/s")
        #expect(summary(nothing, after: .milliseconds(1_449)).hasSuffix("1.2 GiB in 1.4s, 848.0 MiB/s"))
        var half = group
        half.bytes.done -= 100 << 20
        #expect(
            summary(Gain.Start(half, at: start), after: .seconds(100))
                == "nightly: succeeded: 3 succeeded, 1.2 GiB, 100.0 MiB of it in 1m 40s, 1.0 MiB/s")
        #expect(
            summary(Gain.Start(group, at: start), after: .seconds(1)) == PlainProgress.summary(group), "nothing came")
    }

    @Test func fileThatStartsOverIsNotSaidToHaveBeenThere() {
        let now = ContinuousClock.now
        var half = Samples.group()
        half.bytes.done = 300 << 20
        var start = Gain.Start(half, at: now)
        start.note([Samples.part("a", done: 100 << 20, total: 1 << 30), Samples.part("b", done: 200 << 20, total: nil)])
        #expect(start.without(["a", "a", "unknown"]).bytes == 200 << 20)
        start = start.without(["a", "b"])
        let end = Samples.group(state: .succeeded, total: 3, succeeded: 3)
        #expect(
            Gain(end, since: start, now: now + .seconds(14)).text(all: end.bytes.done) == "1.2 GiB in 14s, 87.8 MiB/s")
    }

    @Test func eventsOfTasksBecomeLines() throws {
        func line(_ event: EventDocument) throws -> String? { FileNews(try event.payload(), at: event.time)?.line }
        #expect(
            try line(Samples.event("task.succeeded", Samples.success("a\u{1B}", size: 1_024)))
                == "finished: a\\u{1b} (1.0 KiB)")
        let failure: JSONValue = .object(["kind": .string("notFound"), "detail": .string("status 404")])
        #expect(
            try line(Samples.event("task.failed", Samples.task(with: ["failure": failure])))
                == "failed: k: not found: status 404")
        #expect(try line(Samples.event("task.cancelled", Samples.task())) == nil)
        #expect(try line(Samples.event("group.succeeded", Samples.end(.succeeded))) == nil)
        #expect(try line(Samples.event("task.of-tomorrow", [:])) == nil)
        #expect(throws: DecodingError.self) { try line(Samples.event("task.succeeded", [:])) }
    }

    /// A single number for all commands: the coordinator's.
    @Test func speedsAreThoseOfTheCoordinator() {
        var task = Samples.troubled("a.bin")
        (task.state, task.bytesPerSecond) = (.active, 2_048)
        let file = ProgressSnapshot.File(task)
        #expect(file.bytesPerSecond == 2_048)
        var snapshot = ProgressSnapshot(group: Samples.group(), files: [file, file])
        snapshot.group.bytesPerSecond = 1_024
        #expect(snapshot.speedText == "1.0 KiB/s", "and no sum of what some files have")
        task.state = .finalizing
        #expect(ProgressSnapshot.File(task).bytesPerSecond == nil)
    }
}
