import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Writes the reports of concurrent syncs together: while one batch is being written, the next one is collected. Commits
/// cost time, rows don't.
actor ReportBatcher: Service {
    /// The reports of one sync.
    struct Submission: Sendable {
        let session: SessionID
        let reports: [Report]
    }

    private typealias Waiter = (
        submission: Submission, continuation: CheckedContinuation<Result<ReportWriter.Answer, any Error>, Never>
    )

    private let writer: ReportWriter
    private var waiting: [Waiter] = []
    private var isClosed = false
    private let door = Doorbell()

    init(writer: ReportWriter) {
        self.writer = writer
    }

    /// Writes a sync's reports. Returns the answer about them.
    ///
    /// Once accepted the reports are written even if the caller goes away: they are true, and idempotent.
    func submit(_ submission: Submission) async throws -> ReportWriter.Answer {
        guard !isClosed else { throw Problem(.stopping, "try another coordinator") }
        let result = await withCheckedContinuation { continuation in
            waiting.append((submission, continuation))
            door.ring()
        }
        return try result.get()
    }

    /// Writes batches until the coordinator stops, the last one included.
    func run() async {
        await withGracefulShutdownHandler {
            for await _ in door.rings { await flush() }
        } onGracefulShutdown: { [door] in
            door.finish()
        }
        isClosed = true
        await flush()
    }

    private func flush() async {
        while !waiting.isEmpty {
            let batch = waiting
            waiting = []
            let results = await writer.write(batch.map(\.submission))
            for (waiter, result) in zip(batch, results) { waiter.continuation.resume(returning: result) }
        }
    }
}
