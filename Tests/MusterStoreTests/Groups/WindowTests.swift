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
            // Half a minute away from either end, so that the clock may advance.
            try await fixture.run(
                """
                UPDATE groups SET window_zone = \(zone),
                    window_from = (statement_timestamp() AT TIME ZONE \(zone))::time + \(from * 60 - 30)::integer * interval '1 s',
                    window_to = (statement_timestamp() AT TIME ZONE \(zone))::time + \(to * 60 + 30)::integer * interval '1 s'
                """)
            let group = try await fixture.store.group("g")
            // The seconds from now until the window opens and closes; it may close on the next day. Equal times mean always open.
            let opens = from * 60 - 30
            let closes = to * 60 + 30
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
            // The entry covers now in Tokyo, and is nine hours away from now in UTC.
            try await fixture.run(
                """
                UPDATE groups SET bytes_per_second = 99, window_zone = \(window), window_from = CASE WHEN \(window)::text IS NOT NULL THEN time '00:00' END,
                    window_to = CASE WHEN \(window)::text IS NOT NULL THEN time '00:00' END,
                    timetable = jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('bytesPerSecond', 7, 'timeZone', \(entry)::text,
                        'from', to_char((statement_timestamp() AT TIME ZONE 'Asia/Tokyo') - interval '1 h', 'HH24:MI'),
                        'to', to_char((statement_timestamp() AT TIME ZONE 'Asia/Tokyo') + interval '1 h', 'HH24:MI'))))
                """)
            let rate: Int64 = try await fixture.value("SELECT group_rate(g) FROM groups g")
            #expect(rate == (isMeant ? 7 : 99))
        }
    }
}
