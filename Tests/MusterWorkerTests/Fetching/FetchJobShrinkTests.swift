import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

@Suite struct FetchJobShrinkTests {
    private let size = 4 * mebibyte

    private func serve(_ origin: ScriptedOrigin, _ size: Int64? = nil) -> ScriptedOrigin.File {
        var file = ScriptedOrigin.File(.seeded(seed: 12, size: size ?? self.size))
        file.etag = "\"one\""
        origin.serve("/f", file)
        return file
    }

    private func chunk(
        _ origin: ScriptedOrigin,
        _ start: Int64,
        _ end: Int64,
        of size: Int64? = nil,
        version: FetchOptions.HTTPVersion? = nil
    ) -> LeaseDocument {
        let known = Representation(size: size ?? self.size, etag: "\"one\"")
        var lease = LeaseDocument.chunk(origin.url("/f"), start, end, of: known)
        lease.options = FetchOptions()
        lease.options?.httpVersion = version
        return lease
    }

    @Test func chunkThatIsNotBegunIsAskedForUpToTheNewEnd() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            let lease = chunk(origin, mebibyte, 3 * mebibyte)
            let control = LeaseControl(ChunkBound(lease))
            #expect(control.shrink(to: 2 * mebibyte) == 2 * mebibyte)
            let ending = await bench.run(lease, control: control)
            let bytes = file.content.bytes(in: mebibyte..<2 * mebibyte)
            #expect(ending.durable == DurablePrefix(offset: 2 * mebibyte, crc: crc(bytes)))
            #expect(origin.requests.map(\.range) == ["bytes=\(mebibyte)-\(2 * mebibyte - 1)"])
        }
    }

    /// The origin goes silent after some bytes. The chunk ends at its present offset, without waiting for the origin.
    @Test(arguments: [ScriptedOrigin.Transport.plain, .h2])
    func chunkOfASilentOriginEndsWhereItIs(transport: ScriptedOrigin.Transport) async throws {
        try await withBench(transport) { bench, origin in
            let file = serve(origin)
            origin.hold("/f", afterBytes: mebibyte)
            let lease = chunk(origin, mebibyte, 3 * mebibyte, version: transport == .h2 ? .http2 : .http1)
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, 2 * mebibyte)
            #expect(control.shrink(to: mebibyte + 1) == 2 * mebibyte)
            let ending = await running
            let bytes = file.content.bytes(in: mebibyte..<2 * mebibyte)
            #expect(ending.durable == DurablePrefix(offset: 2 * mebibyte, crc: crc(bytes)))
            #expect(ending.finished == nil)
            // The job that gets the tail asks over the same loop.
            origin.release("/f")
            let tail = await bench.run(chunk(origin, 2 * mebibyte, 3 * mebibyte))
            #expect(tail.durable?.crc == crc(file.content.bytes(in: 2 * mebibyte..<3 * mebibyte)))
        }
    }

    @Test func wholeFileThatGaveItsTailAwayIsNotPutInPlace() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            origin.hold("/f", afterBytes: mebibyte)
            let lease = chunk(origin, 0, size)
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, mebibyte)
            #expect(control.shrink(to: 2 * mebibyte) == 2 * mebibyte)
            origin.release("/f")
            let ending = await running
            #expect(ending.durable?.offset == 2 * mebibyte)
            #expect(ending.finished == nil)
            #expect(!bench.exists("out/file.bin"))
            try #expect(bench.part(lease).count == 2 * mebibyte)
        }
    }

    @Test func firstChunkOfAFileThatTurnsOutLargerGivesItsTailAway() async throws {
        try await withBench { bench, origin in
            var file = ScriptedOrigin.File(.seeded(seed: 13, size: 9 * mebibyte))
            file.etag = "\"one\""
            origin.serve("/f", file)
            origin.hold("/f", afterBytes: mebibyte)
            let lease = LeaseDocument.first(origin.url("/f"))
            let control = LeaseControl(ChunkBound(lease))
            #expect(control.shrink(to: 4 * mebibyte) == 8 * mebibyte)
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, mebibyte)
            #expect(control.shrink(to: 4 * mebibyte) == 4 * mebibyte)
            origin.release("/f")
            #expect(await running.durable?.offset == 4 * mebibyte)
        }
    }

    /// The origin refused other requests for the tail that the job gave away.
    @Test func requestThatRunsBringsWhatIsGivenBackToIt() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            origin.hold("/f", afterBytes: mebibyte)
            let lease = chunk(origin, 0, size)
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, mebibyte)
            #expect(control.shrink(to: 2 * mebibyte) == 2 * mebibyte)
            #expect(control.bound.lengthen(to: 3 * mebibyte) == 3 * mebibyte)
            origin.release("/f")
            let ending = await running
            #expect(
                ending.durable
                    == DurablePrefix(offset: 3 * mebibyte, crc: crc(file.content.bytes(in: 0..<3 * mebibyte))))
            #expect(ending.finished == nil, "others may have the rest")
            #expect(origin.requests.count == 1)
        }
    }

    @Test func requestThatWasCutBringsNothingMore() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            let lease = chunk(origin, 0, size)
            let control = LeaseControl(ChunkBound(lease))
            #expect(control.shrink(to: 2 * mebibyte) == 2 * mebibyte)
            let ending = await bench.run(lease, control: control)
            #expect(ending.durable?.offset == 2 * mebibyte)
            #expect(control.bound.lengthen(to: 3 * mebibyte) == nil)
        }
    }

    /// A piece of a slow file: what follows it may come by the same request.
    @Test(arguments: [true, false])
    func pieceIsAskedForFurtherThanItGoesAndCutThereUnlessMoreIsGivenToIt(isGiven: Bool) async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            origin.hold("/f", afterBytes: mebibyte / 2)
            var lease = chunk(origin, mebibyte, 2 * mebibyte)
            lease.reach = size
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, mebibyte + mebibyte / 2)
            if isGiven { #expect(control.bound.lengthen(to: size) == size) }
            origin.release("/f")
            let ending = await running
            let end = isGiven ? size : 2 * mebibyte
            #expect(ending.durable == DurablePrefix(offset: end, crc: crc(file.content.bytes(in: mebibyte..<end))))
            #expect(origin.requests.map(\.range) == ["bytes=\(mebibyte)-\(size - 1)"])
            try #expect(bench.part(lease).count == Int(end))
        }
    }

    /// Another running request brings the piece sooner. Nothing is made durable, so that the piece can be given back to that request.
    @Test(arguments: [200 << 10, mebibyte] as [Int64])
    func pieceThatDoesNotKeepItsPaceFailsSoonWithNothingDurable(bytes: Int64) async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            origin.hold("/f", afterBytes: 64 << 10)
            var lease = chunk(origin, mebibyte, mebibyte + bytes)
            lease.options?.lowSpeedSeconds = 15
            (lease.reach, lease.pace) = (size, 100 << 10)
            let ending = await bench.run(lease)
            #expect(ending.failure?.kind == .tooSlow && ending.durable == nil)
            #expect(bench.news.value.isEmpty)
        }
    }

    @Test func endedJobAnswersWithTheOldEnd() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            let lease = chunk(origin, 0, mebibyte)
            let control = LeaseControl(ChunkBound(lease))
            #expect(await bench.run(lease, control: control).durable?.offset == mebibyte)
            #expect(control.shrink(to: 1_000) == mebibyte)
        }
    }

    @Test func bytesThatWaitForTheTrustAreCutAtTheNewEnd() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            origin.hold("/f", afterBytes: mebibyte)
            let lease = chunk(origin, 0, 2 * mebibyte)
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, mebibyte)
            bench.clock.now.store(5_000, ordering: .sequentiallyConsistent)
            _ = bench.context.takeReceived()
            origin.release("/f")
            while bench.context.takeReceived() == 0 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(control.shrink(to: mebibyte + 5) == mebibyte + 5)
            #expect(bench.gate.open(until: 10_000))
            control.resumeTransfer()
            let ending = await running
            #expect(ending.durable?.offset == mebibyte + 5)
            #expect(ending.durable?.crc == crc(file.content.bytes(in: 0..<mebibyte + 5)))
            try #expect(bench.part(lease).count == mebibyte + 5)
        }
    }

    /// Random ends are asked for at random moments of a running transfer; head and tail together are the file.
    @Test(arguments: 0..<12) func headAndTailAreTheChunkWheneverItIsDivided(seed: UInt64) async throws {
        var random = JitterGenerator(seed: seed)
        let small: Int64 = 600_000
        let held = Int64.random(in: 1..<small, using: &random)
        let wanted = Int64.random(in: 1...small, using: &random)
        let pauses = Int.random(in: 0..<200, using: &random)
        try await withBench { bench, origin in
            let file = serve(origin, small)
            origin.hold("/f", afterBytes: held)
            let lease = chunk(origin, 0, small, of: small)
            let control = LeaseControl(ChunkBound(lease))
            async let running = bench.run(lease, control: control)
            try await origin.waitForRequest { $0.path == "/f" }
            origin.release("/f")
            for _ in 0..<pauses { await Task.yield() }
            let end = try #require(control.shrink(to: wanted))
            #expect(end >= wanted && end <= small, "seed \(seed)")
            let ending = await running
            #expect(ending.durable?.offset == end, "seed \(seed): \(ending)")
            #expect(ending.durable?.crc == crc(file.content.bytes(in: 0..<end)), "seed \(seed)")
            #expect((ending.finished != nil) == (end == small), "seed \(seed)")
            guard end < small else { return }
            try #expect(bench.part(lease).count == Int(end), "seed \(seed)")
            let tail = await bench.run(chunk(origin, end, small, of: small))
            #expect(tail.durable?.crc == crc(file.content.bytes(in: end..<small)), "seed \(seed)")
        }
    }
}
