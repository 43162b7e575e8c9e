import Dispatch
import Synchronization
import Testing

@testable import MusterCurl

/// Closing idle connections: those of origins that serve one at a time (range contract, row 22b), and those beyond recent use (I5).
@Suite(.timeLimit(.minutes(1)))
struct IdleConnectionTests {
    /// A transfer that, while it waits, closes the idle connections to its origin in all of these loops.
    private final class Impatient: TransferHandler {
        private let recorder = Recorder()
        private let loops: [CurlLoop]
        private let request: TransferRequest
        private let stalls = Atomic<Int>(0)
        private let toldTwice: (@Sendable () -> Void)?

        init(_ request: TransferRequest, _ loops: [CurlLoop], toldTwice: (@Sendable () -> Void)? = nil) {
            self.request = request
            self.loops = loops
            self.toldTwice = toldTwice
        }

        var stallCount: Int { stalls.load(ordering: .sequentiallyConsistent) }

        func outcome() async -> TransferOutcome { await recorder.outcome() }

        func head(_ head: ResponseHead) -> HeadVerdict { recorder.head(head) }

        func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict { recorder.body(bytes) }

        func stalled() -> Bool {
            for loop in loops { loop.closeIdle(like: request) }
            guard stalls.add(1, ordering: .sequentiallyConsistent).newValue == 2, let toldTwice else { return true }
            toldTwice()
            return false
        }

        func finished(_ outcome: TransferOutcome) { recorder.finished(outcome) }
    }

    /// Serves one connection to its end before the next.
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
                let handlers = (0..<3).map { _ in Impatient(request, [other]) }
                for handler in handlers { try loop.start(request, handler: handler) }
                for handler in handlers {
                    let outcome = await handler.outcome()
                    #expect(outcome.end == .framed, "\(outcome)")
                }
                #expect(handlers.contains { $0.stallCount > 0 })
                // The idle connection, and those of the three transfers; none was opened only to be closed.
                #expect(server.acceptedConnections == 4)
            }
        }
    }

    @Test func idleConnectionIsKeptWhileNoTransferWaits() async throws {
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

    /// libcurl would choose the connection of a stream that waits for its answer again and again.
    @Test(.enabled(if: Nginx.openssl != nil)) func connectionWithAStreamThatWaitsIsNoIdleOne() async throws {
        try await withServer { connection, _ in
            connection.waitForPeerToClose()
        } _: { _, silent in
            let location = "location /silent { proxy_pass \(silent.url()); }"
            try await withNginx(tls: true, locations: location) { loop, nginx in
                var request = TransferRequest(url: nginx.url("/silent"))
                request.caFile = nginx.certificate
                let (waits, wait) = AsyncStream.makeStream(of: Void.self)
                let handler = Impatient(request, [loop]) { wait.finish() }
                let first = try loop.start(request, handler: handler)
                for await _ in waits {}
                let last = try loop.start(request, handler: Recorder())
                #expect(last.value - first.value < 10, "each idle connection that is closed takes a number")
                loop.cancel(first)
                loop.cancel(last)
                _ = await handler.outcome()
            }
        }
    }

    /// A slow origin is asked on one connection, request after request. It answers when the transfer is told for the second time that it
    /// waits. What the first notice closes is closed by then, and the connection of the answer isn't idle before.
    @Test func transferThatWaitedKeepsItsConnection() async throws {
        let hasWaited = DispatchSemaphore(value: 0)
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty {
                hasWaited.wait()
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        } _: { loop, server in
            let request = TransferRequest(url: server.url())
            for _ in 0..<2 {
                let handler = Impatient(request, [], toldTwice: { hasWaited.signal() })
                try loop.start(request, handler: handler)
                let end = await handler.outcome().end
                #expect(end == .framed)
                #expect(handler.stallCount > 0)
            }
            #expect(server.acceptedConnections == 1)
        }
    }

    @Test func unusedConnectionsAreClosed() async throws {
        let (closings, closed) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
            closed.yield()
        } _: { _, server in
            try await withLoop(CurlLoopConfiguration(idlePatience: .milliseconds(20))) { loop in
                let request = TransferRequest(url: server.url())
                let end = try await bodyEnd(loop, request)
                #expect(end == .framed)
                // libcurl would keep it for two minutes.
                for await _ in closings { break }
                #expect(server.acceptedConnections == 1)
            }
        }
    }

    @Test func noMoreConnectionsAreKeptThanRanAtOnceLately() {
        var watch = IdleWatch(patience: .seconds(1))
        let request = TransferRequest(url: "http://origin.test/1")
        let second: UInt64 = 1_000_000_000
        for _ in 0..<3 { watch.begin(request, at: 0) }
        for _ in 0..<3 { watch.end(request) }
        watch.begin(TransferRequest(url: "http://origin.test/2"), at: second / 2)
        #expect(watch.surplus(at: second).isEmpty, "three ran at once")
        watch.end(request)
        watch.begin(request, at: second + 1)
        #expect(watch.surplus(at: 2 * second - 1).isEmpty, "not yet")
        #expect(watch.surplus(at: 2 * second).map(\.url) == [request.url], "one is enough")
        #expect(watch.surplus(at: 3 * second).isEmpty)
        watch.end(request)
        #expect(watch.surplus(at: 4 * second).isEmpty)
        #expect(watch.surplus(at: 5 * second).count == 1 && watch.earliest == .max, "nothing is left to look at")
    }
}
