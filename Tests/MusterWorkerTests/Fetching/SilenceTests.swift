import MusterAPI
import MusterCore
import MusterCurl
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// How long the worker waits for a source that is silent or slow (adr/0028, adr/0031).
@Suite struct SilenceTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 77, size: 9 * mebibyte))

    /// If another request may be served, silence ends this one at its limit; if this request may be the only one, after two minutes.
    @Test(arguments: [true, false]) func silenceIsToleratedForTwoMinutesIfTheRequestMayBeTheOnlyOne(
        mayBeOnly: Bool
    ) async throws {
        try await withBench { bench, _ in
            let lease = LeaseDocument.first("http://127.0.0.1/f")
            let plan = FetchPlan(lease, source: try #require(lease.source))
            let part = try #require(bench.station.equipment).directory.part(task: lease.task, version: lease.version)
            let writer = ChunkWriter(part, after: lease.resume, gate: bench.gate, control: LeaseControl())
            let transfer = FetchTransfer(
                plan.question(from: 0), plan: plan, writer: writer, accepted: { _ in true }, received: { _ in },
                mayBeOnly: { mayBeOnly })
            let ends = { (count: Int) in (0..<count).map { _ in transfer.isTooSlow() } }
            #expect(ends(2) == (mayBeOnly ? [false, true] : [true, true]), "a minute each")
            _ = transfer.head(
                ResponseHead(status: 200, headers: ["Content-Length": "1000"], bodyFraming: .contentLength(1_000)))
            #expect(ends(1) == [!mayBeOnly], "half a minute each")
            #expect(ends(3) == (mayBeOnly ? [false, false, true] : [true, true, true]))
            _ = [UInt8(1)].withUnsafeBytes { transfer.body($0) }
            #expect(ends(4) == (mayBeOnly ? [false, false, false, true] : [true, true, true, true]))
        }
    }

    /// Only before the head: a silent body has its own rules.
    @Test func silenceThatIsOvertakenEndsBeforeThePatience() async throws {
        try await withBench { bench, _ in
            let lease = LeaseDocument.first("http://127.0.0.1/f")
            let plan = FetchPlan(lease, source: try #require(lease.source))
            let part = try #require(bench.station.equipment).directory.part(task: lease.task, version: lease.version)
            let isOvertaken = Mutex(false)
            func transfer() -> FetchTransfer {
                let writer = ChunkWriter(part, after: lease.resume, gate: bench.gate, control: LeaseControl())
                return FetchTransfer(
                    plan.question(from: 0), plan: plan, writer: writer, accepted: { _ in true }, received: { _ in },
                    mayBeOnly: { true }, looks: 3, isOvertaken: { isOvertaken.withLock { $0 } })
            }
            let patient = transfer()
            #expect((0..<6).map { _ in patient.isTooSlow() } == [false, false, false, false, false, true])
            let overtaken = transfer()
            #expect(!overtaken.isTooSlow())
            isOvertaken.withLock { $0 = true }
            #expect(overtaken.isTooSlow())
        }
    }

    /// An origin at its limit may leave requests without an answer, and answer the next ones (adr/0054).
    @Test func silentFileIsAskedForOnceMoreIfOthersAreAnswered() async throws {
        try await withBench { bench, origin in
            let file = ScriptedOrigin.File(.seeded(seed: 78, size: 1_000))
            for name in ["a", "b", "c", "d"] { origin.serve("/\(name)", file) }
            origin.misbehave("/b", .hangBeforeHeaders, when: .first(1))
            origin.misbehave("/c", .hangBeforeHeaders)
            let address = try SourceURL(validating: origin.url("/")).origin
            bench.context.witnesses.servedAgain(address)
            func fetch(_ name: String, task: Int64) async -> JobEnding {
                await bench.run(LeaseDocument.first(origin.url("/\(name)"), task: task, path: name))
            }
            async let silent = fetch("b", task: 2)
            try await origin.waitForRequests("/b", count: 1)
            #expect(await fetch("a", task: 1).finished?.size == 1_000)
            bench.age.now.add(10_000_000_000, ordering: .sequentiallyConsistent)
            #expect(await silent.finished?.size == 1_000)
            #expect(origin.requests.filter { $0.path == "/b" }.count == 2)
            #expect(bench.context.witnesses.isSilentAtLimit(address))
            // What is known of the origin by now needs no second request.
            async let refused = fetch("c", task: 3)
            try await origin.waitForRequests("/c", count: 1)
            #expect(await fetch("d", task: 4).finished?.size == 1_000)
            bench.age.now.add(10_000_000_000, ordering: .sequentiallyConsistent)
            let failure = await refused.failure
            #expect(failure?.kind == .timeout && failure?.isLimit == true, "\(failure as Any)")
            #expect(origin.requests.filter { $0.path == "/c" }.count == 1)
        }
    }

    /// A file that takes its time beside others has the usual patience with its second request.
    @Test func fileThatIsSilentAgainShowsNoLimit() async throws {
        try await withBench { bench, origin in
            let file = ScriptedOrigin.File(.seeded(seed: 79, size: 1_000))
            for name in ["a", "b"] { origin.serve("/\(name)", file) }
            origin.misbehave("/b", .hangBeforeHeaders)
            let address = try SourceURL(validating: origin.url("/")).origin
            bench.context.witnesses.servedAgain(address)
            var lease = LeaseDocument.first(origin.url("/b"), task: 2, path: "b")
            lease.options = FetchOptions()
            lease.options?.firstByteTimeoutSeconds = 6
            async let silent = bench.run(lease)
            try await origin.waitForRequests("/b", count: 1)
            #expect(await bench.run(.first(origin.url("/a"), task: 1, path: "a")).finished?.size == 1_000)
            bench.age.now.add(10_000_000_000, ordering: .sequentiallyConsistent)
            try await origin.waitForRequests("/b", count: 2)
            // Without the range, after the patience.
            try await origin.waitForRequests("/b", count: 3)
            #expect(!bench.context.witnesses.isSilentAtLimit(address))
            #expect(await silent.failure?.isLimit != true)
        }
    }

    /// Another request brings the piece sooner (adr/0037).
    @Test func pieceThatHasKeptItsPaceIsBorneForAsLongAsAnyOther() async throws {
        try await withBench { bench, _ in
            let known = Representation(size: 9 * mebibyte, etag: "\"one\"")
            var lease = LeaseDocument.chunk("http://127.0.0.1/f", mebibyte, 2 * mebibyte, of: known)
            (lease.reach, lease.pace) = (9 * mebibyte, 1_000)
            let plan = FetchPlan(lease, source: try #require(lease.source))
            let part = try #require(bench.station.equipment).directory.part(task: lease.task, version: lease.version)
            let writer = ChunkWriter(part, after: lease.resume, gate: bench.gate, control: LeaseControl())
            let transfer = FetchTransfer(
                plan.question(from: mebibyte), plan: plan, writer: writer, accepted: { _ in true }, received: { _ in })
            var head = ResponseHead(status: 206, bodyFraming: .contentLength(8 * mebibyte))
            head.headers.append("ETag", "\"one\"")
            head.headers.append("Content-Range", "bytes \(mebibyte)-\(9 * mebibyte - 1)/\(9 * mebibyte)")
            _ = transfer.head(head)
            let bytes = [UInt8](repeating: 1, count: 19_999)
            _ = bytes.withUnsafeBytes { transfer.body($0) }
            #expect(transfer.isTooSlow(), "20 s at 1,000 bytes per second")
            _ = bytes.prefix(1).withUnsafeBytes { transfer.body($0) }
            let ends = (0..<15).map { _ in transfer.isTooSlow() }
            #expect(ends == Array(repeating: false, count: 14) + [true], "half a minute")
        }
    }

    @Test func firstRequestAloneMayBeTheOnlyOne() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        func plan() throws -> FetchPlan { FetchPlan(lease, source: try #require(lease.source)) }
        try #expect(!plan().mayBeOnly)
        lease.asksForAll = true
        var first = try plan()
        #expect(first.mayBeOnly)
        first.answer = OriginAnswer(nil, TransferStatistics())
        #expect(!first.mayBeOnly, "another one was made")
        lease.options = FetchOptions()
        lease.options?.lowSpeedSeconds = 30
        try #expect(!plan().mayBeOnly, "what the options say stands")
    }

    /// A trial of another source: its content is compared with that of the version by its size alone.
    @Test(arguments: [false, true]) func trialShowsWhetherAnotherSourceIsFaster(hasOtherSize: Bool) async throws {
        try await withBench {
            // The machine may stand still for longer than the usual time of a trial.
            $0.trialTime = .seconds(60)
        } _: { bench, origin in
            origin.serve("/f", file)
            let known = Representation(size: (hasOtherSize ? 8 : 9) * mebibyte, etag: "\"of another\"")
            var lease = LeaseDocument.chunk(origin.url("/f"), 0, mebibyte, of: known)
            lease.kind = .trial
            lease.isOtherMirror = true
            let ending = await bench.run(lease)
            if case .servedAgain = ending {
                #expect(!hasOtherSize)
            } else {
                #expect(hasOtherSize && ending.failure?.kind == .sizeMismatch, "\(ending)")
            }
            let address = try SourceURL(validating: origin.url("/f")).origin
            #expect(!bench.context.conduct.isFasterPlainly(address), "nothing is known of its own parts")
            #expect(origin.requests.count == 1)
        }
    }
}
