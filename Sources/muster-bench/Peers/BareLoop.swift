import MusterCurl
import Synchronization
import SystemPackage

/// A libcurl loop that keeps a number of transfers under way until all are done.
final class BareLoop: Sendable {
    /// A file that is written. Its first byte opens it; it is closed with this object.
    final class File: Sendable {
        private let path: FilePath
        private let descriptor = Mutex(FileDescriptor?.none)

        /// A file that is not there yet.
        init(path: FilePath) {
            self.path = path
        }

        /// Writes bytes at an offset.
        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
            let file = try descriptor.withLock { open in
                if let open { return open }
                let new = try FileDescriptor.open(
                    path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite, .groupRead])
                open = new
                return new
            }
            var done = 0
            while done < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
                done += try file.write(toAbsoluteOffset: offset + Int64(done), rest)
            }
        }

        deinit {
            descriptor.withLock { try? $0?.close() }
        }
    }

    /// A file to fetch, or a range of a file.
    struct Piece: Sendable {
        /// Where it comes from.
        var url: String
        /// Where it goes.
        var file: File
        /// The offset of its first byte.
        var first: Int64
        /// The requested range; nil is the whole file.
        var range: RangeSpec?
    }

    private struct State: Sendable {
        /// The pieces that are not begun yet, the next one last.
        var waiting: [Piece]
        /// How many transfers are under way.
        var running = 0
        /// The first failure.
        var failure: String?
        /// The continuation of `run`, which waits for the end.
        var waiter: CheckedContinuation<Void, any Error>?
    }

    private let loop: CurlLoop
    private let connections: Int
    private let state: Mutex<State>

    /// A loop for some pieces, which are begun in their order.
    init(_ pieces: [Piece], connections: Int) throws {
        loop = try CurlLoop(
            CurlLoopConfiguration(maxConnections: connections, connectionCacheSize: connections))
        self.connections = connections
        state = Mutex(State(waiting: pieces.reversed()))
    }

    /// Fetches everything.
    func run() async throws {
        do {
            try await withCheckedThrowingContinuation { waiter in
                state.withLock { $0.waiter = waiter }
                for _ in 0..<connections { startNext() }
                finishIfDone()
            }
        } catch {
            await loop.shutdown()
            throw error
        }
        await loop.shutdown()
    }

    private func startNext() {
        let next = state.withLock { state -> Piece? in
            guard state.failure == nil, let piece = state.waiting.popLast() else { return nil }
            state.running += 1
            return piece
        }
        guard let next else { return }
        var request = TransferRequest(url: next.url, range: next.range)
        request.httpVersion = .http1
        do {
            try loop.start(request, handler: Handler(next, loop: self))
        } catch {
            ended("\(error)")
        }
    }

    fileprivate func ended(_ failure: String?) {
        state.withLock { state in
            state.running -= 1
            if state.failure == nil { state.failure = failure }
        }
        startNext()
        finishIfDone()
    }

    private func finishIfDone() {
        let done = state.withLock { state -> (CheckedContinuation<Void, any Error>, String?)? in
            guard state.running == 0, state.waiting.isEmpty || state.failure != nil, let waiter = state.waiter else {
                return nil
            }
            state.waiter = nil
            return (waiter, state.failure)
        }
        guard let (waiter, failure) = done else { return }
        if let failure { waiter.resume(throwing: BenchFailure(failure)) } else { waiter.resume() }
    }

    /// Writes one piece.
    private final class Handler: TransferHandler {
        private let piece: Piece
        private let loop: BareLoop
        private let progress = Mutex((offset: Int64(0), failure: String?.none))

        init(_ piece: Piece, loop: BareLoop) {
            self.piece = piece
            self.loop = loop
            progress.withLock { $0.offset = piece.first }
        }

        func head(_ head: ResponseHead) -> HeadVerdict {
            head.status == (piece.range == nil ? 200 : 206) ? .accept(limit: nil) : .refuse
        }

        func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
            let offset = progress.withLock { $0.offset }
            do {
                try piece.file.write(bytes, at: offset)
            } catch {
                progress.withLock { $0.failure = "\(error)" }
                return .stop
            }
            progress.withLock { $0.offset += Int64(bytes.count) }
            return .proceed
        }

        func finished(_ outcome: TransferOutcome) {
            let failure = progress.withLock { $0.failure }
            switch outcome {
            case .completed: loop.ended(nil)
            case .refused, .stopped, .cancelled, .failed: loop.ended(failure ?? "\(piece.url): \(outcome)")
            }
        }
    }
}
