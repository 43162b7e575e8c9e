import MusterAPI
import MusterCore
import Synchronization

/// Makes running chunks durable every 64 MiB or so many seconds, whichever comes first, and reports how far they are (I4, I16). The first time comes after a
/// second at the latest: a worker that dies soon after it has begun was stopped, and not killed by what it fetched (I12).
final class Checkpointer: Sendable {
    private struct Entry: Sendable {
        let writer: ChunkWriter
        let sync: DurableSync
        /// The offset of the last durable state, or the one known before.
        var durable: Int64
        var since: ContinuousClock.Instant
        /// How long after that the next look is due.
        var pause: Duration
        var isRunning = false
        /// What was learned and not told yet.
        var learned: Report.Learned?
    }

    private static let bytesBetween: Int64 = 64 << 20
    private static let firstTime: Duration = .seconds(1)
    /// How often the running chunks are looked at.
    private static let round: Duration = .milliseconds(200)

    private let entries = Mutex<[LeaseName: Entry]>([:])
    private let timeBetween: Duration
    private let tell: @Sendable (LeaseName, JobNews) -> Void

    /// A checkpointer that tells of its successes.
    init(every timeBetween: Duration, tell: @escaping @Sendable (LeaseName, JobNews) -> Void) {
        self.timeBetween = timeBetween
        self.tell = tell
    }

    /// Watches a chunk; nothing is reported of it at or below `known`.
    func watch(_ name: LeaseName, _ writer: ChunkWriter, known: Int64, sync: DurableSync) {
        let entry = Entry(
            writer: writer, sync: sync, durable: known, since: .now, pause: min(timeBetween, Self.firstTime))
        entries.withLock { $0[name] = entry }
    }

    /// What was learned of the file is told with the first durable state: nobody has to wait for the end of a slow one to know how large
    /// it is, and what is ended before that tells of it once.
    func note(_ learned: Report.Learned, of name: LeaseName) {
        entries.withLock { $0[name]?.learned = learned }
    }

    /// Watches it no more.
    func forget(_ name: LeaseName) {
        entries.withLock { _ = $0.removeValue(forKey: name) }
    }

    /// Runs until its task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.round)
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
            // The job itself meets the failure at its next write or at its end, and says what it means.
            _ = settle(name, durable: nil)
            return
        }
        // Progress is only said of a job that still runs: after its end its terminal report tells all.
        if let settled = settle(name, durable: prefix.offset) { tell(name, .progress(prefix, settled.learned)) }
    }

    /// A look at a chunk is over. Returns what it was, `nil` if nobody watches it any more.
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
