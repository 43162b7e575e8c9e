import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// Makes running chunks durable every 64 MiB or after a set time, whichever comes first, and reports their durable offsets (I4, I16). The first checkpoint
/// comes after a second at the latest: a worker that is stopped soon after it began a chunk has then shown progress, and its end is not counted as a death
/// caused by the chunk (I12).
final class Checkpointer: Sendable {
    private struct Entry: Sendable {
        let writer: ChunkWriter
        let sync: DurableSync
        /// The offset of the last durable state, or the one known before.
        var durable: Int64
        var since: SteadyClock.Instant
        /// How long after `since` the next checkpoint is due.
        var pause: Duration
        var isRunning = false
        /// What was learned of the file and is not reported yet.
        var learned: Report.Learned?
    }

    private static let bytesBetween: Int64 = 64 << 20
    private static let firstTime: Duration = .seconds(1)
    /// How often the running chunks are checked.
    private static let round: Duration = .milliseconds(200)

    private let entries = Mutex<[LeaseName: Entry]>([:])
    private let timeBetween: Duration
    private let tell: @Sendable (LeaseName, JobNews) -> Void

    /// A checkpointer that calls `tell` after each checkpoint that succeeded.
    init(every timeBetween: Duration, tell: @escaping @Sendable (LeaseName, JobNews) -> Void) {
        self.timeBetween = timeBetween
        self.tell = tell
    }

    /// Watches a chunk; offsets at or below `known` are not reported.
    func watch(_ name: LeaseName, _ writer: ChunkWriter, known: Int64, sync: DurableSync) {
        let entry = Entry(
            writer: writer, sync: sync, durable: known, since: .now, pause: min(timeBetween, Self.firstTime))
        entries.withLock { $0[name] = entry }
    }

    /// Keeps what was learned of the file, to report it with the first durable state: the size of a slow file is known before its end, and a job that ends
    /// sooner reports it only once.
    func note(_ learned: Report.Learned, of name: LeaseName) {
        entries.withLock { $0[name]?.learned = learned }
    }

    /// Stops watching a chunk.
    func forget(_ name: LeaseName) {
        entries.withLock { _ = $0.removeValue(forKey: name) }
    }

    /// Runs until its task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                try? await MonotonicClock.sleep(for: Self.round)
                for (name, entry) in takeDue() {
                    group.addTask { await self.checkpoint(name, entry) }
                }
            }
        }
    }

    private func takeDue() -> [(LeaseName, Entry)] {
        entries.withLock { entries in
            var due: [(LeaseName, Entry)] = []
            for (name, entry) in entries where !entry.isRunning {
                let fresh = entry.writer.offset - entry.durable
                guard fresh > 0, fresh >= Self.bytesBetween || entry.since.duration(to: .now) >= entry.pause else {
                    continue
                }
                entries[name]?.isRunning = true
                due.append((name, entry))
            }
            return due
        }
    }

    private func checkpoint(_ name: LeaseName, _ entry: Entry) async {
        // Taken before the sync: what comes during it is not covered.
        let prefix = entry.writer.prefix
        do {
            try await entry.sync.makeDurable(entry.writer.part)
        } catch {
            // The job itself meets the failure at its next write or at its end, and reports it.
            _ = settle(name, durable: nil)
            return
        }
        // Progress is reported only while the job runs: after its end, its terminal report says everything.
        if let settled = settle(name, durable: prefix.offset) { tell(name, .progress(prefix, settled.learned)) }
    }

    /// Records the end of a checkpoint. Returns the entry as it was before; `nil` if the chunk is not watched any more.
    private func settle(_ name: LeaseName, durable: Int64?) -> Entry? {
        entries.withLock { entries in
            guard var entry = entries[name] else { return nil }
            let before = entry
            entry.isRunning = false
            (entry.since, entry.pause) = (.now, timeBetween)
            entry.durable = max(entry.durable, durable ?? 0)
            if durable != nil { entry.learned = nil }
            entries[name] = entry
            return before
        }
    }
}
