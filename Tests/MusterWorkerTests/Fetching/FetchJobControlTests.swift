import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MusterWorker

@Suite struct FetchJobControlTests {
    private let size = 4 * mebibyte

    private func serve(_ origin: ScriptedOrigin) -> ScriptedOrigin.File {
        var file = ScriptedOrigin.File(.seeded(seed: 12, size: size))
        file.etag = "\"one\""
        origin.serve("/f", file)
        origin.hold("/f", afterBytes: 2 * mebibyte)
        return file
    }

    @Test func releasedJobMakesDurableWhatCame() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            let lease = LeaseDocument.first(origin.url("/f"))
            let control = LeaseControl()
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, 2 * mebibyte)
            control.ask(.release)
            let ending = await running
            guard case .released(let durable?, let learned) = ending else {
                Issue.record("the job ended as \(ending)")
                return
            }
            #expect(durable.offset == 2 * mebibyte)
            #expect(durable.crc == crc(file.content.bytes(in: 0..<durable.offset)))
            #expect(learned?.representation.etag == "\"one\"")
        }
    }

    @Test func abortedJobSaysNothing() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            let lease = LeaseDocument.first(origin.url("/f"))
            let control = LeaseControl()
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, 2 * mebibyte)
            control.ask(.abort)
            #expect(await running.isAborted)
            #expect(!bench.exists("out/file.bin"))
            // None of its bytes were durable.
            #expect(throws: (any Error).self) { try bench.part(lease) }
        }
    }

    @Test func nothingIsWrittenAfterTheTrustHasEnded() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            let lease = LeaseDocument.first(origin.url("/f"))
            let control = LeaseControl()
            async let running = bench.run(lease, control: control)
            try await bench.waitForBytes(lease, 2 * mebibyte)
            // The process was stopped for a long time, which only the clock shows.
            bench.clock.now.store(5_000, ordering: .sequentiallyConsistent)
            let before = bench.context.takeReceived()
            #expect(before == 2 * mebibyte)
            origin.release("/f")
            // More bytes came in, so they were offered to the writer.
            var after: Int64 = 0
            while after == 0 {
                try await Task.sleep(for: .milliseconds(5))
                after = bench.context.takeReceived()
            }
            try #expect(bench.part(lease).count == 2 * mebibyte)
            #expect(bench.gate.open(until: 10_000))
            control.resumeTransfer()
            #expect(await running.finished?.size == size)
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    /// The first checkpoint comes soon, however long the interval is.
    @Test func runningChunkIsMadeDurableAndReported() async throws {
        try await withBench(configure: { $0.progressInterval = .seconds(3_600) }) { bench, origin in
            let file = serve(origin)
            let lease = LeaseDocument.first(origin.url("/f"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await bench.context.checkpointer.run() }
                async let running = bench.run(lease)
                let told = try await bench.news.wait(for: "a durable prefix", details: { "\($0.count)" }) { news in
                    news.contains { if case .progress(.some, _) = $0.news { true } else { false } }
                }
                guard case .progress(let durable?, let learned)? = told.last?.news else { return }
                // The whole file is within this lease; the early report is for progress displays.
                #expect(learned?.representation.size == size && learned?.rung == .chunks)
                #expect(durable.offset <= 2 * mebibyte)
                #expect(durable.crc == crc(file.content.bytes(in: 0..<durable.offset)))
                origin.release("/f")
                #expect(await running.finished?.size == size)
                group.cancelAll()
            }
        }
    }

    @Test func takenDestinationFailsTheTaskAlone() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.seeded(seed: 1, size: 1_000)))
            let path = bench.directory.path.appending("taken").string
            try Data("mine".utf8).write(to: URL(filePath: path))
            let failure = await bench.run(.first(origin.url("/f"), path: "taken")).failure
            #expect(failure?.kind == .storage)
            try #expect(bench.file("taken") == Array("mine".utf8))
        }
    }

    @Test func manySmallFilesArePutInPlaceTogether() async throws {
        try await withBench { bench, origin in
            for index in 0..<100 {
                origin.serve("/\(index)", ScriptedOrigin.File(.seeded(seed: UInt64(index), size: 5_000)))
            }
            let finished = await withTaskGroup(of: Bool.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        let lease = LeaseDocument.first(
                            origin.url("/\(index)"),
                            task: Int64(index) + 1,
                            path: "d/\(index)"
                        )
                        return await bench.run(lease).finished != nil
                    }
                }
                return await group.reduce(0) { $1 ? $0 + 1 : $0 }
            }
            #expect(finished == 100)
            for index in 0..<100 {
                let expected = ScriptedOrigin.Content.seeded(seed: UInt64(index), size: 5_000).allBytes
                try #expect(bench.file("d/\(index)") == expected)
            }
        }
    }

    private func fetchChunks(
        _ bench: JobBench,
        _ origin: ScriptedOrigin,
        _ known: Representation
    ) async throws -> [FinishedChunk] {
        var chunks: [FinishedChunk] = []
        for start in stride(from: 0, to: size, by: Int(mebibyte)) {
            let ending = await bench.run(.chunk(origin.url("/f"), start, start + mebibyte, of: known))
            let range = try #require(ByteRange(start: start, end: start + mebibyte))
            chunks.append(FinishedChunk(range: range, crc: try #require(ending.durable).crc))
        }
        return chunks
    }

    @Test func purgeOfAnOldVersionLeavesTheNewOneAlone() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            origin.release("/f")
            let known = Representation(size: size, etag: "\"one\"")
            var chunk = LeaseDocument.chunk(origin.url("/f"), 0, mebibyte, of: known)
            chunk.version = 2
            #expect(await bench.run(chunk).durable?.offset == mebibyte)
            var purge = chunk
            purge.kind = .purge
            purge.path = ""
            purge.version = 1
            _ = await bench.run(purge)
            #expect(bench.exists("\(ScratchSink.parts)/1.2.part"))
            purge.version = 2
            _ = await bench.run(purge)
            #expect(!bench.exists("\(ScratchSink.parts)/1.2.part"))
        }
    }

    @Test func finalizeLeaseVerifiesEveryChunkAndPurgeLeavesNothing() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            origin.release("/f")
            let known = Representation(size: size, etag: "\"one\"")
            var lease = LeaseDocument.chunk("", 0, size, of: known)
            lease.kind = .finalize
            lease.source = nil
            lease.chunks = try await fetchChunks(bench, origin, known)
            var wrong = lease
            wrong.chunks[2] = FinishedChunk(range: wrong.chunks[2].range, crc: 1)
            #expect(await bench.run(wrong).failure?.kind == .changed)
            #expect(!bench.exists("out/file.bin"))
            // Nothing is kept of a part that is wrong.
            lease.chunks = try await fetchChunks(bench, origin, known)
            #expect(await bench.run(lease).finished?.size == size)
            try #expect(bench.file("out/file.bin") == file.content.allBytes)

            _ = await bench.run(.chunk(origin.url("/f"), 0, mebibyte, of: known))
            #expect(bench.exists("\(ScratchSink.parts)/1.1.part"))
            lease.kind = .purge
            lease.path = ""
            guard case .purged(nil) = await bench.run(lease) else {
                Issue.record("the purge was not done")
                return
            }
            #expect(!bench.exists("\(ScratchSink.parts)/1.1.part"))
            #expect(bench.exists("out/file.bin"))

            // With a path, the finished file goes as well, unless another file stands there by now.
            lease.path = "out/file.bin"
            lease.representation.size = size - 1
            _ = await bench.run(lease)
            #expect(bench.exists("out/file.bin"))
            lease.representation.size = size
            _ = await bench.run(lease)
            #expect(!bench.exists("out/file.bin"))
        }
    }
}
