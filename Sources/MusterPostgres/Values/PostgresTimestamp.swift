/// A point in time as `timestamptz` keeps it: whole microseconds, without leap seconds.
public struct PostgresTimestamp: Hashable, Comparable, Sendable, PostgresScalar {
    /// Microseconds since 1970-01-01T00:00:00Z.
    public var microsecondsSinceEpoch: Int64

    /// A point in time, in microseconds since the Unix epoch.
    public init(microsecondsSinceEpoch: Int64) {
        self.microsecondsSinceEpoch = microsecondsSinceEpoch
    }

    /// PostgreSQL's `infinity`, later than every other time.
    public static let infinity = PostgresTimestamp(microsecondsSinceEpoch: .max)
    /// PostgreSQL's `-infinity`, earlier than every other time.
    public static let negativeInfinity = PostgresTimestamp(microsecondsSinceEpoch: .min)

    /// From the Unix epoch to 2000-01-01T00:00:00Z, where PostgreSQL counts from.
    private static let postgresEpoch: Int64 = 946_684_800_000_000

    /// Whether `lhs` is earlier than `rhs`.
    public static func < (lhs: PostgresTimestamp, rhs: PostgresTimestamp) -> Bool {
        lhs.microsecondsSinceEpoch < rhs.microsecondsSinceEpoch
    }

    /// `timestamptz`.
    public static var postgresType: PostgresType { .timestamptz }
    /// `timestamptz[]`.
    public static var postgresArrayType: PostgresType { .timestamptzArray }

    /// Writes microseconds since 2000. Times before 4713 BC are refused by the server (22008).
    public func encode(into encoder: inout PostgresEncoder) {
        switch self {
        case .infinity: encoder.write(Int64.max)
        case .negativeInfinity: encoder.write(Int64.min)
        default:
            let (shifted, overflow) = microsecondsSinceEpoch.subtractingReportingOverflow(Self.postgresEpoch)
            // One above the smallest value, which would mean -infinity; the server refuses it as out of range.
            encoder.write(overflow ? Int64.min + 1 : max(shifted, Int64.min + 1))
        }
    }

    /// Reads a `timestamptz`. The years from 294246 on do not fit and throw `outOfRange`.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        guard value.isNull || value.type == .timestamptz else { throw .wrongType(value.type) }
        let sent = try value.integer(Int64.self)
        switch sent {
        case .max: self = .infinity
        case .min: self = .negativeInfinity
        default:
            let (shifted, overflow) = sent.addingReportingOverflow(Self.postgresEpoch)
            guard !overflow, shifted != .max else { throw .outOfRange }
            self.init(microsecondsSinceEpoch: shifted)
        }
    }
}
