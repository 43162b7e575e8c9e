import MusterPostgres
import Testing

@Suite struct CodecTests {
    let connection: PostgresConnection

    init() async throws {
        connection = try await PostgresConnection.open(try TestCluster.shared().configuration())
    }

    private func roundTrip<T: PostgresEncodable & PostgresDecodable & Equatable>(_ value: T) async throws -> T {
        let rows = try await connection.query("SELECT \(value) AS value")
        return try #require(rows.first).decode("value")
    }

    private func check<T: PostgresEncodable & PostgresDecodable & Equatable>(_ values: [T]) async throws {
        for value in values {
            #expect(try await roundTrip(value) == value)
        }
    }

    /// The text that the server makes of a bound value.
    private func text(_ value: some PostgresEncodable) async throws -> String {
        let rows = try await connection.query("SELECT \(value)::text AS value")
        return try #require(rows.first).decode("value")
    }

    @Test func scalarsComeBackAsTheyWent() async throws {
        try await check([true, false])
        try await check([Int16.min, 0, .max])
        try await check([Int32.min, -1, .max])
        try await check([Int64.min, 0, .max])
        try await check([Int.min, 1, .max])
        try await check([0.1, -0.0, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude])
        #expect(try await roundTrip(Double.nan).isNaN)
        try await check(["", "a", "ü漢🎈", "'; DROP TABLE x; --", "\\", String(repeating: "x", count: 1_000_000)])
        try await check([[UInt8](), [0], Array(0...255)])
        try await check([Duration.zero, .microseconds(-1), .seconds(1_000_000_000)])
    }

