import MusterCurl
import Synchronization
import Testing

/// Origins that serve one connection at a time (range contract, row 22b).
@Suite(.timeLimit(.minutes(1)))
struct IdleConnectionTests {
    /// A transfer that lets go of idle connections when it waits, in all of these loops.
    private final class Impatient: TransferHandler {
        private let recorder = Recorder()
        private let loops: [CurlLoop]
        private let request: TransferRequest
        private let stalls = Atomic<Int>(0)

        init(_ request: TransferRequest, _ loops: [CurlLoop]) {
            self.request = request
            self.loops = loops
        }

        var stallCount: Int { stalls.load(ordering: .sequentiallyConsistent) }

        func outcome() async -> TransferOutcome { await recorder.outcome() }

        func head(_ head: ResponseHead) -> HeadVerdict { recorder.head(head) }

        func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict { recorder.body(bytes) }

        func stalled() -> Bool {
            stalls.add(1, ordering: .sequentiallyConsistent)
            for loop in loops { loop.closeIdle(like: request) }
            return true
        }

        func finished(_ outcome: TransferOutcome) { recorder.finished(outcome) }
    }

    /// Serves a connection to its end before it looks at the next one.
    private static func oneAtATime() -> @Sendable (RawConnection, Int) -> Void {
        let turn = Turn()
        return { connection, _ in
            turn.take {
                while !connection.readHead().isEmpty {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                }
            }
        }
    }

    private final class Turn: Sendable {
        private let lock = Mutex(())

        func take(_ body: () -> Void) { lock.withLock { _ in body() } }
    }

    @Test func idleConnectionIsClosedForTransfersThatWait() async throws {
        try await withServer(Self.oneAtATime()) { loop, server in
            try await withLoop { other in
                var request = TransferRequest(url: server.url())
                request.firstByteTimeout = .seconds(30)
                // Leaves a connection in the pool of another loop.
                let first = try await bodyEnd(other, request)
                #expect(first == .framed)
                let handlers = (0..<3).map { _ in Impatient(request, [loop, other]) }
                for handler in handlers { try loop.start(request, handler: handler) }
                for handler in handlers {
                    let outcome = await handler.outcome()
                    #expect(outcome.end == .framed, "\(outcome)")
                }
                #expect(handlers.contains { $0.stallCount > 0 })
                // The idle ones, and those that waited; none was opened only to be closed.
                #expect(server.acceptedConnections == 4)
            }
        }
    }

    @Test func nobodyIsDisturbedWhereNobodyWaits() async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
        } _: { loop, server in
            let request = TransferRequest(url: server.url())
            for _ in 0..<3 {
                let handler = Impatient(request, [loop])
                try loop.start(request, handler: handler)
                let end = await handler.outcome().end
                #expect(end == .framed)
                #expect(handler.stallCount == 0)
            }
            #expect(server.acceptedConnections == 1)
            // Without an idle connection there is nothing to close, and none is opened.
            loop.closeIdle(like: TransferRequest(url: "http://127.0.0.1:\(server.port)/other"))
            loop.closeIdle(like: request)
            let end = try await bodyEnd(loop, request)
            #expect(end == .framed)
        }
    }
}
