import MusterPostgres
import Testing

@Suite struct SQLTests {
    @Test func interpolatedValuesBecomeBinds() {
        let name = "x"
        let sql: SQL = "SELECT \(1) + \(2.5), \(name)"
        #expect(sql.text == "SELECT $1 + $2, $3")
        #expect(sql.bindCount == 3)
    }

    @Test func concatenationNumbersBindsAnew() {
        let condition: SQL = "id = \(1) AND name = \("a")"
        var sql: SQL = "SELECT \(true) WHERE \(condition)"
        sql += " LIMIT \(5)"
        #expect((sql + " OFFSET \(6)").text == "SELECT $1 WHERE id = $2 AND name = $3 LIMIT $4 OFFSET $5")
    }

    @Test func identifiersAreQuoted() {
        let sql: SQL = "SELECT \(identifier: "a\"b") FROM \(identifier: "x; DROP")"
        #expect(sql.text == "SELECT \"a\"\"b\" FROM \"x; DROP\"")
        #expect(("\(identifier: "a\0b")" as SQL).text == "\"ab\"")
    }

    @Test func descriptionHidesBoundValues() {
        let secret = "hunter2"
        let sql: SQL = "SELECT \(secret)"
        #expect(!"\(sql)".contains(secret))
    }

    @Test func bindsAreNeverSQL() async throws {
        let connection = try await PostgresConnection.open(try await TestCluster.shared().schema())
        try await connection.query("CREATE TABLE victims (name text)")
        let attack = "x'); DROP TABLE victims; --"
        #expect(try await connection.execute("INSERT INTO victims VALUES (\(attack))") == 1)
        let rows = try await connection.query("SELECT name FROM victims WHERE name = \(attack)")
        #expect(try rows.first?.decode("name", as: String.self) == attack)
        let identified = await failure { try await connection.query("SELECT 1 FROM \(identifier: "victims; DROP")") }
        #expect((identified as? PostgresError)?.sqlState == .undefinedTable)
    }

    @Test func concatenatedBindsReachTheServerInOrder() async throws {
        let connection = try await PostgresConnection.open(try TestCluster.shared().configuration())
        let nothing: Int64? = nil
        var sql: SQL = "SELECT \("")::text AS a, \(nothing) AS b"
        sql += ", \("z") AS c"
        let row = try #require(try await connection.query(sql + ", \([1, nil] as [Int32?]) AS d").first)
        #expect(try row.decode("a", as: String.self) == "")
        #expect(try row.decode("b", as: Int64?.self) == nil)
        #expect(try row.decode("c", as: String.self) == "z")
        #expect(try row.decode("d", as: [Int32?].self) == [1, nil])
    }

    @Test func tooManyBindsAreRefusedBeforeSending() async throws {
        let connection = try await PostgresConnection.open(try TestCluster.shared().configuration())
        var sql: SQL = "SELECT \(0)"
        for number in 0..<65_535 {
            sql += ", \(number)"
        }
        let error = await failure { try await connection.query(sql) }
        #expect(error as? PostgresError == .misuse(.tooManyBinds))
        #expect(try await connection.query("SELECT 1").count == 1)
    }
}
