import CLibpq
import Glibc
import MusterSystem

/// How the rows of a COPY are written.
public enum PostgresCopyFormat: Sendable, Hashable {
    /// Lines with tabs between the fields, backslashes escaped, `\N` for NULL.
    case text
    /// PostgreSQL's binary COPY format, header included.
    case binary
    /// Comma-separated values.
    case csv

    fileprivate var options: SQL {
        switch self {
        case .text: "(FORMAT text, ENCODING 'UTF8')"
        case .binary: "(FORMAT binary)"
        case .csv: "(FORMAT csv, ENCODING 'UTF8')"
        }
    }
}

extension PostgresConnection {
    /// Copies rows, which are encoded already, into a table.
    ///
    /// The next piece is taken from `pieces` only when the previous one has gone to the server (back-pressure). A piece
    /// may end within a row. When `pieces` throws, the server discards all rows.
    ///
    /// - Parameter deadline: When to give up on all of it; by default after the configuration's `defaultTimeout`.
    /// - Returns: How many rows were copied.
    public nonisolated(nonsending) func copyIn<Pieces: AsyncSequence>(
        into table: String,
        columns: [String],
        format: PostgresCopyFormat,
        deadline: ContinuousClock.Instant? = nil,
        rows pieces: Pieces
    ) async throws -> Int where Pieces.Element == [UInt8] {
        let deadline = deadline ?? ContinuousClock.now + configuration.defaultTimeout
        try await beginCopy(into: table, columns: columns, format: format, deadline: deadline)
        do {
            for try await piece in pieces {
                try await putCopy(piece, deadline: deadline)
            }
            try Task.checkCancellation()
        } catch {
            await abortCopy()
            throw error
        }
        return try await endCopy(deadline: deadline)
    }

    /// Copies rows into a table, in binary: `try await writer.write(id, name, size)` for each row.
    ///
    /// In binary nothing is converted: every value must have exactly its column's type (`Int32` for `integer`).
    ///
    /// - Returns: How many rows were copied.
    public nonisolated(nonsending) func copyIn(
        into table: String,
        columns: [String],
        deadline: ContinuousClock.Instant? = nil,
        _ body: nonisolated(nonsending) (inout PostgresCopyWriter) async throws -> Void
    ) async throws -> Int {
        let deadline = deadline ?? ContinuousClock.now + configuration.defaultTimeout
        try await beginCopy(into: table, columns: columns, format: .binary, deadline: deadline)
        do {
            var writer = PostgresCopyWriter(connection: self, fieldCount: columns.count, deadline: deadline)
            try await body(&writer)
            try await writer.finish()
            try Task.checkCancellation()
        } catch {
            await abortCopy()
            throw error
        }
        return try await endCopy(deadline: deadline)
    }

    private func beginCopy(
        into table: String,
        columns: [String],
        format: PostgresCopyFormat,
        deadline: ContinuousClock.Instant
    ) async throws {
        guard let first = columns.first else { throw PostgresError.misuse(.wrongFieldCount) }
        var sql: SQL = "COPY \(identifier: table) (\(identifier: first)"
        for column in columns.dropFirst() {
            sql += ", \(identifier: column)"
        }
        sql += ") FROM STDIN \(format.options)"
        let text = sql.text
        try await interruptible { statement throws in
            let handle = try ready()
            let outcome = lostOutcome
            _ = try complete(
                handle,
                statement: statement,
                deadline: deadline,
                outcome: outcome,
                acceptsCopy: true
            ) {
                handle.send(script: text)
            }
            usage = .copy(withinTransaction: outcome == .rolledBack)
        }
    }

