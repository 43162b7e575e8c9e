import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

struct GroupPatchTests {
    private static let night = TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin")

    @Test(
        arguments: [
            ("{}", GroupPatch()),
            (#"{"priority":5,"weight":2}"#, GroupPatch(priority: 5, weight: 2)),
            (#"{"priority":null,"weight":null}"#, GroupPatch(priority: 0, weight: 1)),
            (#"{"limits":{}}"#, GroupPatch()),
            (#"{"limits":null}"#, GroupPatch(limits: .cleared)),
            (#"{"limits":{"maxConnections":7}}"#, GroupPatch(limits: GroupLimitsPatch(maxConnections: .set(7)))),
            (
                #"{"limits":{"maxConnections":null,"bytesPerSecond":1}}"#,
                GroupPatch(limits: GroupLimitsPatch(maxConnections: .clear, bytesPerSecond: .set(1)))
            ),
            (
                #"{"limits":{"between":{"from":"22:00","to":"06:00","timeZone":"Europe/Berlin"},"timetable":null}}"#,
                GroupPatch(limits: GroupLimitsPatch(between: .set(night), timetable: .clear))
            ),
            (#"{"deadline":"2h"}"#, GroupPatch(deadline: .set("2h"))),
            (#"{"deadline":null,"onDeadline":null}"#, GroupPatch(deadline: .clear, onDeadline: .fail)),
            (#"{"onDeadline":"continue"}"#, GroupPatch(onDeadline: .continue)),
            (#"{"after":null}"#, GroupPatch(after: [])),
            (#"{"after":[]}"#, GroupPatch(after: [])),
            (
                #"{"fetch":null,"resolver":null,"metadata":null}"#,
                GroupPatch(fetch: .clear, resolver: .clear, metadata: .clear)
            ),
            (
                #"{"resolver":{"url":"http://r/"},"metadata":[1]}"#,
                GroupPatch(resolver: .set(Resolver(url: "http://r/")), metadata: .set(.array([.integer(1)])))
            ),
            (
                #"{"after":[{"group":"a"},{"group":"b","on":"finished"}]}"#,
                GroupPatch(after: [.init(group: "a"), .init(group: "b", on: .finished)])
            ),
        ] as [(String, GroupPatch)])
    func absentNullAndAValueAreToldApart(json: String, patch: GroupPatch) throws {
        let read = try document(GroupPatch.self, json)
        #expect(read == patch)
        #expect(try document(GroupPatch.self, jsonText(patch)) == patch, "the encoded patch decodes to the same")
    }

    @Test func whatStaysIsNotWritten() throws {
        #expect(try jsonText(GroupPatch()) == "{}")
        #expect(
            try jsonText(GroupPatch(limits: .cleared))
                == #"{"limits":{"between":null,"bytesPerSecond":null,"maxConnections":null,"timetable":null}}"#)
    }

    @Test(
        arguments: [
            (#"{"name":"h"}"#, "/name"), (#"{"sealed":true}"#, "/sealed"), (#"{"policy":{}}"#, "/policy"),
            (#"{"limits":{"rate":1}}"#, "/limits/rate"),
            (#"{"limits":{"bytesPerSecond":1.5}}"#, "/limits/bytesPerSecond"),
            (#"{"limits":{"between":{"from":"22:00","to":"06:00"}}}"#, "/limits/between/timeZone"),
            (#"{"limits":{"between":{"from":2200,"to":"06:00","timeZone":"UTC"}}}"#, "/limits/between/from"),
            (#"{"limits":{"between":{"from":"1","to":"2","timeZone":"UTC","days":[]}}}"#, "/limits/between/days"),
            (#"{"limits":{"timetable":[{"from":"00:00","to":"01:00"}]}}"#, "/limits/timetable/0/bytesPerSecond"),
            (#"{"limits":{"timetable":{}}}"#, "/limits/timetable"), (#"{"onDeadline":"wait"}"#, "/onDeadline"),
            (#"{"after":[{"group":"a","on":"started"}]}"#, "/after/0/on"), (#"{"after":["a"]}"#, "/after/0"),
            (#"{"deadline":7200}"#, "/deadline"), (#"{"fetch":{"colour":1}}"#, "/fetch/colour"), ("[]", ""),
        ])
    func whatIsWrongWithAPatchIsNamedByItsPointer(json: String, pointer: String) {
        #expect(refusal(GroupPatch.self, json)?.pointer == pointer)
    }

    private static func limits(_ limits: GroupLimitsPatch) -> GroupPatch { GroupPatch(limits: limits) }

    private static func window(_ from: String, _ to: String = "06:00", _ zone: String = "UTC") -> GroupPatch {
        limits(GroupLimitsPatch(between: .set(TimeWindow(from: from, to: to, timeZone: zone))))
    }

    @Test(
        arguments: [
            (GroupPatch(priority: 1_001), "/priority"), (GroupPatch(weight: 0), "/weight"),
            (limits(GroupLimitsPatch(maxConnections: .set(0))), "/limits/maxConnections"),
            (limits(GroupLimitsPatch(bytesPerSecond: .set(0))), "/limits/bytesPerSecond"),
            (limits(GroupLimitsPatch(bytesPerSecond: .set(1 << 50))), "/limits/bytesPerSecond"),
            (limits(GroupLimitsPatch(bytesPerSecond: .set(1 << 50 - 1))), nil),
            (window("24:00"), "/limits/between/from"), (window("23:60"), "/limits/between/from"),
            (window("6:00"), "/limits/between/from"), (window("06.00"), "/limits/between/from"),
            (window("٢٢:00"), "/limits/between/from"), (window("22:00 "), "/limits/between/from"),
            (window("00:00", ""), "/limits/between/to"), (window("00:00", "23:59"), nil), (window("06:00"), nil),
            (window("00:00", "06:00", ""), "/limits/between/timeZone"),
            (window("00:00", "06:00", "Europe/Berlin\0"), "/limits/between/timeZone"),
            (window("00:00", "06:00", "Etc/GMT+1"), nil),
            (
                limits(GroupLimitsPatch(timetable: .set([.init(from: "00:00", to: "25:00", bytesPerSecond: 1)]))),
                "/limits/timetable/0/to"
            ),
            (
                limits(
                    GroupLimitsPatch(
                        timetable: .set([
                            .init(from: "00:00", to: "01:00", bytesPerSecond: 1),
                            .init(from: "00:00", to: "01:00", timeZone: "a b", bytesPerSecond: 1),
                        ]))), "/limits/timetable/1/timeZone"
            ),
            (
                limits(GroupLimitsPatch(timetable: .set([.init(from: "00:00", to: "01:00", bytesPerSecond: 0)]))),
                "/limits/timetable/0/bytesPerSecond"
            ),
            (
                limits(
                    GroupLimitsPatch(
                        timetable: .set(
                            Array(repeating: .init(from: "00:00", to: "01:00", bytesPerSecond: 1), count: 49)))),
                "/limits/timetable"
            ),
            (GroupPatch(resolver: .set(Resolver(url: "ftp://r/"))), "/resolver/url"),
            (GroupPatch(deadline: .set("soon")), "/deadline"), (GroupPatch(deadline: .set("999ms")), "/deadline"),
            (GroupPatch(deadline: .set("3651d")), "/deadline"), (GroupPatch(deadline: .set("1s")), nil),
            (GroupPatch(deadline: .set("3650d")), nil),
            (GroupPatch(after: [.init(group: "a b")]), "/after/0/group"),
            (GroupPatch(after: [.init(group: "a"), .init(group: "g")]), "/after/1/group"),
            (GroupPatch(after: [.init(group: "a"), .init(group: "a", on: .finished)]), "/after/1/group"),
            (GroupPatch(after: (0..<65).map { .init(group: "a\($0)") }), "/after"),
            (GroupPatch(after: (0..<64).map { .init(group: "a\($0)") }), nil),
        ] as [(GroupPatch, String?)])
    func impossibleChangeIsRefused(patch: GroupPatch, pointer: String?) {
        var refused: String?
        do {
            try patch.check(of: "g")
        } catch {
            refused = error.pointer
        }
        #expect(refused == pointer)
        // A new group with the same values is refused in the same way.
        var request = GroupRequest(
            name: "g", priority: patch.priority, weight: patch.weight,
            limits: GroupLimits(
                maxConnections: patch.limits.maxConnections.value, bytesPerSecond: patch.limits.bytesPerSecond.value,
                between: patch.limits.between.value, timetable: patch.limits.timetable.value))
        request.deadline = patch.deadline.value
        request.after = patch.after
        request.fetch = patch.fetch.value
        request.resolver = patch.resolver.value
        request.metadata = patch.metadata.value
        var refusedAtFirst: String?
        do {
            try request.check()
        } catch {
            refusedAtFirst = error.pointer
        }
        #expect(refusedAtFirst == pointer)
    }

    @Test func explanationOfAGroupSurvivesAndSaysNullForWhatIsNotKnown() throws {
        let at = Timestamp(microseconds: 1_772_366_400_000_000)
        let estimate = GroupExplanationDocument.Estimate(seconds: nil, because: "it is paused")
        #expect(try jsonText(estimate) == #"{"because":"it is paused","earliest":null,"latest":null,"seconds":null}"#)
        var group = GroupDocument(name: "g", state: .sealed, sink: "default", createdAt: at)
        group.limits = GroupLimits(between: Self.night)
        group.tasks = .init(total: 1, queued: 1)
        group.bytes.unknownTasks = 1
        group.deadlineAt = at
        group.onDeadline = .continue
        group.overdue = true
        group.after = [.init(group: "a", on: .finished, satisfied: false)]
        let document = GroupExplanationDocument(
            group: group,
            summary: "s", next: nil,
            waits: [.init(reason: .prerequisites, detail: "d", tasks: 1, more: true, until: at)],
            slowestOrigin: .init(key: "https://h:443", leases: 1, allowed: 8, bytesPerSecond: 5, bytesLeft: nil),
            criticalPath: ["p"], eta: estimate, at: at)
        let text = try jsonText(document)
        #expect(try MusterAPITests.document(GroupExplanationDocument.self, text) == document)
        #expect(text.contains(#""bytesLeft":null"#))
    }
}
