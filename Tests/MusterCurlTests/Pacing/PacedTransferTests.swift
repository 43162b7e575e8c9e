import MusterCurl
import Synchronization
import Testing

/// A clock that only moves when the test says so.
final class HandClock: Sendable {
    private let value = Atomic<UInt64>(1_000_000_000)

    var now: UInt64 { value.load(ordering: .acquiring) }

    func pass(milliseconds: UInt64) { value.add(milliseconds * 1_000_000, ordering: .acquiringAndReleasing) }
}

/// Counts the bytes of all its recorders, which share one budget, against what the budget allows by a manual clock.
final class PaceWitness: Sendable {
    private struct Contents {
        var delivered: Int64 = 0
        var allowed: Int64 = 0
        var largestExcess: Int64 = 0
        var waiters: [(Int64, CheckedContinuation<Void, Never>)] = []
    }

    static let rate: Int64 = 4_000_000
    /// The largest piece that libcurl hands out.
    static let piece: Int64 = 16_384

    let clock = HandClock()
    let budget: ByteBudget
    private let contents = Mutex(Contents())

    init() {
        budget = ByteBudget(bytesPerSecond: Self.rate, clock: { [clock] in clock.now })
    }

    /// The most bytes by which the transfers were ever ahead of what was allowed.
    var largestExcess: Int64 { contents.withLock { $0.largestExcess } }
    var delivered: Int64 { contents.withLock { $0.delivered } }

    func recorder() -> Recorder {
        Recorder(onHead: { _ in .accept(limit: nil) }, onBytes: { [self] in count($0) })
    }

    private func count(_ bytes: Int) {
        let done = contents.withLock { contents in
            contents.delivered += Int64(bytes)
            contents.largestExcess = max(contents.largestExcess, contents.delivered - contents.allowed)
            let delivered = contents.delivered
            defer { contents.waiters.removeAll { $0.0 <= delivered } }
            return contents.waiters.filter { $0.0 <= delivered }.map(\.1)
        }
        for waiter in done { waiter.resume() }
    }

