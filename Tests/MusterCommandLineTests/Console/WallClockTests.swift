import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Moments as users read them")
struct WallClockTests {
    @Test func aMomentIsShownByTheLocalClockToTheSecondWithItsDistance() {
        #expect(Samples.clock.text(Samples.moment) == "2026-03-01 13:00:00 (15s ago)")
        #expect(Samples.clock.text(Samples.clock.now) == "2026-03-01 13:00:15 (now)")
        let later = Timestamp(microseconds: Samples.clock.now.microseconds + 7_500_999_000)
        #expect(Samples.clock.text(later) == "2026-03-01 15:05:15 (in 2h 5m)")
        let west = WallClock(now: Samples.moment) { _ in -13 * 3_600 }
        #expect(west.text(Samples.moment) == "2026-02-28 23:00:00 (now)")
    }

    @Test func everyMomentOfASentenceIsConvertedAndNothingElseIsChanged() {
        let said = "the origin https://a.example:443 is paused until \(Samples.moment), and b until \(Samples.moment)"
        #expect(
            Samples.clock.sentence(said)
                == "the origin https://a.example:443 is paused until 2026-03-01 13:00:00 (15s ago), "
                + "and b until 2026-03-01 13:00:00 (15s ago)")
        for other in ["a 2026-03-01.iso", "2026-03-01T12:00:00Z", "2026-99-99T12:00:00.000Z", ""] {
            #expect(Samples.clock.sentence(other) == other)
        }
    }

    /// The hours of a group are in the group's zone, which may differ from the local one.
    @Test(
        arguments: [
            (3_600, "13:00:00 UTC+01:00"), (0, "12:00:00 UTC"), (-12_600, "08:30:00 UTC-03:30"),
        ] as [(Int64, String)])
    func aMomentBesideHoursNamesItsZone(east: Int64, text: String) {
        let clock = WallClock(now: Samples.clock.now) { _ in east }
        let hours = "it runs only from 22:00 to 6:00 (Europe/Berlin); it goes on at"
        #expect(clock.sentence("\(hours) \(Samples.moment)") == "\(hours) 2026-03-01 \(text) (15s ago)")
        #expect(!clock.sentence("it goes on at \(Samples.moment)").contains("UTC"))
    }

    /// A line in which only the distance to a moment has changed is no news.
    @Test func progressIsNotRepeatedJustBecauseTimeHasPassed() {
        var progress = PlainProgress()
        let snapshot = ProgressSnapshot(
            group: Samples.group(notes: ["the origin a is paused until \(Samples.moment)"]))
        let now = ContinuousClock.now
        let line = progress.line(snapshot, now: now)
        #expect(line?.contains(" ago)") == true && line?.contains(".000Z") == false)
        #expect(progress.line(snapshot, now: now + .seconds(600)) == nil)
    }
}
