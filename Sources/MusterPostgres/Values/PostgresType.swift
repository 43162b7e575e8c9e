/// The object identifier of a PostgreSQL type, as the wire names it.
///
/// Only built-in types are listed here: their identifiers are fixed by PostgreSQL's catalog and never change, while those of
/// enums and extensions differ from database to database (cast such columns to `text` in the statement).
public struct PostgresType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The OID, as in `pg_type.oid`.
    public let rawValue: UInt32

    /// Names a type by its OID.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// `boolean`.
    public static let bool = PostgresType(rawValue: 16)
    /// `bytea`.
    public static let bytea = PostgresType(rawValue: 17)
    /// `name`, the type of identifiers in the catalog.
    public static let name = PostgresType(rawValue: 19)
    /// `bigint`.
    public static let int8 = PostgresType(rawValue: 20)
    /// `smallint`.
    public static let int2 = PostgresType(rawValue: 21)
    /// `integer`.
    public static let int4 = PostgresType(rawValue: 23)
    /// `text`.
    public static let text = PostgresType(rawValue: 25)
    /// `json`, kept as it was written.
    public static let json = PostgresType(rawValue: 114)
    /// `real`.
    public static let float4 = PostgresType(rawValue: 700)
    /// `double precision`.
    public static let float8 = PostgresType(rawValue: 701)
    /// The type of a bare string literal in a result.
    public static let unknown = PostgresType(rawValue: 705)
    /// `character(n)`.
    public static let bpchar = PostgresType(rawValue: 1042)
    /// `character varying`.
    public static let varchar = PostgresType(rawValue: 1043)
    /// `timestamp with time zone`.
    public static let timestamptz = PostgresType(rawValue: 1184)
    /// `interval`.
    public static let interval = PostgresType(rawValue: 1186)
    /// `numeric`: what `sum(bigint)` and `avg` give.
    public static let numeric = PostgresType(rawValue: 1700)
    /// `jsonb`.
    public static let jsonb = PostgresType(rawValue: 3802)

    static let boolArray = PostgresType(rawValue: 1000)
    static let byteaArray = PostgresType(rawValue: 1001)
    static let int2Array = PostgresType(rawValue: 1005)
    static let int4Array = PostgresType(rawValue: 1007)
    static let textArray = PostgresType(rawValue: 1009)
    static let int8Array = PostgresType(rawValue: 1016)
    static let float8Array = PostgresType(rawValue: 1022)
    static let timestamptzArray = PostgresType(rawValue: 1185)
    static let intervalArray = PostgresType(rawValue: 1187)
    static let jsonbArray = PostgresType(rawValue: 3807)

    /// The SQL name of a type known here, otherwise its OID.
    public var description: String {
        switch self {
        case .bool: "boolean"
        case .bytea: "bytea"
        case .name: "name"
        case .int8: "bigint"
        case .int2: "smallint"
        case .int4: "integer"
        case .text: "text"
        case .json: "json"
        case .float4: "real"
        case .float8: "double precision"
        case .unknown: "unknown"
        case .bpchar: "character"
        case .varchar: "character varying"
        case .timestamptz: "timestamptz"
        case .interval: "interval"
        case .numeric: "numeric"
        case .jsonb: "jsonb"
        case .boolArray: "boolean[]"
        case .byteaArray: "bytea[]"
        case .int2Array: "smallint[]"
        case .int4Array: "integer[]"
        case .textArray: "text[]"
        case .int8Array: "bigint[]"
        case .float8Array: "double precision[]"
        case .timestamptzArray: "timestamptz[]"
        case .intervalArray: "interval[]"
        case .jsonbArray: "jsonb[]"
        default: "type \(rawValue)"
        }
    }
}
