import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Facts of a group")
struct GroupFactLinesTests {
    @Test func aGroupInDetail() {
        let group = Samples.group(state: .open, unknown: 4, notes: ["the sink is full"])
        #expect(
            FactLines.lines(GroupFactLines.all(group, clock: Samples.clock)) == [
                "group:      nightly",
                "state:      open (not sealed)",
                "generation: 1",
                "sink:       default",
                "priority:   0",
                "tasks:      40: 12 succeeded, 28 queued",
                "bytes:      1.2 GiB/2.6 GiB+ (size unknown of 4)",
                "speed:      35.1 MiB/s",
                "ETA:        42s",
                "created:    2026-03-01 13:00:00 (15s ago)",
                "note:       the sink is full",
            ]
        )
    }

    @Test func theTasksAddUp() {
        var group = Samples.group(state: .failed, total: 9, succeeded: 8, failed: 1)
        group.tasks.cancelled = 2
        let text = GroupFactLines.all(group).first { $0.0 == "tasks" }?.1
        #expect(text == "9: 8 succeeded, 1 failed (2 more were cancelled)")
    }

    @Test func onlyTheLimitsThatAGroupHasAreTold() {
        var group = Samples.group(
            limits: GroupLimits(
                maxConnections: 1,
                bytesPerSecond: 10 << 20,
                between: TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin"),
                timetable: [TimetableEntry(from: "08:00", to: "18:00", bytesPerSecond: 2 << 20)]
            )
        )
        group.weight = 3
        group.deadlineAt = Samples.moment
        group.onDeadline = .continue
        group.overdue = true
        group.after = [
            PrerequisiteDocument(group: "a", on: .succeeded, satisfied: true),
            PrerequisiteDocument(group: "b", on: .finished, satisfied: false),
        ]
        #expect(
            FactLines.lines(GroupFactLines.limits(group, clock: Samples.clock)) == [
                "priority:   0, weight 3",
                "at most:    1 connection, 10.0 MiB/s",
                "            2.0 MiB/s from 08:00 to 18:00 Europe/Berlin",
                "runs:       from 22:00 to 06:00 Europe/Berlin",
                "deadline:   2026-03-01 13:00:00 (15s ago), overdue, goes on",
                "after:      a (satisfied)",
                "after:      b finished (waiting)",
            ]
        )
    }

    @Test func ratesOfTheDayAloneAreALimitToo() {
        let timetable = [
            TimetableEntry(from: "08:00", to: "18:00", bytesPerSecond: 2 << 20),
            TimetableEntry(from: "00:00", to: "00:00", bytesPerSecond: 4 << 20),
        ]
        #expect(
            FactLines.lines(GroupFactLines.limits(Samples.group(limits: GroupLimits(timetable: timetable)))) == [
                "priority:   0",
                "at most:    2.0 MiB/s from 08:00 to 18:00 UTC",
                "            4.0 MiB/s at all times",
            ]
        )
    }

    @Test func aGroupThatHasEndedIsNotEstimated() {
        let explanation = GroupExplanationDocument(
            group: Samples.group(state: .succeeded, total: 1, succeeded: 1), summary: "It has succeeded.", next: nil,
            waits: [], slowestOrigin: nil, criticalPath: [], eta: .init(seconds: nil, because: "it has succeeded"),
            at: Samples.moment)
        #expect(
            GroupExplanationText.lines(explanation)
                == ["nightly: succeeded, 1/1 file, 1.2 GiB/2.6 GiB", "It has succeeded."])
    }

    @Test func theExplanationOfAGroupOutsideOfItsHoursNamesBothZones() {
        let explanation = GroupExplanationDocument(
            group: Samples.group(), summary: "It may run only from 22:00 to 06:00 (Asia/Tokyo), which is not now.",
            next: "it goes on at \(Samples.moment)",
            waits: [.init(reason: .windowClosed, detail: "not now", tasks: 1, until: Samples.moment)],
            slowestOrigin: nil, criticalPath: ["its window has to open at \(Samples.moment)"],
            eta: .init(seconds: nil, earliest: Samples.moment, because: "its window is closed"), at: Samples.moment)
        let lines = GroupExplanationText.lines(explanation, clock: Samples.clock)
        #expect(lines.filter { $0.contains("2026-03-01 13:00:00 UTC+01:00 (15s ago)") }.count == 3, "\(lines)")
    }

    @Test func theExplanationOfAGroup() {
        let explanation = GroupExplanationDocument(
            group: Samples.group(),
            summary: "28 tasks wait for a connection to https://a.example:443",
            next: "the next one begins as soon as one is free",
            waits: [
                .init(reason: .originFull, detail: "the origin is busy", tasks: 100),
                .init(
                    reason: .originPaused, detail: "paus\u{1B}ed", tasks: 2, more: true, until: Samples.moment),
            ],
            slowestOrigin: .init(
                key: "https://a.example:443", leases: 4, allowed: 4, bytesPerSecond: 1 << 20, bytesLeft: 1 << 30),
            criticalPath: ["the group x ends", "big.iso is fetched"],
            eta: .init(seconds: 125, latest: Samples.moment, because: "at the speed of the last minute"),
            at: Samples.moment
        )
        #expect(
            GroupExplanationText.lines(explanation, clock: Samples.clock) == [
                "nightly: sealed, 12/40 files, 1.2 GiB/2.6 GiB",
                "28 tasks wait for a connection to https://a.example:443",
                "next: the next one begins as soon as one is free",
                "done: in 2m 5s as things go, by 2026-03-01 13:00:00 (15s ago) at the latest: at the speed of the last minute",
                "also: paus\\u{1b}ed (2+ tasks, until 2026-03-01 13:00:00 (15s ago))",
                "until the end:",
                "  1. the group x ends",
                "  2. big.iso is fetched",
            ]
        )
        #expect(
            GroupExplanationText.estimate(
                .init(
                    seconds: 400, earliest: Timestamp(microseconds: Samples.moment.microseconds + 395_000_000),
                    latest: Timestamp(microseconds: Samples.moment.microseconds + 3_000_000), because: "so much comes"),
                Samples.clock)
                == "in 6m 40s as things go, by 2026-03-01 13:00:03 (12s ago) at the latest: so much comes",
            "where the rate is used up it can't be done sooner")
        #expect(
            GroupExplanationText.estimate(.init(seconds: nil, because: "no size is known"), Samples.clock)
                == "unknown: no size is known")
    }
}