    /// Advances the clock, and waits until all bytes that it allows have come, at most `total`.
    func pass(milliseconds: UInt64, ofAtMost total: Int64) async {
        let target = contents.withLock { contents in
            contents.allowed += Self.rate * Int64(milliseconds) / 1_000
            return min(contents.allowed, total)
        }
        clock.pass(milliseconds: milliseconds)
        await withCheckedContinuation { continuation in
            let isThere = contents.withLock { contents in
                if contents.delivered < target { contents.waiters.append((target, continuation)) }
                return contents.delivered >= target
            }
            if isThere { continuation.resume() }
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct PacedTransferTests {
    /// Runs the requests under one budget, step by step. Checks that no more bytes ever came than the clock allowed plus one
    /// piece, and that all of them came in the end.
    private func run(_ requests: [TransferRequest], of content: [UInt8], _ loop: CurlLoop) async throws {
        let witness = PaceWitness()
        var recorders: [Recorder] = []
        for var request in requests {
            request.budgets = [ByteBudget(), witness.budget]
            let recorder = witness.recorder()
            try loop.start(request, handler: recorder)
            recorders.append(recorder)
        }
        let total = Int64(content.count * requests.count)
        // Before time passes, no more than a piece is allowed.
        var use = witness.budget.takeUse()
        var bytes = use.bytes
        while !use.isShort {
            await Task.yield()
            use = witness.budget.takeUse()
            bytes += use.bytes
        }
        while witness.delivered < total { await witness.pass(milliseconds: 50, ofAtMost: total) }
        for recorder in recorders {
            let outcome = await recorder.outcome()
            #expect(outcome.error == nil && outcome.end != nil, "\(outcome)")
            let isWhole = isSame(recorder.record.body, content)
            #expect(isWhole)
        }
        #expect(witness.largestExcess <= PaceWitness.piece)
        #expect(bytes + witness.budget.takeUse().bytes == total)
        #expect(witness.budget.takeUse() == ByteBudget.Use(bytes: 0, isShort: false))
    }

    @Test(.enabled(if: Nginx.openssl != nil), arguments: [false, true], [HTTPVersionPreference.http1, .http2OverTLS])
    func transfersUnderOneBudgetGetItsRateTogether(tls: Bool, version: HTTPVersionPreference) async throws {
        let content = patternBytes(700_001)
        try await withNginx(tls: tls) { loop, nginx in
            try nginx.write(content, to: "file")
            var request = TransferRequest(url: nginx.url("/file"))
            request.caFile = tls ? nginx.certificate : nil
            request.httpVersion = version
            try await run(Array(repeating: request, count: 3), of: content, loop)
        }
    }

    @Test func bodyInChunksIsPaced() async throws {
        let content = patternBytes(300_000)
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in stride(from: 0, to: content.count, by: 50_000) {
                connection.send("C350\r\n")
                connection.send(Array(content[start..<start + 50_000]))
                connection.send("\r\n")
            }
            connection.send("0\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            try await run([TransferRequest(url: server.url())], of: content, loop)
        }
    }

    @Test func bodyThatEndsWithItsConnectionIsPaced() async throws {
        let content = patternBytes(300_000)
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            connection.send(content)
            connection.finish()
        } _: { loop, server in
            try await run([TransferRequest(url: server.url())], of: content, loop)
        }
    }

    @Test(.enabled(if: FTPServer.obstacle == nil)) func filesOfFTPServersArePaced() async throws {
        let content = patternBytes(400_000)
        try await withFTPServer { loop, server in
            try server.write(content, to: "file")
            try await run(Array(repeating: server.request("/file"), count: 2), of: content, loop)
        }
    }

    @Test(.enabled(if: SSHServer.obstacle == nil)) func filesOfSSHServersArePaced() async throws {
        let content = patternBytes(400_000)
        try await withSSHServer { loop, server in
            try server.write(content, to: "file")
            try await run(Array(repeating: server.request("file"), count: 2), of: content, loop)
        }
    }

    @Test(.enabled(if: Nginx.path != nil)) func bytesOfSmallFilesCount() async throws {
        let content = patternBytes(16_000)
        try await withNginx { loop, nginx in
            try nginx.write(content, to: "file")
            try await run(Array(repeating: TransferRequest(url: nginx.url("/file")), count: 100), of: content, loop)
        }
    }

    /// Measures the rate by the wall clock. The result is printed and not checked, since the machine may be busy.
    @Test(.enabled(if: Nginx.path != nil), arguments: [(1, 8 << 20), (8, 1 << 20), (128, 64 << 10)])
    func rateByTheWallClockIsPrinted(transfers: Int, bytes: Int) async throws {
        let content = patternBytes(bytes)
        try await withNginx { loop, nginx in
            try nginx.write(content, to: "file")
            var request = TransferRequest(url: nginx.url("/file"))
            let rate: Int64 = 4 << 20
            request.budgets = [ByteBudget(bytesPerSecond: rate)]
            // Noted on the loop's own thread, because tasks may have to wait for a thread.
            let last = Mutex(ContinuousClock.now)
            let recorders = (0..<transfers).map { _ in
                Recorder(onBytes: { _ in last.withLock { $0 = .now } })
            }
            let start = ContinuousClock.now
            for recorder in recorders { try loop.start(request, handler: recorder) }
            for recorder in recorders {
                #expect(await recorder.outcome().end == .framed)
                let isWhole = isSame(recorder.record.body, content)
                #expect(isWhole)
            }
            let seconds = start.duration(to: last.withLock { $0 }) / .seconds(1)
            let share = Double(transfers * bytes) / seconds / Double(rate) * 100
            print("\(transfers) × \(bytes) bytes under one budget: \(share) % of its rate over \(seconds) s")
        }
    }

    @Test(.enabled(if: Nginx.path != nil)) func transferWithoutARateIsNotCounted() async throws {
        try await withNginx { loop, nginx in
            let budget = ByteBudget()
            var request = TransferRequest(url: nginx.url("/small"))
            request.budgets = [budget]
            let (outcome, _) = try await fetch(loop, request)
            #expect(outcome.end == .framed)
            #expect(budget.takeUse().bytes == 0)
        }
    }

    @Test(.enabled(if: Nginx.path != nil)) func strictestBudgetDecides() async throws {
        try await withNginx { loop, nginx in
            let closed = ByteBudget(bytesPerSecond: 0)
            let wide = ByteBudget(bytesPerSecond: 1 << 40)
            var request = TransferRequest(url: nginx.url("/small"))
            request.budgets = [wide, closed]
            let recorder = Recorder()
            let id = try loop.start(request, handler: recorder)
            var other = request
            other.budgets = [wide]
            let free = try await fetch(loop, other)
            #expect(free.outcome.end == .framed)
            // Only the budget may let the transfer go on.
            loop.resume(id)
            _ = try await fetch(loop, other)
            #expect(recorder.record.pieces == 0)
            #expect(closed.takeUse() == ByteBudget.Use(bytes: 0, isShort: true))
            closed.limit(to: nil)
            #expect(await recorder.outcome().end == .framed)
            #expect(wide.takeUse().bytes == 3 * 11)
        }
    }

    @Test(.enabled(if: Nginx.path != nil)) func waitingTransferIsCancelled() async throws {
        try await withNginx { loop, nginx in
            var request = TransferRequest(url: nginx.url("/small"))
            request.budgets = [ByteBudget(bytesPerSecond: 0)]
            let head = Signal()
            let recorder = Recorder(onHead: { _ in
                head.fire()
                return .accept(limit: nil)
            })
            let id = try loop.start(request, handler: recorder)
            await head.wait()
            loop.cancel(id)
            guard case .cancelled = await recorder.outcome() else {
                Issue.record("not cancelled")
                return
            }
            #expect(recorder.record.pieces == 0)
        }
    }

    @Test(.enabled(if: Nginx.path != nil)) func pacedTransferIsNotTooSlow() async throws {
        let content = patternBytes(150_000)
        try await withNginx { loop, nginx in
            try nginx.write(content, to: "file")
            var request = TransferRequest(url: nginx.url("/file"))
            request.budgets = [ByteBudget(bytesPerSecond: 200_000)]
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 100_000_000, over: .milliseconds(100))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(isSame(record.body, content))
        }
    }

    @Test func peerThatSendsNothingIsTooSlowUnderABudgetToo() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\ndrip")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.budgets = [ByteBudget(bytesPerSecond: 1_000_000)]
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 1000, over: .milliseconds(100))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "too slow", "\(outcome)")
            #expect(record.body == Array("drip".utf8))
        }
    }
}
