import ArgumentParser
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Settings of groups")
struct GroupSettingsTests {
    private func patch(_ arguments: [SettingName: [String]]) throws -> GroupPatch {
        try Settings(command: "limit", arguments: arguments, configuration: nil, environment: [:]).groupPatch()
    }

    @Test func nothingSaidChangesNothing() throws {
        #expect(try patch([:]) == GroupPatch())
        var request = GroupRequest(name: "g")
        GroupPatch().apply(to: &request)
        #expect(request == GroupRequest(name: "g"))
    }

    @Test func everyOptionArrivesInItsPlace() throws {
        let patch = try patch([
            .priority: ["-7"], .weight: ["3"], .maxConnections: ["8"], .rate: ["10MiB/s"], .between: ["22:00-06:00"],
            .timeZone: ["Europe/Berlin"], .rateBetween: ["08:00-18:00=2MiB/s", "18:00-20:00=4MiB/s"],
            .deadline: ["2h"], .onDeadline: ["continue"], .after: ["nightly", "weekly:finished"],
        ])
        let expected = GroupPatch(
            priority: -7,
            weight: 3,
            limits: GroupLimitsPatch(
                maxConnections: .set(8),
                bytesPerSecond: .set(10 << 20),
                between: .set(TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin")),
                timetable: .set([
                    TimetableEntry(from: "08:00", to: "18:00", timeZone: "Europe/Berlin", bytesPerSecond: 2 << 20),
                    TimetableEntry(from: "18:00", to: "20:00", timeZone: "Europe/Berlin", bytesPerSecond: 4 << 20),
                ])
            ),
            deadline: .set("2h"),
            onDeadline: .continue,
            after: [GroupPrerequisite(group: "nightly"), GroupPrerequisite(group: "weekly", on: .finished)]
        )
        #expect(patch == expected)
        try patch.check(of: "g")
    }

    @Test func withoutAZoneTheOneThatStandsIsKept() throws {
        let limits = GroupLimits(between: TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin"))
        #expect(limits.standingZone == "Europe/Berlin" && GroupLimits().standingZone == nil)
        let entries = [
            TimetableEntry(from: "08:00", to: "18:00", bytesPerSecond: 1),
            TimetableEntry(from: "18:00", to: "20:00", timeZone: "Asia/Tokyo", bytesPerSecond: 2),
        ]
        #expect(GroupLimits(timetable: entries).standingZone == "Asia/Tokyo")
        func zones(_ arguments: [SettingName: [String]]) throws -> [String?] {
            let settings = try Settings(command: "limit", arguments: arguments, configuration: nil, environment: [:])
            let limits = try settings.groupPatch(standingZone: "Europe/Berlin").limits
            return [limits.between.value?.timeZone, limits.timetable.value?.first?.timeZone]
        }
        let hours: [SettingName: [String]] = [.between: ["23:00-05:00"], .rateBetween: ["8:00-9:00=1"]]
        #expect(try zones(hours) == ["Europe/Berlin", "Europe/Berlin"])
        #expect(try zones(hours.merging([.timeZone: ["UTC"]]) { $1 }) == ["UTC", "UTC"])
    }

    @Test func aPriorityMayBeginWithAMinus() throws {
        let parsed = try MusterCommand.parseAsRoot(["limit", "g", "--priority", "-5", "--rate", "1MiB/s"])
        let command = try #require(parsed as? LimitCommand)
        #expect(try patch(command.given).priority == -5)
    }

    @Test func aZoneIsThatOfHours() throws {
        func patch(_ hours: [String]) throws -> GroupPatch {
            let parsed = try MusterCommand.parseAsRoot(["limit", "g", "--tz", "Europe/Berlin"] + hours)
            let command = try #require(parsed as? LimitCommand)
            return try command.limits.patch(
                Settings(command: "limit", arguments: command.given, configuration: nil, environment: [:]))
        }
        let window = TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin")
        #expect(try patch(["--between", "22:00-06:00"]).limits.between == .set(window))
        #expect(try patch(["--rate-between", "22:00-06:00=1MiB/s"]).limits.timetable.value?.count == 1)
        #expect(throws: CommandFailure.self) { try patch([]) }
    }

    @Test func noneTakesAway() throws {
        let patch = try patch([
            .maxConnections: ["none"], .rate: ["none"], .between: ["none"], .rateBetween: ["none"],
            .deadline: ["none"], .after: ["none"],
        ])
        #expect(patch == GroupPatch(limits: .cleared, deadline: .clear, after: []))
        var request = GroupRequest(name: "g")
        patch.apply(to: &request)
        #expect(request == GroupRequest(name: "g"), "a group that is about to be made has nothing to lose")
    }

    @Test func aNewGroupIsToldTheSame() throws {
        var request = GroupRequest(name: "g")
        try patch([
            .priority: ["5"], .rate: ["1000"], .between: ["1:00-2:00"], .deadline: ["30s"], .after: ["a"],
        ]).apply(to: &request)
        let limits = GroupLimits(
            bytesPerSecond: 1_000, between: TimeWindow(from: "01:00", to: "02:00", timeZone: "UTC"))
        #expect(
            request
                == GroupRequest(
                    name: "g", priority: 5, limits: limits, deadline: "30s", after: [GroupPrerequisite(group: "a")]))
        try request.check()
    }

    @Test func listsAreSeparatedByCommas() throws {
        let patch = try patch([.after: ["a,b:finished"], .rateBetween: ["1:00-2:00=1"]])
        #expect(patch.after?.map(\.group) == ["a", "b"])
        #expect(patch.limits.timetable.value?.count == 1)
    }

    @Test(arguments: [
        ("22:00-06:00", "22:00", "06:00"), ("8:00-18:30", "08:00", "18:30"), ("18:00-24:00", "18:00", "00:00"),
    ])
    func aPartOfTheDayIsTwoTimes(text: String, from: String, to: String) {
        let window = TimeWindowArgument(text)
        #expect(window?.from == from && window?.to == to)
    }

    @Test(arguments: [
        "", "22:00", "22-06", "22:00-06:00-07:00", "24:01-06:00", "25:00-06:00", "22:60-06:00", "22:0-06:00",
        "22:00-", "a:00-b:00", "22:00 - 06:00", "-1:00-06:00", "222:00-06:00",
    ])
    func invalidPartOfTheDayIsRefused(text: String) {
        #expect(TimeWindowArgument(text) == nil)
    }

    @Test(arguments: [
        ([SettingName.priority: ["1001"]], "--priority"), ([.weight: ["0"]], "--weight"),
        ([.weight: ["none"]], "to 1000, not \"none\""),
        ([.maxConnections: ["0"]], "--max-connections"), ([.rate: ["0"]], "--rate"),
        ([.rate: ["0"]], ", or none, not \"0\""), ([.deadline: ["0s"]], ", or none"),
        ([.between: ["night"]], "--between"), ([.rateBetween: ["1:00-2:00"]], "--rate-between"),
        ([.rateBetween: ["1:00-2:00=none"]], "--rate-between"), ([.deadline: ["0s"]], "--deadline"),
        ([.deadline: ["2"]], "--deadline"), ([.onDeadline: ["stop"]], "fail, continue"),
        ([.after: ["a b"]], "--after"), ([.after: ["a:ended"]], "succeeded or finished"), ([.after: [""]], "--after"),
    ])
    func mistakesAreRefusedWithTheOption(arguments: [SettingName: [String]], word: String) {
        do {
            _ = try patch(arguments)
            Issue.record("accepted")
        } catch CommandFailure.usage(let text) {
            #expect(text.contains(word), "\(text)")
        } catch {
            Issue.record(error)
        }
    }
}
