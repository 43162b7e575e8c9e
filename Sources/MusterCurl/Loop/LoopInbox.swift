import Synchronization

/// Names one transfer of one loop; never used twice within a loop.
public struct TransferID: Sendable, Hashable {
    /// Which of a loop's threads carries a transfer out.
    enum Lane: Sendable, Hashable {
        /// Transfers by http and https.
        case http
        /// Transfers by ftp, ftps and sftp.
        case files
    }

    let lane: Lane
    /// From 1, counted by each lane.
    let value: UInt64

    /// The id of a transfer of another loop than `CurlLoop`, which counts its transfers itself.
    public init(_ number: UInt64) {
        self.init(lane: .http, value: number)
    }

    init(lane: Lane, value: UInt64) {
        (self.lane, self.value) = (lane, value)
    }
}

/// A command of another thread for a loop.
enum LoopCommand: Sendable {
    case start(TransferID, TransferRequest, any TransferHandler)
    case cancel(TransferID)
    case resume(TransferID)
    case closeIdle(TransferRequest)
}

/// The commands that other threads leave for a loop. The loop's thread is woken once per batch, not once per command.
final class LoopInbox: Sendable {
    private enum State {
        /// Takes commands. `woken` says that a wake-up is under way. Exits: `closing`.
        case open(MultiHandle, commands: [LoopCommand], woken: Bool)
        /// Takes no more; the thread has yet to see this and the last commands. Exits: `closed`.
        case closing(commands: [LoopCommand])
        /// The thread has taken everything and lets go of the multi handle, which it alone holds now.
        case closed
    }

    /// A batch for the thread.
    struct Batch {
        var commands: [LoopCommand]
        /// Whether the thread has to end.
        var isLast: Bool
    }

    private struct Contents {
        var state: State
        var nextID: UInt64 = 1
    }

    private let lane: TransferID.Lane
    private let contents: Mutex<Contents>

    init(_ multi: MultiHandle, _ lane: TransferID.Lane) {
        self.lane = lane
        contents = Mutex(Contents(state: .open(multi, commands: [], woken: false)))
    }

    /// Asks for a start; nil if the loop is closing.
    func start(_ request: TransferRequest, _ handler: any TransferHandler) -> TransferID? {
        contents.withLock { contents in
            guard case .open = contents.state else { return nil }
            let id = newID(&contents)
            Self.put(.start(id, request, handler), into: &contents)
            return id
        }
    }

    /// The identifier of a transfer that the thread starts by itself.
    func newID() -> TransferID { contents.withLock { newID(&$0) } }

    private func newID(_ contents: inout Contents) -> TransferID {
        defer { contents.nextID += 1 }
        return TransferID(lane: lane, value: contents.nextID)
    }

    /// Posts any other command; without effect when the loop is closing, because every transfer ends then anyway.
    func post(_ command: LoopCommand) {
        contents.withLock { Self.put(command, into: &$0) }
    }

    /// Wakes under the lock, so that the handle cannot be closed between the check and the wake-up.
    private static func put(_ command: LoopCommand, into contents: inout Contents) {
        guard case .open(let multi, var commands, let woken) = contents.state else { return }
        // Taken out first, so that the array is uniquely held when it grows.
        contents.state = .closed
        commands.append(command)
        if !woken { multi.wake() }
        contents.state = .open(multi, commands: commands, woken: true)
    }

    /// Whether this transfer, or the whole loop, is to end. Called by the loop's thread only, in callbacks, where it
    /// cannot take a batch.
    func hasEnd(for id: TransferID) -> Bool {
        contents.withLock { contents in
            switch contents.state {
            case .open(_, let commands, _):
                commands.contains { if case .cancel(let cancelled) = $0 { cancelled == id } else { false } }
            case .closing, .closed: true
            }
        }
    }

    /// Takes no more commands and tells the thread to end.
    func close() {
        contents.withLock { contents in
            guard case .open(let multi, let commands, _) = contents.state else { return }
            multi.wake()
            contents.state = .closing(commands: commands)
        }
    }

    /// Everything that came since the last call. Called by the loop's thread only.
    func take() -> Batch {
        contents.withLock { contents in
            switch contents.state {
            case .open(let multi, let commands, _):
                contents.state = .open(multi, commands: [], woken: false)
                return Batch(commands: commands, isLast: false)
            case .closing(let commands):
                contents.state = .closed
                return Batch(commands: commands, isLast: true)
            case .closed:
                return Batch(commands: [], isLast: true)
            }
        }
    }
}
