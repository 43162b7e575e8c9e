import MusterPostgres
import Testing

@Suite struct CopyTests {
    let connection: PostgresConnection

    init() async throws {
        connection = try await PostgresConnection.open(try await TestCluster.shared().schema())
        try await connection.query("CREATE TABLE rows (id bigint PRIMARY KEY, name text, size int)")
    }

    private func count() async throws -> Int {
        try await connection.query("SELECT count(*) AS count FROM rows").first?.decode("count") ?? -1
    }

    @Test func hundredThousandRowsInBinary() async throws {
        let copied = try await connection.copyIn(into: "rows", columns: ["id", "name", "size"]) { writer in
            for id in Int64(0)..<100_000 {
                try await writer.write(id, id % 7 == 0 ? nil : "name \(id)", Int32(7))
            }
        }
        #expect(copied == 100_000)
        let row = try #require(
            try await connection.query(
                "SELECT count(*) AS count, count(name) AS named, sum(id)::bigint AS sum, max(name) AS last FROM rows"
            ).first
        )
        #expect(try row.decode("count", as: Int.self) == 100_000)
        #expect(try row.decode("named", as: Int.self) == 85_714)
        #expect(try row.decode("sum", as: Int.self) == 4_999_950_000)
        #expect(try row.decode("last", as: String.self) == "name 99999")
    }

    @Test func textPiecesNeedNotEndWithARow() async throws {
        let pieces = AsyncStream<[UInt8]> { continuation in
            for byte in "1\ta\\tb\t\\N\n2\t\\N\t5\n".utf8 {
                continuation.yield([byte])
            }
            continuation.finish()
        }
        let columns = ["id", "name", "size"]
        #expect(try await connection.copyIn(into: "rows", columns: columns, format: .text, rows: pieces) == 2)
        let rows = try await connection.query("SELECT name, size FROM rows ORDER BY id")
        #expect(try rows.map { try $0.decode("name", as: String?.self) } == ["a\tb", nil])
        #expect(try rows.map { try $0.decode("size", as: Int?.self) } == [nil, 5])
    }

    @Test func rowsAreThrownAwayWhenTheWriterFails() async throws {
        struct Enough: Error {}
        let error = await failure {
            try await connection.copyIn(into: "rows", columns: ["id"]) { writer in
                for id in Int64(0)..<50_000 {
                    try await writer.write(id)
                }
                throw Enough()
            }
        }
        #expect(error is Enough)
        #expect(try await count() == 0)
    }

    @Test func violationInACopyIsAServerErrorAndTheConnectionStays() async throws {
        let error =
            await failure {
                try await connection.copyIn(into: "rows", columns: ["id"]) { writer in
                    for id in Int64(0)..<100_000 {
                        try await writer.write(id % 10)
                    }
                }
            } as? PostgresError
        #expect(error?.sqlState == .uniqueViolation)
        #expect(error?.constraint == "rows_pkey")
        #expect(try await count() == 0)
    }

    @Test func copyWithinATransactionIsRolledBackWithIt() async throws {
        struct Enough: Error {}
        _ = await failure {
            try await connection.withTransaction { connection in
                #expect(
                    try await connection.copyIn(into: "rows", columns: ["id"]) { try await $0.write(Int64(1)) } == 1
                )
                #expect(try await count() == 1)
                throw Enough()
            }
        }
        #expect(try await count() == 0)
    }

    @Test func statementDuringACopyIsRefused() async throws {
        let copied = try await connection.copyIn(into: "rows", columns: ["id"]) { writer in
            try await writer.write(Int64(1))
            let error = await failure { try await connection.query("SELECT 1") }
            #expect(error as? PostgresError == .misuse(.copyInProgress))
            try await writer.write(Int64(2))
        }
        #expect(copied == 2)
    }

    @Test func wrongNumberOfFieldsIsRefused() async throws {
        let error = await failure {
            try await connection.copyIn(into: "rows", columns: ["id"]) { try await $0.write(Int64(1), "x") }
        }
        #expect(error as? PostgresError == .misuse(.wrongFieldCount))
        #expect(await failure { try await connection.copyIn(into: "rows", columns: []) { _ in } } is PostgresError)
        #expect(try await count() == 0)
    }

    @Test func cancelledCopyCopiesNothing() async throws {
        let (started, signal) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await connection.copyIn(into: "rows", columns: ["id"]) { writer in
                for id in Int64(0)... {
                    try await writer.write(id)
                    if id == 20_000 { signal.finish() }
                }
            }
        }
        for await _ in started {}
        task.cancel()
        #expect(await failure { try await task.value } is CancellationError)
        #expect(try await count() == 0)
    }
}
