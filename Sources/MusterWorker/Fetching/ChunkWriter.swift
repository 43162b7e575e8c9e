import MusterCore
import MusterCurl
import Synchronization

/// Writes the bytes of one lease where they belong and keeps their checksum.
///
/// The loop's thread writes; other threads take snapshots. Both are ordered: a snapshot never covers bytes that were not
/// handed to the kernel before it (I4).
final class ChunkWriter: Sendable {
    /// What became of a piece.
    enum Result: Sendable, Hashable {
        /// It is in the file.
        case written
        /// The trust has ended: the piece is kept in memory until the trust is renewed.
        case deferred
        /// The storage failed, now or before.
        case failed
        /// Nothing more is to be written for this lease.
        case unwanted
        /// The chunk is complete, at an end that was agreed on while it was fetched; what lay beyond was dropped.
        case complete
    }

    private struct State {
        var offset: Int64
        var crc: UInt32
        /// At most one piece of the transfer's body.
        var deferred: [UInt8] = []
        var failure: StorageError?
        var hasher: TrailingHasher?
    }

    /// The part that the bytes are written to.
    let part: PartFile
    private let gate: TrustGate
    private let control: LeaseControl
    private let state: Mutex<State>

    /// A writer that goes on after `prefix`.
    init(_ part: PartFile, after prefix: DurablePrefix, gate: TrustGate, control: LeaseControl) {
        self.part = part
        self.gate = gate
        self.control = control
        state = Mutex(State(offset: prefix.offset, crc: prefix.crc))
    }

    /// How far the file is written, with the checksum from the chunk's start.
    var prefix: DurablePrefix { state.withLock { DurablePrefix(offset: $0.offset, crc: $0.crc) } }
    /// Where the next byte goes.
    var offset: Int64 { state.withLock { $0.offset } }
    /// What the storage failed with.
    var failure: StorageError? { state.withLock { $0.failure } }
    /// Whether a piece waits in memory.
    var hasDeferred: Bool { state.withLock { !$0.deferred.isEmpty } }

    /// Begins the chunk over at its start.
    func restart(at start: Int64) {
        state.withLock { state in
            state.offset = start
            state.crc = CRC32C.empty
            state.deferred = []
            state.hasher?.giveUp()
            state.hasher = nil
        }
    }

    /// Computes the digests of the bytes while they arrive, beside the transfer, on threads of `pool`.
    ///
    /// To be called before the first byte, for a chunk that is the whole file; a chunk that begins elsewhere, or goes on after a predecessor, ignores it.
    /// Hashing is given up before it delays the transfer.
    func hash(_ algorithms: Set<DigestAlgorithm>, on pool: BlockingPool) {
        state.withLock { state in
            guard state.offset == 0, !algorithms.isEmpty, state.hasher == nil else { return }
            state.hasher = TrailingHasher(part, algorithms, on: pool) { [control] in control.wish == .work }
        }
    }

    /// The digests of all that was written, for `FinalizeOrder.knownDigests`; waits for those of the last bytes.
    ///
    /// Empty unless they were computed as the bytes arrived, from the first to the last, without a restart. Also empty for a small file, which the finalizer
    /// hashes as it reads it back.
    func digests() async -> [ContentDigest] {
        let (hasher, prefix) = state.withLock { ($0.hasher, DurablePrefix(offset: $0.offset, crc: $0.crc)) }
        return await hasher?.finish(prefix) ?? []
    }

    /// Whether a file of `size` bytes fits into the sink. If it does not, this counts as a failed write, before a part of the file fills the sink.
    func hasRoom(for size: Int64) -> Bool {
        do {
            try part.checkRoom(size)
            return true
        } catch {
            state.withLock { if $0.failure == nil { $0.failure = error } }
            return false
        }
    }

    /// Whether the only failure is that a file of the stated size does not fit.
    var lacksRoom: Bool {
        if case .noRoom = failure { true } else { false }
    }

    /// Clears a failure for lack of room: another answer may state another size.
    func forgiveLack() {
        state.withLock { if case .noRoom = $0.failure { $0.failure = nil } }
    }

    /// Makes the part visible to other workers, before they hear of it. A failure counts as a failed write.
    func share() {
        do {
            try part.share()
        } catch {
            state.withLock { if $0.failure == nil { $0.failure = error } }
        }
    }

    /// Takes the next piece of the body.
    func write(_ bytes: UnsafeRawBufferPointer) -> Result {
        state.withLock { state in
            guard state.failure == nil else { return .failed }
            guard control.wish == .work else { return .unwanted }
            guard gate.isOpen || gate.deferring() else {
                state.deferred.append(contentsOf: bytes)
                return .deferred
            }
            if !state.deferred.isEmpty {
                let result = writeDeferred(&state)
                guard result == .written else { return result }
            }
            return append(bytes, &state)
        }
    }

    /// Writes what was kept in memory; blocks. To be called when the gate is open.
    func flush() {
        state.withLock { state in
            if state.failure == nil, gate.isOpen, !state.deferred.isEmpty { _ = writeDeferred(&state) }
        }
    }

    private func writeDeferred(_ state: inout State) -> Result {
        let bytes = state.deferred
        state.deferred = []
        return bytes.withUnsafeBytes { append($0, &state) }
    }

    private func append(_ piece: UnsafeRawBufferPointer, _ state: inout State) -> Result {
        let claim = control.bound.claim(piece.count, at: state.offset)
        guard claim.count > 0 else { return .complete }
        let bytes = UnsafeRawBufferPointer(rebasing: piece[..<claim.count])
        do {
            try part.write(bytes, at: state.offset)
        } catch {
            state.failure = error
            return .failed
        }
        state.offset += Int64(bytes.count)
        state.crc = CRC32C.extend(state.crc, bytes)
        state.hasher?.follow(to: state.offset)
        return claim.isLast ? .complete : .written
    }
}
