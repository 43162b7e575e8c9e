import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Windows in which groups run, or have a rate, in the local time of a zone.
@Suite struct WindowTests {
    @Test(arguments: [-120, -61, -1, 0, 1, 61, 120], [-60, 0, 60])
    func windowIsOpenFromItsBeginningToItsEnd(from: Int, to: Int) async throws {
        try await StoreFixture.run { fixture in
            // The zone differs from the server's in most cases: local time is what counts.
            let zone = ["Asia/Tokyo", "America/St_Johns", "UTC"][abs(from + to) % 3]
            try await fixture.makeGroup("g")
            // The seconds from now until the window opens and closes, half a minute away from either end, so that the clock may
            // advance; the window may close on the next day. Equal times mean always open.
            let opens = from * 60 - 30
            let closes = to * 60 + 30
            try await fixture.setWindow(of: "g", from: .seconds(opens), to: .seconds(closes), zone: zone)
            let group = try await fixture.store.group("g")
            let isOpen = opens < closes ? opens <= 0 && 0 < closes : opens <= 0 || 0 < closes
            #expect(group.isWindowOpen == (isOpen || opens == closes))
            #expect((group.windowOpensAt == nil) == group.isWindowOpen)
            if let at = group.windowOpensAt {
                let away = (at.microseconds - (try await fixture.store.now()).microseconds) / 1_000_000
                let wanted = Int64(opens > 0 ? opens : opens + 86_400)
                #expect(abs(away - wanted) <= 10)
            }
        }
    }

    /// The nights in Berlin in which clocks go forward (at 2:00, to 3:00) and back (at 3:00, to 2:00); moments in UTC.
    @Test(arguments: [
        ("2026-03-28 20:59:59", "22:00", "06:00", false), ("2026-03-28 21:00:00", "22:00", "06:00", true),
        ("2026-03-29 01:00:00", "22:00", "06:00", true), ("2026-03-29 03:59:59", "22:00", "06:00", true),
        ("2026-03-29 04:00:00", "22:00", "06:00", false), ("2026-10-25 03:59:59", "22:00", "05:00", true),
        ("2026-10-25 04:00:00", "22:00", "05:00", false), ("2026-10-25 00:30:00", "02:00", "03:00", true),
        ("2026-10-25 01:30:00", "02:00", "03:00", true), ("2026-03-29 00:59:59", "02:00", "03:00", false),
        ("2026-03-29 01:00:00", "02:00", "03:00", false),
    ])
    func windowsFollowDaylightSavingTime(moment: String, from: String, to: String, isOpen: Bool) async throws {
        try await StoreFixture.run { fixture in
            let found: Bool = try await fixture.value(
                """
                SELECT is_open(\(from)::text::time, \(to)::text::time, 'Europe/Berlin', (\(moment)::text || 'Z')::timestamptz)
                """)
            #expect(found == isOpen)
        }
    }

    /// The window opens at ten in the evening, local time of that day.
    @Test(arguments: [
        ("2026-03-28 12:00:00", "2026-03-28 21:00:00"), ("2026-03-28 21:00:00", "2026-03-29 20:00:00"),
        ("2026-10-24 20:00:00", "2026-10-25 21:00:00"),
    ])
    func nextOpeningIsComputedInThatDaysLocalTime(moment: String, opening: String) async throws {
        try await StoreFixture.run { fixture in
            let found: Bool = try await fixture.value(
                """
                SELECT next_time('22:00', 'Europe/Berlin', (\(moment)::text || 'Z')::timestamptz)
                    = (\(opening)::text || 'Z')::timestamptz
                """)
            #expect(found)
        }
    }

    /// A timetable entry without a zone uses that of the group's window, or UTC.
    @Test(arguments: [
        ("Asia/Tokyo", nil, true), ("Asia/Tokyo", "UTC", false), (nil, "Asia/Tokyo", true), (nil, nil, false),
    ])
    func entriesOfATimetableAreInTheZoneOfTheWindow(window: String?, entry: String?, isMeant: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            try await fixture.limitGroups("g", to: 99)
            // The entry covers now in Tokyo, and is nine hours away from now in UTC.
            let hour = (try await fixture.store.now().microseconds / 3_600_000_000 + 9) % 24
            let zone = entry.map { #", "timeZone": "\#($0)""# } ?? ""
            let hours = #""from": "\#((hour + 23) % 24):00", "to": "\#((hour + 2) % 24):00""#
            try await fixture.setHours(of: "g", timetable: #"[{\#(hours), "bytesPerSecond": 7\#(zone)}]"#, zone: window)
            #expect(try await fixture.store.group("g").bytesPerSecondAllowed == (isMeant ? 7 : 99))
        }
    }
}
