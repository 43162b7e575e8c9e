/// The notation of durations on the command line and in configuration: `500ms`, `30s`, `10m`, `2h`, `7d`.
public enum DurationNotation {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Parses a duration; `nil` for anything else than a decimal number with one of the five units.
    public static func parse(_ text: String) -> Duration? {
        for unit in units where text.hasSuffix(unit.suffix) {
            let number = text.dropLast(unit.suffix.count)
            guard let milliseconds = DecimalNotation.scaled(number, by: unit.milliseconds) else { continue }
            return .milliseconds(milliseconds)
        }
        return nil
    }

    /// A duration as people read it: `4s`, `3m 20s`, `2h 5m`, `3d 4h`.
    public static func format(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        switch seconds {
        case ..<60: return "\(seconds)s"
        case ..<3_600: return "\(seconds / 60)m \(seconds % 60)s"
        case ..<86_400: return "\(seconds / 3_600)h \(seconds % 3_600 / 60)m"
        default: return "\(seconds / 86_400)d \(seconds % 86_400 / 3_600)h"
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded down.
    public var milliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }

    /// The duration in seconds, for rates and for arithmetic with random factors.
    public var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
