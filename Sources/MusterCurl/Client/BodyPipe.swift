import Synchronization

/// Carries a request's body from the task that makes it to the loop's thread, at most `capacityBytes` and one chunk ahead.
final class BodyPipe: UploadSource {
    private struct Contents {
        /// Bytes from `start` on are still to be sent.
        var bytes: [UInt8] = []
        var start = 0
        var end = End.open
        /// Whether libcurl was told to pause and waits for a resume.
        var readerWaits = false
        /// The task that makes the body, while there is no room.
        var writer: CheckedContinuation<Void, Never>?

        var count: Int { bytes.count - start }
    }

    private enum End {
        /// More may come.
        case open
        /// The body is complete.
        case complete
        /// The body cannot be completed.
        case failed(any Error)
        /// The transfer is over; libcurl reads no more.
        case closed
    }

    private static let capacityBytes = 256 * 1024
    private let contents = Mutex(Contents())

    /// The error that the body's producer threw, if any.
    var failure: (any Error)? {
        contents.withLock { contents in
            if case .failed(let error) = contents.end { error } else { nil }
        }
    }

    /// Takes every chunk from the stream; `resume` is called when a chunk or the end arrives while libcurl is paused.
    func fill(from stream: HTTPBodyStream, resume: @escaping @Sendable () -> Void) async {
        do {
            try await stream.pump { await self.push($0, resume) }
            finish(.complete, resume)
        } catch {
            finish(.failed(error), resume)
        }
    }

    private func push(_ chunk: [UInt8], _ resume: @Sendable () -> Void) async -> Bool {
        guard !chunk.isEmpty else { return isOpen }
        await waitForRoom()
        let (taken, wakes): (Bool, Bool) = contents.withLock { contents in
            guard case .open = contents.end else { return (false, false) }
            if contents.start > Self.capacityBytes {
                contents.bytes.removeFirst(contents.start)
                contents.start = 0
            }
            contents.bytes.append(contentsOf: chunk)
            defer { contents.readerWaits = false }
            return (true, contents.readerWaits)
        }
        if wakes { resume() }
        return taken
    }

    private var isOpen: Bool {
        contents.withLock { contents in
            if case .open = contents.end { true } else { false }
        }
    }

    /// Returns when there is room, or when the pipe is closed.
    private func waitForRoom() async {
        await withCheckedContinuation { continuation in
            let hasRoom = contents.withLock { contents in
                guard case .open = contents.end, contents.count >= Self.capacityBytes else { return true }
                contents.writer = continuation
                return false
            }
            if hasRoom { continuation.resume() }
        }
    }

    private func finish(_ end: End, _ resume: @Sendable () -> Void) {
        let wakes = contents.withLock { contents in
            guard case .open = contents.end else { return false }
            contents.end = end
            defer { contents.readerWaits = false }
            return contents.readerWaits
        }
        if wakes { resume() }
    }

    /// Closes the pipe when the transfer is over, and releases a waiting producer.
    func close() {
        let writer = contents.withLock { contents in
            if case .open = contents.end { contents.end = .closed }
            return contents.writer.take()
        }
        writer?.resume()
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> UploadRead {
        let (answer, writer): (UploadRead, CheckedContinuation<Void, Never>?) = contents.withLock { contents in
            let count = min(buffer.count, contents.count)
            guard count > 0 else {
                switch contents.end {
                case .open:
                    contents.readerWaits = true
                    return (.pause, nil)
                case .complete: return (.end, nil)
                case .failed, .closed: return (.abort, nil)
                }
            }
            let start = contents.start
            contents.bytes.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count]))
            }
            contents.start += count
            if contents.start == contents.bytes.count {
                contents.bytes.removeAll(keepingCapacity: true)
                contents.start = 0
            }
            return (.bytes(count), contents.count < Self.capacityBytes ? contents.writer.take() : nil)
        }
        writer?.resume()
        return answer
    }
}
