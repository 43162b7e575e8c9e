import MusterCurl
import Testing

/// libcurl blocks its thread in some places while it waits for an FTP or SFTP server. HTTP transfers must go on meanwhile.
@Suite(.timeLimit(.minutes(2)))
struct IsolationTests {
    /// Fetches by HTTP while `request` hangs. `request` must not end before.
    private func httpGoesOn(besides request: TransferRequest, once hasBegun: Signal) async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
        } _: { loop, http in
            let hanging = Recorder()
            let id = try loop.start(request, handler: hanging)
            await hasBegun.wait()
            for _ in 0..<3 {
                let end = try await bodyEnd(loop, TransferRequest(url: http.url()))
                #expect(end == .framed)
            }
            #expect(hanging.record.outcomes.isEmpty)
            // A cancel ends the transfer even while libcurl blocks.
            loop.cancel(id)
            guard case .cancelled = await hanging.outcome() else {
                Issue.record("\(hanging.record.outcomes)")
                return
            }
        }
    }

    @Test(arguments: ["ftp", "ftps", "sftp"])
    func serverThatNeverGreetsHoldsUpNoOtherTransfer(scheme: String) async throws {
        let hasBegun = Signal()
        let server = try RawServer { connection, _ in
            hasBegun.fire()
            connection.waitForPeerToClose()
        }
        defer { server.stop() }
        var request = TransferRequest(url: "\(scheme)://127.0.0.1:\(server.port)/file")
        request.allowedSchemes = [scheme]
        request.connectTimeout = .seconds(100)
        try await httpGoesOn(besides: request, once: hasBegun)
    }

    @Test(arguments: ["RETR", "SIZE", "QUIT"])
    func serverThatFallsSilentHoldsUpNoOtherTransfer(command: String) async throws {
        let hasBegun = Signal()
        var replies = [command: ""]
        if command == "QUIT" { replies["RETR"] = "550 no" }
        let server = try ScriptedFTP(content: patternBytes(1000), replies: replies) {
            if $0.hasPrefix(command) { hasBegun.fire() }
        }
        defer { server.stop() }
        var request = TransferRequest(url: server.url)
        request.allowedSchemes = ["ftp"]
        request.firstByteTimeout = .seconds(100)
        try await httpGoesOn(besides: request, once: hasBegun)
    }
}