    @Test func textsOfAClosedSetComeBackAndOthersAreNamedInTheRefusal() async throws {
        try await check([Tide.low, .high])
        try await check([[Tide](), [.high, .low]])
        try await check([UInt32.min, .max])
        let row = try #require(
            try await connection.query("SELECT 'spring' AS tide, ARRAY['low', 'neap'] AS tides").first)
        #expect(throws: decoding("tide", "Tide", .unknownText("spring"))) { try row.decode("tide", as: Tide.self) }
        #expect(throws: decoding("tides", "Array<Tide>", .unknownText("neap"))) {
            try row.decode("tides", as: [Tide].self)
        }
    }

    @Test func optionalsComeBackAsTheyWent() async throws {
        try await check([Int64?.none, 5])
        try await check([String?.none, "", "x"])
        try await check([[UInt8]?.none, [], [1]])
        try await check([[Int64]?.none, [], [1]])
        try await check([PostgresJSON?.none])
        try await check([Bool?.none, true])
    }

    @Test func arraysComeBackAsTheyWent() async throws {
        try await check([[Int64](), [1], [.min, .max, 0]])
        try await check([[Int64?](), [nil], [1, nil, .max]])
        try await check([[String](), ["", "a,b", "{\"}", "NULL"]])
        try await check([[String?](), [nil, "NULL", ""]])
        try await check([[Bool](), [true, false]])
        try await check([[Bool?](), [nil, false]])
        try await check([[Double](), [0.5, -.infinity]])
        try await check([[Double?](), [nil, 0.5]])
        try await check([[Int32](), [.min, .max]])
        try await check([[Int32?](), [nil, 1]])
        try await check([[Int16](), [.min, .max]])
        try await check([[Int](), [.min, .max]])
        try await check([[PostgresTimestamp?](), [nil, PostgresTimestamp(microsecondsSinceEpoch: 1)]])
        try await check([[Duration](), [.seconds(1)]])
        try await check([[PostgresJSON?](), [nil, PostgresJSON("{\"a\": 1}"), PostgresJSON("null")]])
        try await check([Array(0..<100_000) as [Int64]])
    }

    @Test func serverUnderstandsWhatWasBound() async throws {
        #expect(try await text(true) == "true")
        #expect(try await text(Int16(-2)) == "-2")
        #expect(try await text(Int32.max) == "2147483647")
        #expect(try await text(Int64.min) == "-9223372036854775808")
        #expect(try await text(0.25) == "0.25")
        #expect(try await text([0xDE, 0xAD] as [UInt8]) == "\\xdead")
        #expect(try await text([1, nil, 3] as [Int64?]) == "{1,NULL,3}")
        #expect(try await text(["a b", nil] as [String?]) == "{\"a b\",NULL}")
        #expect(try await text(PostgresJSON("{\"b\":[1,2]}")) == "{\"b\": [1, 2]}")
        #expect(try await text(Duration.milliseconds(90_061_001)) == "25:01:01.001")
    }

    @Test func timestampsKeepTheirMicroseconds() async throws {
        let values: [Int64] = [
            0, 1, -1, 946_684_800_000_000, 1_700_000_000_123_456, -62_135_596_800_000_000,
            // The last microsecond that fits both sides.
            Int64.max - 1,
        ]
        try await check(values.map { PostgresTimestamp(microsecondsSinceEpoch: $0) })
        try await check([PostgresTimestamp.infinity, .negativeInfinity])
        try await connection.query("SET TIME ZONE 'Asia/Kathmandu'")
        let rows = try await connection.query(
            """
            SELECT (extract(epoch FROM \(PostgresTimestamp(microsecondsSinceEpoch: 1_700_000_000_123_456)))
                * 1000000)::bigint AS value
            """
        )
        #expect(try #require(rows.first).decode("value", as: Int64.self) == 1_700_000_000_123_456)
    }

    @Test func timestampBeyondPostgresIsRefusedByTheServer() async throws {
        let error = await failure {
            try await connection.query("SELECT \(PostgresTimestamp(microsecondsSinceEpoch: .min + 1))::text")
        }
        #expect((error as? PostgresError)?.sqlState == .other("22008"))
    }

    @Test func timestampBeyondInt64IsOutOfRange() async throws {
        let rows = try await connection.query("SELECT '294276-12-31 23:59:59Z'::timestamptz AS late")
        #expect(throws: decoding("late", "PostgresTimestamp", .outOfRange)) {
            try rows.first?.decode("late", as: PostgresTimestamp.self)
        }
    }

    @Test func integersWidenAndNarrowOnlyWhenTheyFit() async throws {
        let row = try #require(
            try await connection.query("SELECT 7::int2 AS a, 8::int4 AS b, 9::int8 AS c, 3000000000 AS d").first
        )
        #expect(try row.decode("a", as: Int64.self) == 7)
        #expect(try row.decode("b", as: Int.self) == 8)
        #expect(try row.decode("c", as: Int16.self) == 9)
        #expect(throws: decoding("d", "Int32", .outOfRange)) { try row.decode("d", as: Int32.self) }
    }

    @Test func textLikeTypesAreStrings() async throws {
        let row = try #require(
            try await connection.query(
                "SELECT 'a'::varchar AS a, 'b'::name AS b, 'c' AS c, 'd'::char(1) AS d, 1.5::float4 AS e"
            ).first
        )
        #expect(try row.decode("a", as: String.self) == "a")
        #expect(try row.decode("b", as: String.self) == "b")
        #expect(try row.decode("c", as: String.self) == "c")
        #expect(try row.decode("d", as: String.self) == "d")
        #expect(try row.decode("e", as: Double.self) == 1.5)
    }

    @Test func sumIsNumericAndTheErrorNamesTheColumn() async throws {
        let rows = try await connection.query("SELECT sum(n) AS total FROM unnest(\([1, 2] as [Int64])) n")
        let row = try #require(rows.first)
        #expect(throws: decoding("total", "Int64", .wrongType(.numeric))) { try row.decode("total", as: Int64.self) }
        #expect(throws: decoding("total", "String", .wrongType(.numeric))) { try row.decode("total", as: String.self) }
    }

    @Test func nullAndUnknownColumnsAreNamedInErrors() async throws {
        let row = try #require(try await connection.query("SELECT NULL::bigint AS gone").first)
        #expect(throws: decoding("gone", "Int64", .unexpectedNull)) { try row.decode("gone", as: Int64.self) }
        #expect(throws: decoding("other", "Int64", .noSuchColumn)) { try row.decode("other", as: Int64.self) }
        #expect(throws: decoding("7", "Int64", .noSuchColumn)) { try row.decode(at: 7, as: Int64.self) }
        #expect(try row.decode(at: 0, as: Int64?.self) == nil)
    }

    @Test func nullElementIsRefusedWhereNoneMayBe() async throws {
        let rows = try await connection.query("SELECT ARRAY[1, NULL]::bigint[] AS list")
        #expect(throws: decoding("list", "Array<Int64>", .unexpectedNull)) {
            try rows.first?.decode("list", as: [Int64].self)
        }
    }

    @Test func matrixIsNotAnArray() async throws {
        let rows = try await connection.query("SELECT ARRAY[[1,2],[3,4]]::bigint[] AS matrix")
        #expect(throws: PostgresError.self) { try rows.first?.decode("matrix", as: [Int64].self) }
    }

    @Test func unnestTakesWholeColumns() async throws {
        let rows = try await connection.query(
            """
            SELECT id, name, note FROM unnest(\([1, 2] as [Int64])::bigint[], \(["a", "b"])::text[],
                \([nil, PostgresJSON("[]")] as [PostgresJSON?])::jsonb[]) AS given(id, name, note) ORDER BY id
            """
        )
        #expect(rows.count == 2)
        #expect(try rows.map { try $0.decode("id", as: Int64.self) } == [1, 2])
        #expect(try rows.map { try $0.decode("name", as: String.self) } == ["a", "b"])
        #expect(try rows.map { try $0.decode("note", as: PostgresJSON?.self) } == [nil, PostgresJSON("[]")])
    }

    @Test func idTypesTravelAsTheirRawValues() async throws {
        struct TaskID: RawRepresentable, Hashable, PostgresScalar { var rawValue: Int64 }
        enum Mood: String, PostgresScalar { case good, bad }
        try await check([TaskID(rawValue: 5)])
        try await check([[TaskID(rawValue: 5), TaskID(rawValue: 6)]])
        try await check([[TaskID(rawValue: 5), nil]])
        try await check([Mood.good])
        let rows = try await connection.query("SELECT 'neither' AS mood")
        #expect(throws: decoding("mood", "Mood", .outOfRange)) { try rows.first?.decode("mood", as: Mood.self) }
    }

    @Test func rowsOutliveTheirConnection() async throws {
        let other = try await PostgresConnection.open(try TestCluster.shared().configuration())
        let rows = try await other.query("SELECT n, 'text ' || n AS name FROM generate_series(1, 1000) n")
        await other.close()
        let names = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try rows.filter { try $0.decode("name") == "text \(try $0.decode("n", as: Int.self))" }.count
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(names == 4_000)
    }

    private func decoding(
        _ column: String,
        _ type: String,
        _ problem: PostgresDecodingProblem
    ) -> PostgresError {
        .decoding(.init(column: column, requested: type, problem: problem))
    }
}

/// A closed set of texts.
private enum Tide: String, PostgresText {
    case low, high
}
