import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import Testing

@testable import MusterCoordinator

@Suite("A batch of reports is divided until what can't be stored stands alone")
struct ReportBatchTests {
    private static let session = SessionID(1)

    private static func report(_ chunk: Int64, offset: Int64 = 0) -> Report {
        Report(
            lease: LeaseName(chunk: ChunkID(chunk), epoch: LeaseEpoch(1)), kind: .progress,
            durable: DurablePrefix(offset: offset, crc: 0))
    }

    private static func refusal(_ code: String) -> PostgresError {
        .server(.init(sqlState: SQLState(code: code), message: "no"))
    }

    /// Divides a batch in which the `culprits` are refused. Returns the stored reports, the refused leases and the number of statements.
    private static func divide(
        _ count: Int64, refusing culprits: Set<Int64>, as code: String = "22003"
    ) async throws -> (stored: [Int64], refused: [LeaseName], statements: Int) {
        var batch = ReportBatch([.init(session: session, reports: (1...count).map { report($0) })])
        var statements = 0
        let stored = try await batch.divide(batch.pending) { entries in
            statements += 1
            let chunks = entries.map(\.report.chunk.rawValue)
            if !culprits.isDisjoint(with: chunks) { throw Self.refusal(code) }
            return chunks
        }
        return (stored, batch.answer(for: session).refused.map(\.lease), statements)
    }

    /// Range contract, row 25.
    @Test(arguments: [(403, nil), (404, nil), (429, 60), (503, 60), (nil, 60)] as [(Int?, Int64?)])
    func retryAfterCountsOnlyForTemporaryRefusals(status: Int?, wait: Int64?) {
        var report = Self.report(1)
        report.kind = .failed
        report.failure = Report.Failure(
            kind: status.map { .status($0) } ?? .authentication, detail: "no", retryAfter: 60)
        report.failure?.status = status
        #expect(ReportBatch.Entry(session: Self.session, report: report).failed(random: 0)?.retryAfter == wait)
    }

    @Test func oneCulpritAmongManyTakesFewStatements() async throws {
        let (stored, refused, statements) = try await Self.divide(1_024, refusing: [700])
        #expect(stored == (1...1_024).filter { $0 != 700 })
        #expect(refused.map(\.chunk) == [ChunkID(700)])
        #expect(statements == 1 + 2 * 10)
    }

    @Test(arguments: [[1], [8], [1, 2], [4, 5], [1, 2, 3, 4, 5, 6, 7, 8]] as [Set<Int64>])
    func everyCulpritIsFoundAndAllOtherReportsAreStored(culprits: Set<Int64>) async throws {
        let (stored, refused, _) = try await Self.divide(8, refusing: culprits)
        #expect(stored == (1...8).filter { !culprits.contains($0) })
        #expect(refused.map(\.chunk.rawValue) == culprits.sorted())
    }

    @Test(arguments: ["22003", "22021", "22P05", "23514", "23505", "54000", "21000"])
    func reportsWhoseDataCausesTheErrorAreRefused(code: String) async throws {
        #expect(try await Self.divide(2, refusing: [2], as: code).refused.count == 1)
    }

    @Test(arguments: ["40P01", "40001", "57014", "57P01", "53300", "25006", "42P01", "XX000"])
    func errorsThatAnotherTryMayAvoidAreThrown(code: String) async throws {
        await #expect(throws: PostgresError.self) { try await Self.divide(2, refusing: [2], as: code) }
    }

    @Test func nothingOfALeaseWithARefusedReportIsStored() async throws {
        let reports = [Self.report(1), Self.report(2, offset: .max), Self.report(2), Self.report(2, offset: -1)]
        let batch = ReportBatch([.init(session: Self.session, reports: reports)])
        #expect(batch.pending.map(\.report.chunk) == [ChunkID(1)])
        #expect(batch.answer(for: Self.session).refused.count == 1)
        #expect(batch.answer(for: SessionID(2)).refused.isEmpty, "another session holds another lease")
    }
}
