import Glibc
import MusterCurl
import Synchronization

/// A one-time signal from a thread to tasks.
final class Signal: Sendable {
    private struct Contents {
        var isFired = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let contents = Mutex(Contents())

    func fire() {
        let waiters = contents.withLock { contents in
            contents.isFired = true
            defer { contents.waiters = [] }
            return contents.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isFired = contents.withLock { contents in
                if !contents.isFired { contents.waiters.append(continuation) }
                return contents.isFired
            }
            if isFired { continuation.resume() }
        }
    }
}

/// Records every call of one transfer, and answers as the test says.
final class Recorder: TransferHandler {
    struct Record {
        var heads: [ResponseHead] = []
        var body: [UInt8] = []
        var pieces = 0
        var outcomes: [TransferOutcome] = []
        /// Calls that came after `finished`, or body pieces that came before a head.
        var misplaced = 0
        var head: ResponseHead? { heads.first }
    }

    private let contents = Mutex(Record())
    private let onHead: @Sendable (ResponseHead) -> HeadVerdict
    private let onBody: @Sendable (Int) -> BodyVerdict
    private let onBytes: @Sendable (Int) -> Void
    /// Fired at the first body piece.
    let bodyBegan = Signal()
    private let ended = Signal()

    /// `onBody` gets the number of the piece, from 0, `onBytes` its size.
    init(
        onHead: @escaping @Sendable (ResponseHead) -> HeadVerdict = { _ in .accept(limit: nil) },
        onBody: @escaping @Sendable (Int) -> BodyVerdict = { _ in .proceed },
        onBytes: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.onHead = onHead
        self.onBody = onBody
        self.onBytes = onBytes
    }

    var record: Record { contents.withLock { $0 } }

    func head(_ head: ResponseHead) -> HeadVerdict {
        contents.withLock { record in
            if !record.outcomes.isEmpty { record.misplaced += 1 }
            record.heads.append(head)
        }
        return onHead(head)
    }

    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        let piece = contents.withLock { record in
            if !record.outcomes.isEmpty || record.heads.isEmpty { record.misplaced += 1 }
            record.body.append(contentsOf: bytes)
            record.pieces += 1
            return record.pieces - 1
        }
        onBytes(bytes.count)
        bodyBegan.fire()
        return onBody(piece)
    }

    func finished(_ outcome: TransferOutcome) {
        contents.withLock { $0.outcomes.append(outcome) }
        ended.fire()
    }

    /// Waits for `finished`.
    func outcome() async -> TransferOutcome {
        await ended.wait()
        return record.outcomes[0]
    }
}

/// Gives a loop to the body and shuts it down afterwards, whatever happens.
func withLoop<Result>(
    _ configuration: CurlLoopConfiguration = CurlLoopConfiguration(),
    _ body: (CurlLoop) async throws -> Result
) async throws -> Result {
    let loop = try CurlLoop(configuration)
    do {
        let result = try await body(loop)
        await loop.shutdown()
        return result
    } catch {
        await loop.shutdown()
        throw error
    }
}

/// Gives a loop and a raw server to the body and ends both afterwards.
func withServer<Result>(
    _ script: @escaping @Sendable (RawConnection, Int) -> Void,
    _ body: (CurlLoop, RawServer) async throws -> Result
) async throws -> Result {
    let server = try RawServer(script)
    defer { server.stop() }
    return try await withLoop { try await body($0, server) }
}

/// Runs one GET and gives everything that was recorded of it.
func fetch(
    _ loop: CurlLoop,
    _ request: TransferRequest,
    _ recorder: Recorder = Recorder()
) async throws -> (outcome: TransferOutcome, record: Recorder.Record) {
    try loop.start(request, handler: recorder)
    return (await recorder.outcome(), recorder.record)
}

extension TransferOutcome {
    var error: TransferError? {
        if case .failed(let error, _) = self { error } else { nil }
    }

    var end: BodyEnd? {
        if case .completed(_, let end) = self { end } else { nil }
    }
}

extension TransferError {
    /// The name of the case, so that a test can say which one it expects.
    var kind: String { String(describing: self).prefix { $0 != ":" && $0 != "(" }.trimmingTrailingSpaces() }
}

extension Substring {
    fileprivate func trimmingTrailingSpaces() -> String {
        var text = self
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}

/// Bytes that look random and are the same every time.
func patternBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    let words = [UInt64](unsafeUninitializedCapacity: count / 8 + 1) { buffer, initialized in
        var state = seed
        for index in 0..<buffer.count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            buffer.initializeElement(at: index, to: state ^ (state >> 29))
        }
        initialized = buffer.count
    }
    return words.withUnsafeBytes { Array($0.prefix(count)) }
}

/// The kind of error that a request fails with, nil if it does not fail.
func failureKind(_ loop: CurlLoop, _ request: TransferRequest) async throws -> String? {
    try await fetch(loop, request).outcome.error?.kind
}

/// How the body of a request's response ends, nil if the request does not complete.
func bodyEnd(_ loop: CurlLoop, _ request: TransferRequest, _ recorder: Recorder = Recorder()) async throws -> BodyEnd? {
    try await fetch(loop, request, recorder).outcome.end
}

/// Whether two byte sequences are equal. `#expect(left == right)` would compute a readable difference of sequences that
/// differ, which takes minutes for large ones.
func isSame(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Bool {
    let fast = left.withContiguousStorageIfAvailable { left in
        right.withContiguousStorageIfAvailable { right in
            guard let a = left.baseAddress, let b = right.baseAddress else { return left.count == right.count }
            return left.count == right.count && memcmp(a, b, left.count) == 0
        }
    }
    return (fast ?? nil) ?? left.elementsEqual(right)
}
