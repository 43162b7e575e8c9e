import Testing

/// Everything with real processes, one test after the other: each of them keeps the machine busy by itself.
@Suite(.serialized) enum EndToEnd {}

extension Int64 {
    /// KiB in bytes.
    static func kibibytes(_ count: Int64) -> Int64 { count << 10 }
    /// MiB in bytes.
    static func mebibytes(_ count: Int64) -> Int64 { count << 20 }
}
