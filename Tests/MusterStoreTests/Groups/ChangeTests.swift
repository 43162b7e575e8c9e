import MusterCore
import MusterStore
import Testing

/// Changes of group settings, and when groups may run.
@Suite struct ChangeTests {
    private static let night = TimeWindow(from: "22:00", to: "06:30", timeZone: "Europe/Berlin")

    @Test func everySettingIsKeptSetAndCleared() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            let rates = #"[{"from": "08:00", "to": "08:00", "bytesPerSecond": 500}]"#
            let set = try await fixture.store.change(
                "g",
                GroupChange(
                    priority: 7, weight: 3, maxConnections: .set(4), bytesPerSecond: .set(1000),
                    window: .set(Self.night), timetable: .set(rates), deadline: .set(.seconds(7200)),
                    deadlineAction: .continue))
            for group in [set, try await fixture.store.change("g", GroupChange())] {
                #expect(group.priority == 7 && group.weight == 3 && group.maxConnections == 4)
                #expect(group.bytesPerSecondLimit == 1000 && group.window == Self.night && group.timetable != nil)
                // A timetable entry that always applies takes precedence over the limit.
                #expect(group.bytesPerSecondAllowed == 500)
                #expect(group.deadlineAt == set.deadlineAt && group.deadlineAction == .continue)
            }
            let cleared = try await fixture.store.change(
                "g",
                GroupChange(
                    maxConnections: .clear, bytesPerSecond: .clear, window: .clear, timetable: .clear, deadline: .clear,
                    deadlineAction: .fail))
            #expect(cleared.maxConnections == nil && cleared.bytesPerSecondLimit == nil && cleared.window == nil)
            #expect(cleared.timetable == nil && cleared.deadlineAt == nil && cleared.deadlineAction == .fail)
            #expect(cleared.bytesPerSecondAllowed == nil && cleared.isWindowOpen && cleared.windowOpensAt == nil)
            #expect(cleared.priority == 7 && cleared.weight == 3)
        }
    }

    @Test func shownSpeedFollowsALimitAtOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            try await fixture.age(.groupCreation, by: .seconds(3_600))
            try await fixture.set("groups", "rate_bytes", to: 4e9)
            #expect(try await fixture.store.group("g").bytesPerSecond > 100_000_000)
            let limited = try await fixture.store.change("g", GroupChange(bytesPerSecond: .set(1_000_000)))
            #expect((1...1_000_000).contains(limited.bytesPerSecond), "\(limited.bytesPerSecond)")
            // Bytes that came before a limit are reported after it: the shown speed of the group and of its file stays below the limit.
            _ = try await fixture.store.change("g", GroupChange(bytesPerSecond: .set(5)))
            _ = try await fixture.add([Wanted("t", size: 90)], to: "g")
            var worker = try await fixture.makeWorker()
            try await worker.progress(try #require(try await worker.claim().first), to: 90)
            try await fixture.stopClocks()
            #expect(try await fixture.store.group("g").bytesPerSecond == 5)
            #expect(try await fixture.store.task("t", of: "g").bytesPerSecond == 5)
            let freed = try await fixture.store.change("g", GroupChange(bytesPerSecond: .clear))
            #expect(freed.bytesPerSecond > 0)
        }
    }

    @Test func speedIsResetByAPause() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            try await worker.progress(try #require(try await worker.claim().first), to: 50)
            try await fixture.stopClocks()
            #expect(try await fixture.store.group("g").bytesPerSecond > 0)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            #expect(try await fixture.store.apply(.resume, to: "g", keys: nil).bytesPerSecond == 0)
            _ = try await worker.claim()
            #expect(try await fixture.store.task("t", of: "g").bytesPerSecond == 0)
        }
    }

    /// During an outage a try has a lease for a moment, and nothing comes under it.
    @Test func speedFromBeforeAnOutageDoesNotComeBackWithTheNextTry() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.progress(first, to: 50)
            try await worker.fail(first, .network, at: 50)
            try await fixture.age(.groupBytes, by: .seconds(2))
            try await fixture.passBackoffs()
            let second = try #require(try await worker.claim().first)
            let group = try await fixture.store.group("g")
            #expect(group.tasks[.active] == 1 && group.bytesPerSecond == 0)
            try await worker.progress(second, to: 60)
            #expect(try await fixture.store.group("g").bytesPerSecond > 0)
        }
    }

    /// A file's speed is that of the last seconds, like those of groups and origins, however long it has been fetched.
    @Test func speedOfAFileIsThatOfTheLastSeconds() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.progress(lease, to: 50)
            // An hour of fast progress, and then only a little.
            try await fixture.age(.grant, by: .seconds(3_600))
            try await fixture.age(.progress, by: .seconds(60))
            #expect(try await fixture.store.task("t", of: "g").bytesPerSecond == 0)
            try await worker.progress(lease, to: 90)
            try await fixture.stopClocks()
            #expect(try await fixture.store.task("t", of: "g").bytesPerSecond == 10)
        }
    }

    @Test func unknownTimeZonesAreRefusedWithTheirPointer() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            let window = TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Atlantis")
            await #expect(throws: Store.Refusal.unknownTimeZone("Europe/Atlantis", pointer: "/limits/between/timeZone"))
            {
                try await fixture.store.change("g", GroupChange(priority: 3, window: .set(window)))
            }
            let rates = """
                [{"from": "08:00", "to": "09:00", "timeZone": "Asia/Tokyo", "bytesPerSecond": 1},
                 {"from": "09:00", "to": "10:00", "timeZone": "Nowhere", "bytesPerSecond": 1}]
                """
            await #expect(throws: Store.Refusal.unknownTimeZone("Nowhere", pointer: "/limits/timetable/1/timeZone")) {
                try await fixture.store.change("g", GroupChange(priority: 3, timetable: .set(rates)))
            }
            #expect(try await fixture.store.group("g").priority == 0)
        }
    }

    @Test func closedWindowRecallsLeasesAndKeepsTheirBytes() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 250), Wanted("file", size: 50)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            let lease = try #require(leases.first { $0.path == "t" })
            let file = try #require(leases.first { $0.path == "file" })
            try await worker.learn(lease, size: 250)
            try await worker.progress(lease, to: 60)
            try await worker.learn(file, size: 50)
            try await worker.done(file)
            try await fixture.setWindow(of: "g", isOpen: true)
            #expect(try await fixture.store.sweepGroups().recalled == 0)
            try await fixture.setWindow(of: "g", isOpen: false)
            #expect(try await fixture.store.sweepGroups().recalled == 1)
            #expect(try await fixture.store.sweepGroups().recalled == 0)
            try await fixture.check()
            #expect(try await worker.progress(lease, to: 80) == false)
            // A file that is complete is put in place, and nothing is fetched.
            let granted = try await worker.claim(9)
            #expect(granted.map(\.kind) == [.finalize])
            try await fixture.setWindow(of: "g", isOpen: true)
            let again = try await worker.claim(9)
            #expect(again.map(\.resume.offset).sorted() == [60, 100, 200] && again.allSatisfy(\.isFenced))
            #expect(try await fixture.leases().allSatisfy { $0.attempts == 0 && $0.deaths == 0 })
            try await fixture.check()
        }
    }
}
