import MusterCore
import MusterCurl
import Synchronization

/// Collects one answer that is small enough to keep in memory, or only its length and checksum, for one waiting job.
final class AnswerCollector: TransferHandler {
    /// How the transfer ended.
    enum Ending: Sendable {
        /// With this answer, whatever its status: the bytes if they are kept, and their length and checksum.
        case answered(ResponseHead, [UInt8], DurablePrefix)
        /// The body is larger than the limit.
        case tooLarge(ResponseHead)
        /// The transfer failed before the answer was complete.
        case failed(TransferError, TransferStatistics)
        /// The worker cut it, or there was no socket for it.
        case cancelled
    }

    private struct State {
        var head: ResponseHead?
        var body: [UInt8] = []
        var read = DurablePrefix(offset: 0, crc: CRC32C.empty)
        var waiter: CheckedContinuation<Ending, Never>?
        var ending: Ending?
    }

    private let limitBytes: Int64
    private let keepsBody: Bool
    private let state = Mutex(State())

    /// A collector of at most `limitBytes` of body, which it keeps if `keepsBody`.
    init(limitBytes: Int64, keepsBody: Bool = true) {
        self.limitBytes = limitBytes
        self.keepsBody = keepsBody
    }

    /// The head, once it has come, however the transfer ended.
    var head: ResponseHead? { state.withLock(\.head) }

    /// Sends the request and waits for its end; for one caller only.
    func run(_ request: TransferRequest, on loop: any TransferLoop, control: LeaseControl) async -> Ending {
        do {
            control.attach(try loop.start(request, handler: self), on: loop)
        } catch {
            return .cancelled
        }
        defer { control.detach() }
        let ending = await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Ending? in
                if state.ending == nil { state.waiter = continuation }
                return state.ending
            }
            if let known { continuation.resume(returning: known) }
        }
        guard case .failed(.noSocket, _) = ending else { return ending }
        await control.awaitSockets()
        return .cancelled
    }

    /// Keeps the head.
    func head(_ head: ResponseHead) -> HeadVerdict {
        state.withLock { $0.head = head }
        return .accept(limit: limitBytes)
    }

    /// Keeps a piece of the body.
    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        state.withLock {
            $0.read = DurablePrefix(
                offset: $0.read.offset + Int64(bytes.count), crc: CRC32C.extend($0.read.crc, bytes))
            if keepsBody { $0.body.append(contentsOf: bytes) }
        }
        return .proceed
    }

    /// Hands the end to the waiter.
    func finished(_ outcome: TransferOutcome) {
        let (ending, waiter) = state.withLock { state in
            let ending = Self.ending(outcome, state)
            state.ending = ending
            defer { state.waiter = nil }
            return (ending, state.waiter)
        }
        waiter?.resume(returning: ending)
    }

    private static func ending(_ outcome: TransferOutcome, _ state: State) -> Ending {
        switch (outcome, state.head) {
        case (.failed(let error, let statistics), _): .failed(error, statistics)
        case (.completed(_, .surplus), let head?): .tooLarge(head)
        case (.completed, let head?): .answered(head, state.body, state.read)
        case (.completed, nil), (.refused, _), (.stopped, _), (.cancelled, _): .cancelled
        }
    }
}
