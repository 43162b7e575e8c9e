import MusterCore
import Synchronization

/// Computes digests of a part while its bytes arrive: it reads what was just written, and is still in memory, a little behind the
/// writer, on a thread of a pool.
///
/// The loop that receives the bytes serves many transfers, and SHA-256 costs several times what writing them does (0.85 s against
/// 0.25 s for a GiB, where measured). A hasher that is too slow gives up: the finalizer then hashes the file as it reads it back.
final class TrailingHasher: Sendable {
    /// Smaller files are hashed by the finalizer, which reads them back anyway.
    static let smallestFile: Int64 = 8 << 20
    /// Bytes that are hashed at once.
    private static let step: Int64 = 4 << 20
    /// How far it may fall behind, in bytes: older bytes may have to be read from storage again.
    private static let longestLag: Int64 = 256 << 20

    private struct State {
        /// How much of the part was written.
        var written: Int64 = 0
        /// How much of that was hashed.
        var hashed: Int64 = 0
        /// Whether a thread is hashing, or is about to.
        var isRunning = false
        /// Whether it ended without a result.
        var hasGivenUp = false
        /// The caller of `finish` that waits for the rest to be hashed.
        var waiting: CheckedContinuation<Void, Never>?
    }

    private struct Sums {
        var hasher: ContentHasher
        var crc = CRC32C.empty
    }

    private let part: PartFile
    private let pool: BlockingPool
    private let isWanted: @Sendable () -> Bool
    private let state = Mutex(State())
    private let sums: Mutex<Sums>

    /// Follows a part to which nothing has been written yet.
    ///
    /// - Parameter isWanted: asked before each piece; the hasher gives up when it returns `false`.
    init(
        _ part: PartFile,
        _ algorithms: Set<DigestAlgorithm>,
        on pool: BlockingPool,
        while isWanted: @escaping @Sendable () -> Bool
    ) {
        self.part = part
        self.pool = pool
        self.isWanted = isWanted
        sums = Mutex(Sums(hasher: ContentHasher(algorithms)))
    }

    /// Notes that everything before `offset` was written. This costs the writer next to nothing.
    func follow(to offset: Int64) {
        let mustStart = state.withLock { state in
            state.written = offset
            if offset - state.hashed > Self.longestLag { state.hasGivenUp = true }
            guard !state.hasGivenUp, !state.isRunning, offset > Self.smallestFile, offset - state.hashed >= Self.step
            else { return false }
            state.isRunning = true
            return true
        }
        if mustStart { start() }
    }

    /// Ends without a result.
    func giveUp() {
        state.withLock { $0.hasGivenUp = true }
    }

    /// Hashes the rest and returns the digests; none if it gave up, if the file is small, or if the bytes that it read
    /// don't match `prefix`, which covers all that was written. To be called once, after the last write.
    func finish(_ prefix: DurablePrefix) async -> [ContentDigest] {
        await withCheckedContinuation { continuation in
            let (isDone, mustStart) = state.withLock { state -> (Bool, Bool) in
                if state.hasGivenUp || prefix.offset <= Self.smallestFile { return (true, false) }
                if state.hashed == prefix.offset, !state.isRunning { return (true, false) }
                state.waiting = continuation
                defer { state.isRunning = true }
                return (false, !state.isRunning)
            }
            if isDone { continuation.resume() }
            if mustStart { start() }
        }
        let isComplete = state.withLock { !$0.hasGivenUp && $0.hashed == prefix.offset }
        guard isComplete else { return [] }
        return sums.withLock { $0.crc == prefix.crc ? $0.hasher.finish() : [] }
    }

    private func start() {
        guard pool.submit({ self.run() }) != nil else { return }
        giveUp()
        _ = next()
    }

    private func run() {
        CoreBudget.shared.enter()
        defer { CoreBudget.shared.leave() }
        while let range = next() {
            let isRead: Bool
            do {
                isRead = try sums.withLock { sums throws(StorageError) in
                    try part.read(range, while: isWanted) { bytes in
                        sums.crc = CRC32C.extend(sums.crc, bytes)
                        sums.hasher.update(bytes)
                    }
                }
            } catch {
                // The finalizer finds and reports any problem with the part.
                isRead = false
            }
            state.withLock { state in
                if isRead { state.hashed = range.end } else { state.hasGivenUp = true }
            }
        }
    }

    /// The next bytes to hash; `nil` if there is nothing to do for now, so that the thread returns to the pool.
    private func next() -> ByteRange? {
        let (range, waiting) = state.withLock { state -> (ByteRange?, CheckedContinuation<Void, Never>?) in
            // At the end the last piece may be a short one.
            let least = state.waiting == nil ? Self.step : 1
            if !state.hasGivenUp, state.written - state.hashed >= least {
                return (ByteRange(start: state.hashed, end: min(state.written, state.hashed + Self.step)), nil)
            }
            state.isRunning = false
            defer { state.waiting = nil }
            return (nil, state.waiting)
        }
        waiting?.resume()
        return range
    }
}
