/// What a statement returned. Rows are decoded where libpq put them; nothing is copied before a value is asked for.
///
/// A result does not change any more once it is here, so that its rows may be read on any thread, at any time.
public struct PostgresRows: Sequence, Sendable {
    private let table: PostgresTable

    init(_ result: ResultHandle) {
        table = PostgresTable(result)
    }

    /// How many rows there are.
    public var count: Int { table.result.rowCount }

    /// Whether there are no rows.
    public var isEmpty: Bool { count == 0 }

    /// The first row, if any.
    public var first: PostgresRow? { isEmpty ? nil : PostgresRow(table: table, index: 0) }

    /// How many rows the command inserted, updated, deleted, selected or copied, as its command tag says.
    public var affected: Int { table.result.affected }

    /// The command that the server completed, such as `INSERT 0 3` or `COMMIT`.
    public var commandTag: String { table.result.commandTag }

    /// The names of the columns, in order.
    public var columns: [String] { table.columns }

    /// A row by its index, which must be in `0..<count`.
    public subscript(index: Int) -> PostgresRow {
        PostgresRow(table: table, index: index)
    }

    /// Walks over the rows.
    public func makeIterator() -> Iterator {
        Iterator(table: table, count: count)
    }

    /// The iterator over rows.
    public struct Iterator: IteratorProtocol {
        fileprivate let table: PostgresTable
        fileprivate let count: Int
        fileprivate var index = 0

        fileprivate init(table: PostgresTable, count: Int) {
            self.table = table
            self.count = count
        }

        /// The next row.
        public mutating func next() -> PostgresRow? {
            guard index < count else { return nil }
            defer { index += 1 }
            return PostgresRow(table: table, index: index)
        }
    }
}

/// A result and its columns' names, which all of its rows share.
final class PostgresTable: Sendable {
    let result: ResultHandle
    let columns: [String]

    init(_ result: ResultHandle) {
        self.result = result
        columns = (0..<result.columnCount).map { result.columnName($0) }
    }
}

/// One row.
public struct PostgresRow: Sendable {
    private let table: PostgresTable
    private let index: Int

    init(table: PostgresTable, index: Int) {
        self.table = table
        self.index = index
    }

    /// Reads a column by name: `let id: Int64 = try row.decode("id")`.
    ///
    /// Of several columns with one name the first is read. Throws `PostgresError.decoding` with the column's name.
    public func decode<T: PostgresDecodable>(_ column: String, as _: T.Type = T.self) throws(PostgresError) -> T {
        // Results have few columns, whose names compare faster than they hash.
        guard let position = table.columns.firstIndex(of: column) else {
            throw .decoding(.init(column: column, requested: "\(T.self)", problem: .noSuchColumn))
        }
        return try decode(at: position)
    }

    /// Reads a column by its position, from 0. Throws `PostgresError.decoding`.
    public func decode<T: PostgresDecodable>(at position: Int, as _: T.Type = T.self) throws(PostgresError) -> T {
        guard table.columns.indices.contains(position), index >= 0, index < table.result.rowCount else {
            throw .decoding(.init(column: "\(position)", requested: "\(T.self)", problem: .noSuchColumn))
        }
        do {
            return try T(postgres: table.result.value(row: index, column: position))
        } catch {
            throw .decoding(.init(column: table.columns[position], requested: "\(T.self)", problem: error))
        }
    }
}
