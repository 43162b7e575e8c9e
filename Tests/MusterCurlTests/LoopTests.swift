import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LoopTests {
    @Test func shutdownEndsFiftyRunningTransfers() async throws {
        let server = try RawServer { connection, number in
            _ = connection.readHead()
            // Some hang before the head, some in the body, some send without end.
            if number % 3 == 0 { return connection.waitForPeerToClose() }
            var goesOn = connection.send("HTTP/1.1 200 OK\r\n\r\nbegun")
            if number % 3 == 1 { return connection.waitForPeerToClose() }
            while goesOn { goesOn = connection.send(patternBytes(65536)) }
        }
        defer { server.stop() }
        let loop = try CurlLoop()
        let recorders = (0..<50).map { _ in Recorder() }
        for recorder in recorders { try loop.start(TransferRequest(url: server.url()), handler: recorder) }
        await withTaskGroup(of: Void.self) { group in
            for recorder in recorders { group.addTask { await recorder.bodyBegan.wait() } }
            for _ in 0..<20 { await group.next() }
            await loop.shutdown()
            // Releases the tasks that wait for recorders without a body.
            for recorder in recorders { recorder.bodyBegan.fire() }
        }
        let records = recorders.map(\.record)
        for record in records {
            #expect(record.outcomes.count == 1)
            #expect(record.misplaced == 0)
            if case .cancelled = record.outcomes.first { continue }
            Issue.record("\(record.outcomes)")
        }
        #expect(throws: CurlLoopError.closed) {
            try loop.start(TransferRequest(url: server.url()), handler: Recorder())
        }
        await loop.shutdown()
        for (recorder, record) in zip(recorders, records) {
            #expect(recorder.record.body.count == record.body.count)
        }
    }

    @Test func shutdownFinishesTransfersThatHaveNotBegun() async throws {
        let loop = try CurlLoop()
        let recorders = (0..<100).map { _ in Recorder() }
        for recorder in recorders { try loop.start(TransferRequest(url: "http://127.0.0.1:1/"), handler: recorder) }
        async let first: Void = loop.shutdown()
        async let second: Void = loop.shutdown()
        _ = await (first, second)
        #expect(recorders.allSatisfy { $0.record.outcomes.count == 1 })
    }

    @Test func droppedLoopFinishesItsTransfers() async throws {
        let server = try RawServer { connection, _ in connection.waitForPeerToClose() }
        defer { server.stop() }
        let recorder = Recorder()
        var loop: CurlLoop? = try CurlLoop()
        try loop?.start(TransferRequest(url: server.url()), handler: recorder)
        loop = nil
        guard case .cancelled = await recorder.outcome() else {
            Issue.record("not cancelled")
            return
        }
    }

    @Test func handlersAreReleasedAfterTheEnd() async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
        } _: { loop, server in
            weak var released: Recorder?
            do {
                let recorder = Recorder()
                released = recorder
                _ = try await fetch(loop, TransferRequest(url: server.url()), recorder)
            }
            // The loop releases a handler after `finished` has returned; the end of a later transfer proves that it has.
            _ = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(released == nil)
        }
    }

    @Test func handlerMayStartAndCancelFromItsCalls() async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
        } _: { loop, server in
            let url = server.url()
            let inner = Recorder()
            let outer = Recorder(onBody: { _ in
                if (try? loop.start(TransferRequest(url: url), handler: inner)) == nil { inner.bodyBegan.fire() }
                return .proceed
            })
            let firstEnd = try await bodyEnd(loop, TransferRequest(url: url), outer)
            #expect(firstEnd == .framed)
            #expect(await inner.outcome().end == .framed)
        }
    }

    @Test(.enabled(if: Nginx.path != nil))
    func thousandRequestsShareFewConnections() async throws {
        try await withNginx(CurlLoopConfiguration(maxConnectionsPerHost: 4)) { loop, nginx in
            let url = nginx.url("/small")
            let recorders = (0..<1000).map { _ in Recorder() }
            for recorder in recorders { try loop.start(TransferRequest(url: url), handler: recorder) }
            var opened = 0
            for recorder in recorders {
                let outcome = await recorder.outcome()
                #expect(outcome.end == .framed)
                #expect(recorder.record.body == Array("small body\n".utf8))
                if !outcome.statistics.connectionReused { opened += 1 }
            }
            #expect(opened <= 4)
        }
    }
}
