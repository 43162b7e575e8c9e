import MusterCore
import Testing

struct ByteCountTests {
    @Test(
        arguments: [
            ("0", 0), ("123", 123), ("123B", 123), ("64KiB", 65_536), ("8MiB", 8_388_608), ("1GiB", 1_073_741_824),
            ("2TiB", 2_199_023_255_552), ("1.5GiB", 1_610_612_736), ("0.5KiB", 512), ("1.9B", 1),
            ("0.999999999KiB", 1_023),
            ("007KiB", 7_168), ("9223372036854775807", Int64.max), ("8388607TiB", 8_388_607 << 40),
            ("0.000000001TiB", 1_099), ("2M", 2 << 20), ("2m", 2 << 20), ("1k", 1_024), ("1.5G", 3 << 29),
            ("1T", 1 << 40),
            ("20MB", 20_000_000), ("1kB", 1_000), ("1KB", 1_000), ("1.5GB", 1_500_000_000), ("2TB", 2_000_000_000_000),
        ] as [(String, Int64)]
    )
    func sizesAreRead(text: String, bytes: Int64) {
        #expect(ByteCount(text)?.bytes == bytes)
    }

    @Test(
        arguments: [
            "", " ", "B", "KiB", "-1", "-1KiB", "+1", "1 KiB", " 1KiB", "1KiB ", "1Kb", "1kib", "1mb", "1P", "M", "1MM",
            "1M/s", "1.KiB", ".5KiB",
            "1.2.3KiB", "1,5KiB", "1e3", "0x10", "1.0000000001KiB", "٣KiB", "NaN", "inf",
            "9223372036854775808", "8388608TiB", "8388607.9999999999TiB", "9007199254740992KiB",
            "99999999999999999999999999",
        ])
    func whatIsNoSizeOrOverflowsIsRefused(text: String) {
        #expect(ByteCount(text) == nil)
    }

    @Test func negativeCountIsZero() {
        #expect(ByteCount(bytes: -1).bytes == 0)
    }

    @Test(
        arguments: [
            (0, "0 B"), (1, "1 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"),
            (1_044_480, "1020.0 KiB"), (1_048_524, "1023.9 KiB"), (1_048_525, "1.0 MiB"), (1_048_575, "1.0 MiB"),
            (2_104_533_975, "2.0 GiB"), (2_093_796_556, "1.9 GiB"), (2_093_796_557, "2.0 GiB"),
            (1_048_576, "1.0 MiB"), (1_610_612_736, "1.5 GiB"), (1 << 40, "1.0 TiB"), (Int64.max, "8388608.0 TiB"),
        ] as [(Int64, String)]
    )
    func sizesAreShownInTheLargestUnit(bytes: Int64, text: String) {
        #expect(ByteCount(bytes: bytes).description == text)
    }

    @Test func sizesAreOrdered() {
        #expect(ByteCount.kibibytes(1_024) == .mebibytes(1))
        #expect(ByteCount.kibibytes(1) < .mebibytes(1))
    }
}

struct DurationNotationTests {
    @Test(
        arguments: [
            ("0s", 0), ("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000), ("7d", 604_800_000),
            ("1.5s", 1_500), ("0.5ms", 0), ("0.25h", 900_000), ("9223372036854775807ms", Int64.max),
        ] as [(String, Int64)]
    )
    func durationsAreRead(text: String, milliseconds: Int64) {
        #expect(DurationNotation.parse(text) == .milliseconds(milliseconds))
        #expect(DurationNotation.parse(text)?.milliseconds == milliseconds)
    }

    @Test(
        arguments: [
            "", "s", "ms", "5", "-5s", "+5s", "5 s", " 5s", "5S", "5sec", "1h30m", "1.s", ".5s", "1:30", "∞s",
            "9223372036854775808ms", "9223372036854776s", "106751991168d", "99999999999999999999d",
        ])
    func whatIsNoDurationOrOverflowsIsRefused(text: String) {
        #expect(DurationNotation.parse(text) == nil)
    }

    @Test(
        arguments: [
            (.zero, "0s"), (.milliseconds(999), "0s"), (.seconds(-5), "0s"), (.seconds(59), "59s"),
            (.seconds(60), "1m 0s"),
            (.seconds(200), "3m 20s"), (.seconds(3_599), "59m 59s"), (.seconds(7_500), "2h 5m"),
            (.seconds(86_399), "23h 59m"), (.seconds(273_600), "3d 4h"),
        ] as [(Duration, String)]
    )
    func durationsAreShownInTwoUnits(duration: Duration, text: String) {
        #expect(DurationNotation.format(duration) == text)
    }

    @Test(
        arguments: [
            (.microseconds(1_999), 1, 0.001_999), (.milliseconds(-5), -5, -0.005), (.seconds(2), 2_000, 2),
        ] as [(Duration, Int64, Double)]
    )
    func durationsConvert(duration: Duration, milliseconds: Int64, seconds: Double) {
        #expect(duration.milliseconds == milliseconds)
        #expect(abs(duration.seconds - seconds) < 1e-12)
    }
}
