import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

@Suite("Limits, deadlines and chains over HTTP")
struct GroupLimitsAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")
    private static let task = TaskRequest(urls: ["http://127.0.0.1:1/a"], size: 10)

    /// A window that is closed whenever the test runs: it opens two hours after `now` by the clock of UTC.
    private static func closedWindow(at now: Timestamp) -> TimeWindow {
        let hour = now.microseconds / 3_600_000_000 % 24
        func text(_ hour: Int64) -> String { (hour % 24 < 10 ? "0" : "") + "\(hour % 24):00" }
        return TimeWindow(from: text(hour + 2), to: text(hour + 3), timeZone: "UTC")
    }

    @Test func limitsDeadlineAndPrerequisitesAreReadBackAsTheyWereSet() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(GroupRequest(name: "first"))
            let limits = GroupLimits(
                maxConnections: 4, bytesPerSecond: 1_000_000,
                between: TimeWindow(from: "22:00", to: "22:00", timeZone: "Europe/Berlin"),
                timetable: [
                    TimetableEntry(from: "08:00", to: "18:30", timeZone: "Asia/Tokyo", bytesPerSecond: 5),
                    TimetableEntry(from: "00:00", to: "00:00", bytesPerSecond: 7_000),
                ])
            let made = try await client.createGroup(
                GroupRequest(
                    name: "g", limits: limits, tasks: [Self.task], deadline: "2h", onDeadline: .continue,
                    after: [GroupPrerequisite(group: "first", on: .finished)]))
            #expect(made.limits == limits && made.onDeadline == .continue && made.overdue == false)
            #expect(try #require(made.deadlineAt).since(made.createdAt) == .seconds(7_200))
            #expect(made.after == [PrerequisiteDocument(group: "first", on: .finished, satisfied: false)])
            #expect(made.notes.contains(#"it waits for the group "first""#))
            #expect(made.notes.contains { $0.hasPrefix("it is limited to ") })

            let changed = try await client.change(
                group: "g",
                GroupPatch(
                    priority: 7, limits: GroupLimitsPatch(bytesPerSecond: .set(5), timetable: .clear), deadline: .clear)
            )
            #expect(changed.priority == 7 && changed.weight == 1 && changed.deadlineAt == nil)
            #expect(changed.limits == GroupLimits(maxConnections: 4, bytesPerSecond: 5, between: limits.between))
            #expect(changed.after == made.after, "what a patch doesn't name stays")
            let freed = try await client.change(group: "g", GroupPatch(limits: .cleared, after: []))
            #expect(freed.limits == GroupLimits() && freed.after == nil)
        }
    }

    /// Settings that are refused both when a group is made and when it is changed.
    @Test(arguments: [
        (#""limits":{"bytesPerSecond":0}"#, "/limits/bytesPerSecond", "within 1..."),
        (#""limits":{"between":{"from":"22:00","to":"24:00","timeZone":"UTC"}}"#, "/limits/between/to", "23:59"),
        (
            #""limits":{"between":{"from":"22:00","to":"06:00","timeZone":"Europe/Atlantis"}}"#,
            "/limits/between/timeZone", "Europe/Atlantis"
        ),
        (
            #""limits":{"timetable":[{"from":"00:00","to":"01:00","bytesPerSecond":1},{"from":"01:00","to":"02:00","timeZone":"Moon/Base","bytesPerSecond":1}]}"#,
            "/limits/timetable/1/timeZone", "Moon/Base"
        ),
        (#""deadline":"later""#, "/deadline", "duration"), (#""onDeadline":"wait""#, "/onDeadline", "wait"),
        (#""after":[{"group":"g"}]"#, "/after/0/group", "itself"),
        (#""after":[{"group":"nobody"}]"#, "/after", "nobody"), (#""weight":0"#, "/weight", "within"),
    ])
    func impossibleWishesAreRefusedWithTheirPlace(_ field: String, _ pointer: String, _ reason: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let creation = try await coordinator.raw("POST", "/v1/groups", body: #"{"name":"g",\#(field)}"#)
            #expect(try await coordinator.client.groups().items.isEmpty, "nothing is half-made")
            let before = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            let change = try await coordinator.raw("PATCH", "/v1/groups/g", body: #"{"priority":5,\#(field)}"#)
            for answer in [creation, change] {
                let text = String(decoding: answer.body, as: UTF8.self)
                // What there is decides whether a group can be waited for.
                #expect(answer.status == (pointer == "/after" ? 409 : 400), "\(text)")
                #expect(text.contains("\"pointer\":\"\(pointer)\"") && text.contains(reason), "\(text)")
            }
            #expect(try await coordinator.client.group("g") == before, "nothing is half-changed")
        }
    }

    @Test func aGroupThatWaitsForAnotherIsServedOnlyAfterIt() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(GroupRequest(name: "first"))
            _ = try await client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [Self.task], after: [.init(group: "first")]))
            let session = try await client.openSession(Self.opening)
            #expect(try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4)).leases.isEmpty)
            let explanation = try await client.groupExplanation(of: "g")
            #expect(explanation.waits.map(\.reason) == [.prerequisites] && explanation.waits[0].tasks == 1)
            #expect(explanation.criticalPath[0] == #"the group "first" has to succeed; it is open"#)
            #expect(try await client.explanation(of: "a", in: "g").waits.map(\.reason) == [.prerequisites])

            _ = try await client.apply(.seal, to: "first")
            let served = try await client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, room: 4, waitMilliseconds: 5_000))
            #expect(served.leases.map(\.path) == ["a"])
            #expect(try await client.group("g").after == [.init(group: "first", on: .succeeded, satisfied: true)])
        }
    }

    @Test func theNoteOfAGroupNamesTheGroupThatBlocksItsChain() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(GroupRequest(name: "a", tasks: [Self.task]))
            for (name, before) in [("b", "a"), ("c", "b"), ("d", "c")] {
                _ = try await client.createGroup(GroupRequest(name: name, sealed: true, after: [.init(group: before)]))
            }
            #expect(try await client.group("d").notes == [#"it waits for the group "c""#])
            _ = try await client.apply(.cancel, to: "a")
            let note = #"it waits for the group "c", and "a" has been cancelled already: muster explain d"#
            #expect(try await client.group("d").notes == [note])
        }
    }

    @Test func circlesAndPrerequisitesThatAreInUseAreRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(GroupRequest(name: "a"))
            _ = try await client.createGroup(GroupRequest(name: "b", after: [.init(group: "a")]))
            await #expect { try await client.change(group: "a", GroupPatch(after: [.init(group: "b")])) } throws: {
                let problem = $0 as? Problem
                return problem?.code == .conflict && problem?.pointer == "/after"
                    && problem?.detail.contains("circle") == true
            }
            await #expect { try await client.removeGroup("a") } throws: {
                let problem = $0 as? Problem
                return problem?.code == .conflict && problem?.detail.contains("muster limit b --after none") == true
            }
            _ = try await client.apply(.cancel, to: "b")
            await #expect { try await client.change(group: "b", GroupPatch(after: [.init(group: "a")])) } throws: {
                ($0 as? Problem)?.code == .groupFinished
            }
        }
    }

    @Test func aClosedWindowHoldsWorkBackUntilItIsTakenAway() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            let client = coordinator.client
            let created = try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [Self.task]))
            let window = Self.closedWindow(at: created.createdAt)
            let closed = try await client.change(
                group: "g", GroupPatch(limits: GroupLimitsPatch(between: .set(window))))
            #expect(closed.limits.between == window)
            #expect(
                closed.notes.contains {
                    $0.hasPrefix("it runs only from \(window.from) to \(window.to) (UTC); it goes on at")
                })
            let session = try await client.openSession(Self.opening)
            #expect(try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4)).leases.isEmpty)
            let explanation = try await client.groupExplanation(of: "g")
            #expect(explanation.waits.map(\.reason) == [.windowClosed])
            let opens = try #require(explanation.waits[0].until)
            #expect(opens.since(explanation.at) > .seconds(3_000) && opens.since(explanation.at) <= .seconds(7_200))
            #expect(explanation.eta.seconds == nil && explanation.eta.earliest == opens)

            _ = try await client.change(group: "g", GroupPatch(limits: GroupLimitsPatch(between: .clear)))
            let served = try await client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, room: 4, waitMilliseconds: 5_000))
            #expect(served.leases.count == 1)
        }
    }

    @Test func aFinishedGroupTakesMoreTasksOnlyWhenItIsReopened() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let made = try await client.createGroup(GroupRequest(name: "g", sealed: true))
            #expect(made.state == .succeeded && made.generation == 1)
            await #expect { try await client.addTasks([Self.task], to: "g") } throws: {
                ($0 as? Problem)?.code == .groupFinished
            }
            #expect(
                try await client.addTasks([Self.task], to: "g", reopen: true) == AddedDocument(added: 1, existing: 0))
            let again = try await client.group("g")
            #expect(again.state == .open && again.generation == 2 && again.finishedAt == nil && again.tasks.queued == 1)

            let bad = try await coordinator.raw("POST", "/v1/groups/g/tasks?reopen=perhaps", body: "[]")
            #expect(bad.status == 400)
            let whole = try await coordinator.raw("POST", "/v1/groups/g/reopen", body: #"{"keys":["a"]}"#)
            #expect(whole.status == 400 && String(decoding: whole.body, as: UTF8.self).contains(#""pointer":"/keys""#))
            _ = try await client.apply(.cancel, to: "g")
            #expect(try await client.reopen(group: "g").generation == 3)
            await #expect { try await client.reopen(group: "nobody") } throws: {
                ($0 as? Problem)?.code == .groupNotFound
            }
        }
    }
}
