import MusterCore
import MusterSystem
import Synchronization

/// Hands the pieces of one file to several lanes, on as many threads as there are cores to spare.
///
/// The caller of `run` reads the file into a ring of a few pieces. Each lane sees every piece, in order. Helpers come
/// from a pool whenever a lane has work that no thread is doing, and leave as soon as there is none: a file system that
/// hangs holds none of them. When the ring is full the reader works on the lanes itself, so that the work is finished
/// even without a single helper.
final class ContentPipeline: Sendable {
    /// Bytes of a piece: large enough that handing it over costs next to nothing.
    private static let pieceBytes = 512 << 10
    /// Pieces of the ring: they even out the speeds of reading and hashing.
    private static let places = 8

    private struct State {
        /// How many pieces were read so far.
        var filled = 0
        /// How many bytes each place of the ring holds.
        var counts = [Int](repeating: 0, count: places)
        /// For each lane, the piece that it processes next.
        var next: [Int]
        /// For each lane, whether a thread works on it.
        var isBusy: [Bool]
        /// Helpers that are at work or on their way.
        var helpers = 0
        /// Whether the reader waits for a lane to advance.
        var isReaderWaiting = false

        /// Of the lanes that no thread works on and that have a piece to process, the one that is furthest behind.
        var readyLane: Int? {
            next.indices.filter { !isBusy[$0] && next[$0] < filled }.min { next[$0] < next[$1] }
        }
    }

    /// A lane with the piece that it processes.
    private struct Claim {
        let lane: Int
        let place: Int
        let count: Int
    }

    private let lanes: [ContentLane]
    private let pool: BlockingPool
    private let bell: EventDescriptor
    private let budget: CoreBudget
    private let ring: Ring
    private let state: Mutex<State>

    /// A pipeline for one file.
    ///
    /// - Parameters:
    ///   - lanes: at least one.
    ///   - pool: where helpers come from.
    ///   - bell: used by this pipeline only.
    init(lanes: [ContentLane], pool: BlockingPool, bell: EventDescriptor, budget: CoreBudget = .shared) {
        self.lanes = lanes
        self.pool = pool
        self.bell = bell
        self.budget = budget
        ring = Ring(places: Self.places, bytes: Self.pieceBytes)
        state = Mutex(
            State(next: lanes.map { _ in 0 }, isBusy: lanes.map { _ in false })
        )
    }

    /// Reads `size` bytes of `file` on the calling thread. Returns when every lane has seen them, or when `isOver`
    /// returns `true`. To be called once.
    ///
    /// - Returns: `false` if the watch stopped it.
    /// - Throws: `partLost` when the file is shorter, or what reading failed with.
    func run(
        _ file: Descriptor,
        size: Int64,
        name: String,
        watch: FinalizeWatch,
        until isOver: () -> Bool
    ) throws(StorageError) -> Bool {
        budget.enter()
        defer { budget.leave() }
        var offset: Int64 = 0
        var index = 0
        while offset < size {
            if isOver() { break }
            guard watch.mayContinue() else { return false }
            work { state in state.next.allSatisfy { $0 > index - Self.places } }
            let wanted = Int(min(Int64(Self.pieceBytes), size - offset))
            let count: Int
            do {
                count = try file.read(into: ring.room(at: index % Self.places, count: wanted), at: offset)
            } catch {
                throw error.inSink("reading \(name) at \(offset)")
            }
            guard count == wanted else {
                throw .partLost(.init("\(name) ends at \(offset + Int64(count)), before \(size)"))
            }
            publish(count, at: index % Self.places)
            index += 1
            offset += Int64(count)
            watch.verified(offset)
        }
        work { state in state.next.allSatisfy { $0 == state.filled } }
        return true
    }

    /// Works on the lanes, or waits for the threads that do, until `isEnough` returns `true`.
    private func work(until isEnough: (State) -> Bool) {
        while true {
            let (isDone, claim) = state.withLock { state -> (Bool, Claim?) in
                if isEnough(state) { return (true, nil) }
                let claim = Self.claim(&state)
                state.isReaderWaiting = claim == nil
                return (false, claim)
            }
            if isDone { return }
            if let claim { carryOut(claim) } else { bell.take() }
        }
    }

    private func publish(_ count: Int, at place: Int) {
        let wanted = state.withLock { state -> Int in
            state.counts[place] = count
            state.filled += 1
            // One lane is left to the reader.
            let idle = state.next.indices.count { !state.isBusy[$0] && state.next[$0] < state.filled }
            let wanted = min(idle, lanes.count - 1 - state.helpers)
            state.helpers += max(0, wanted)
            return wanted
        }
        guard wanted > 0 else { return }
        for _ in 0..<wanted {
            let isHired = budget.tryEnter()
            if isHired, pool.submit({ self.help() }) == nil { continue }
            if isHired { budget.leave() }
            state.withLock { $0.helpers -= 1 }
        }
    }

    private func help() {
        defer { budget.leave() }
        while true {
            let claim = state.withLock { state -> Claim? in
                let claim = Self.claim(&state)
                if claim == nil { state.helpers -= 1 }
                return claim
            }
            guard let claim else { return }
            carryOut(claim)
        }
    }

    private static func claim(_ state: inout State) -> Claim? {
        guard let lane = state.readyLane else { return nil }
        state.isBusy[lane] = true
        let place = state.next[lane] % places
        return Claim(lane: lane, place: place, count: state.counts[place])
    }

    private func carryOut(_ claim: Claim) {
        lanes[claim.lane].update(ring.piece(at: claim.place, count: claim.count))
        let isAwaited = state.withLock { state in
            state.isBusy[claim.lane] = false
            state.next[claim.lane] += 1
            defer { state.isReaderWaiting = false }
            return state.isReaderWaiting
        }
        if isAwaited { bell.raise() }
    }

    /// The memory of the pieces.
    ///
    /// `@unchecked Sendable` is safe here: a place is written by the reader only while every lane is past the piece that it held, and
    /// read by lanes only after the reader published it; the pipeline's lock stands between the two.
    private final class Ring: @unchecked Sendable {
        private let memory: UnsafeMutableRawBufferPointer
        private let bytes: Int

        init(places: Int, bytes: Int) {
            self.bytes = bytes
            memory = .allocate(byteCount: places * bytes, alignment: 4_096)
        }

        deinit {
            memory.deallocate()
        }

        func room(at place: Int, count: Int) -> UnsafeMutableRawBufferPointer {
            UnsafeMutableRawBufferPointer(rebasing: memory[place * bytes..<place * bytes + count])
        }

        func piece(at place: Int, count: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(room(at: place, count: count))
        }
    }
}