    /// Hands bytes to the server and waits until its socket has taken all but what libpq buffers in any case.
    func putCopy(_ bytes: [UInt8], deadline: ContinuousClock.Instant) async throws {
        guard case .copy = usage, let handle else {
            throw PostgresError.connection(.init(kind: .lost, message: "the COPY has ended", outcome: lostOutcome))
        }
        try await interruptible { statement throws in
            // libpq takes lengths of 32 bits, and cannot be interrupted while it copies a piece.
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = rest.prefix(1 << 20)
                switch handle.putCopyData(piece) {
                case .taken: rest = rest.dropFirst(piece.count)
                case .wouldBlock: break
                case .failed: throw copyEndedEarly(handle)
                }
                try flushCopy(handle, statement: statement, deadline: deadline)
            }
        }
    }

    private func flushCopy(
        _ handle: ConnectionHandle,
        statement: UInt64,
        deadline: ContinuousClock.Instant
    ) throws {
        while true {
            switch handle.flush() {
            case .done: return
            case .failed: throw copyEndedEarly(handle)
            case .pending: break
            }
            switch Polling.wait(for: handle.socket, events: POLLIN | POLLOUT, flag: interruption.flag, until: deadline)
            {
            case .ready:
                guard handle.consumeInput() else { throw copyEndedEarly(handle) }
            case .flagged:
                interruption.flag.take()
                if interruption.isCancelled(statement: statement) { throw CancellationError() }
            case .timedOut:
                throw PostgresError.deadlineExceeded(.running)
            }
        }
    }

    private func copyEndedEarly(_ handle: ConnectionHandle) -> PostgresError {
        broken(handle, kind: .lost, message: handle.errorMessage, outcome: lostOutcome)
    }

    private func endCopy(deadline: ContinuousClock.Instant) async throws -> Int {
        guard case .copy(let withinTransaction) = usage, let handle else {
            throw PostgresError.connection(.init(kind: .lost, message: "the COPY has ended", outcome: lostOutcome))
        }
        let outcome = lostOutcome
        usage = withinTransaction ? .transaction : .statements
        return try await interruptible { statement throws in
            try finishCopy(handle, failure: nil, statement: statement, deadline: deadline, outcome: outcome)
        }
    }

    /// Tells the server to discard the rows, whether or not the task is cancelled. The connection stays in use, unless
    /// the server does not answer.
    private func abortCopy() {
        guard case .copy(let withinTransaction) = usage else { return }
        usage = withinTransaction ? .transaction : .statements
        guard let handle else { return }
        // The server answers with an error that repeats our message.
        let deadline = ContinuousClock.now + configuration.cancelGrace
        _ = try? finishCopy(
            handle,
            failure: "given up by the client",
            statement: nil,
            deadline: deadline,
            outcome: withinTransaction ? .rolledBack : .none
        )
    }

    private func finishCopy(
        _ handle: ConnectionHandle,
        failure: String?,
        statement: UInt64?,
        deadline: ContinuousClock.Instant,
        outcome: PostgresError.Outcome
    ) throws -> Int {
        var put = handle.putCopyEnd(failure: failure)
        while put == .wouldBlock {
            // The socket is full: buffered bytes must leave before the end of the COPY can be queued.
            switch Polling.wait(for: handle.socket, events: POLLIN | POLLOUT, flag: interruption.flag, until: deadline)
            {
            case .ready:
                guard handle.flush() != .failed, handle.consumeInput() else { throw copyEndedEarly(handle) }
            case .flagged: interruption.flag.take()
            case .timedOut:
                throw broken(handle, kind: .unresponsive, message: "a COPY could not be ended", outcome: outcome)
            }
            put = handle.putCopyEnd(failure: failure)
        }
        let results = try complete(handle, statement: statement, deadline: deadline, outcome: outcome) {
            put == .taken
        }
        return results.last?.affected ?? 0
    }
}

/// Writes the rows of a binary COPY. They are gathered and sent in pieces of 64 KiB.
public struct PostgresCopyWriter {
    private let connection: PostgresConnection
    private let fieldCount: Int
    private let deadline: ContinuousClock.Instant
    private var encoder = PostgresEncoder()

    private static let pieceSize = 64 << 10

    init(connection: PostgresConnection, fieldCount: Int, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.fieldCount = fieldCount
        self.deadline = deadline
        // The signature, then no flags and no header extension (PostgreSQL manual, COPY, "Binary Format").
        encoder.write(contentsOf: Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0x00])
        encoder.write(Int32(0))
        encoder.write(Int32(0))
    }

    /// Writes one row. Throws `misuse(.wrongFieldCount)`, or the error that ended the COPY.
    public nonisolated(nonsending) mutating func write<each Field: PostgresEncodable>(
        _ fields: repeat each Field
    ) async throws {
        var count = 0
        for _ in repeat each fields {
            count += 1
        }
        guard count == fieldCount else { throw PostgresError.misuse(.wrongFieldCount) }
        encoder.write(Int16(truncatingIfNeeded: count))
        for field in repeat each fields {
            encoder.writeFramed(field)
        }
        if encoder.bytes.count >= Self.pieceSize {
            try await connection.putCopy(encoder.take(), deadline: deadline)
        }
    }

    mutating func finish() async throws {
        encoder.write(Int16(-1))
        try await connection.putCopy(encoder.take(), deadline: deadline)
    }
}
