import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import NIOCore
import ServiceLifecycle
import Synchronization

/// The log as a stream of server-sent events: `id` is the position, `event` the type, `data` the CloudEvent on one line.
struct EventStream: Sendable {
    let reader: EventReader
    /// The events to stream, and where to start.
    var question: EventReader.Question

    /// How long the stream may be silent before a comment shows that it is alive.
    static let silence = Duration.seconds(15)

    /// Writes until the reader disconnects, the coordinator stops, or a read fails, for example because the events at the
    /// reader's place have been dropped. After a failure the reader connects again, and gets the error as its answer.
    func write(to writer: inout any ResponseBodyWriter) async throws {
        var question = question
        // Something has to go out at once: until then the reader does not know that it is connected.
        try await writer.write(ByteBuffer(string: ": the log follows\n\n"))
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            let page: EventPage
            do {
                page = try await reader.read(question, wait: Self.silence)
            } catch {
                // The head is sent: only the end of the stream can make the reader come again.
                break
            }
            question.after = page.stretch.next
            try await writer.write(try page.stream())
        }
        try await writer.finish(nil)
    }
}

/// Limits the number of streams.
final class StreamGate: Sendable {
    /// A place in the gate, free again when its last reference is gone: a stream that never began keeps no place.
    final class Place: Sendable {
        private let gate: StreamGate

        fileprivate init(gate: StreamGate) {
            self.gate = gate
        }

        deinit { gate.taken.withLock { $0 -= 1 } }
    }

    private let limit: Int
    private let taken = Mutex(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// Takes a place, if there is one.
    func enter() -> Place? {
        let isFree = taken.withLock { taken in
            guard taken < limit else { return false }
            taken += 1
            return true
        }
        return isFree ? Place(gate: self) : nil
    }
}
