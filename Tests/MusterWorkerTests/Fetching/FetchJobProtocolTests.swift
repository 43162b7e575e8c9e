import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Which HTTP version is spoken (range contract, row 23), over real sockets.
@Suite struct FetchJobProtocolTests {
    private let content = ScriptedOrigin.File(.seeded(seed: 3, size: 2 * mebibyte))

    @Test func firstRequestSpeaksHTTP2AndPlannedChunksHTTP1() async throws {
        try await withBench(.h2) { bench, origin in
            origin.serve("/f", content)
            #expect(await bench.run(.first(origin.url("/f"))).finished?.size == 2 * mebibyte)
            let known = Representation(size: 2 * mebibyte, etag: content.etag)
            var chunk = LeaseDocument.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
            chunk.options = FetchOptions()
            chunk.options?.httpVersion = .http2
            #expect(await bench.run(chunk).durable?.offset == 2 * mebibyte)
            chunk.options = nil
            chunk.task = TaskID(2)
            #expect(await bench.run(chunk).durable?.offset == 2 * mebibyte)
            // The HTTP/1.1 request comes last, since its connection would also serve a request that may be made in HTTP/2.
            #expect(origin.requests.map(\.version) == [.http2, .http2, .http1])
        }
    }

    @Test func priorKnowledgeNeedsNoTLS() async throws {
        try await withBench(.h2c) { bench, origin in
            origin.serve("/f", content)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.options = FetchOptions()
            lease.options?.httpVersion = .priorKnowledge
            #expect(await bench.run(lease).finished?.size == 2 * mebibyte)
            #expect(origin.requests.map(\.version) == [.http2])
        }
    }

    /// After stream resets, and for chunks, the worker would use HTTP/1.1; this origin serves nothing in HTTP/1.1.
    @Test func originThatSpeaksHTTP2AloneIsAskedInThat() async throws {
        try await withBench(.h2) { bench, origin in
            origin.speakHTTP2Alone()
            origin.serve("/f", content)
            origin.misbehave("/f", .resetStream(afterBytes: mebibyte, code: 2), when: .first(2))
            let known = Representation(size: 2 * mebibyte, etag: content.etag)
            var lease = LeaseDocument.first(origin.url("/f"))
            for _ in 0..<2 { #expect(await bench.run(lease).failure?.kind == .network) }
            #expect(await bench.run(lease).finished?.size == 2 * mebibyte)
            lease = .chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
            lease.task = TaskID(2)
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
            #expect(origin.requests.allSatisfy { $0.version == .http2 })
        }
    }

    /// Parts of large files are asked for in HTTP/1.1. A file that only HTTP/2 serves is fetched nevertheless, whether the
    /// HTTP/2 connection is still open or only the HTTP/1.1 connection is.
    @Test(
        arguments: [
            ScriptedOrigin.Misbehaviour.status(421, retryAfter: nil), .status(426, retryAfter: nil),
            .status(505, retryAfter: nil), .status(403, retryAfter: nil), .closeBeforeHeaders, .resetBeforeHeaders,
        ],
        [
            ScriptedOrigin.Misbehaviour.resetStream(afterBytes: mebibyte, code: 2),
            .goAway(afterBytes: mebibyte, isFinished: false),
        ])
    func originThatRefusesHTTP1IsOfferedHTTP2Again(
        refusal: ScriptedOrigin.Misbehaviour, end: ScriptedOrigin.Misbehaviour
    ) async throws {
        try await withBench(.h2) { bench, origin in
            origin.serve("/f", content)
            origin.misbehave("/f", end, when: .first(1))
            origin.misbehave("/f", refusal, when: .init(version: .http1))
            let first = await bench.run(.first(origin.url("/f")))
            let durable = try #require(first.durable)
            #expect(first.failure?.kind == .network && durable.offset == mebibyte)
            var lease = LeaseDocument.chunk(
                origin.url("/f"), 0, 2 * mebibyte, of: Representation(size: 2 * mebibyte, etag: content.etag))
            lease.resume = durable
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
            lease = .chunk(
                origin.url("/f"), mebibyte, 2 * mebibyte, of: Representation(size: 2 * mebibyte, etag: content.etag))
            lease.task = TaskID(2)
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
            #expect(
                origin.requests.map(\.version) == [.http2, .http1, .http2, .http2], "HTTP/1.1 is not tried once more")
        }
    }

    /// If an origin has served both versions, a single refusal says nothing about the version.
    @Test(arguments: [ScriptedOrigin.Misbehaviour.status(403, retryAfter: nil), .closeBeforeHeaders])
    func originThatStopsHTTP1IsOfferedHTTP2AfterTwoRefusals(refusal: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench(.h2) { bench, origin in
            origin.serve("/f", content)
            #expect(await bench.run(.first(origin.url("/f"))).finished?.size == 2 * mebibyte)
            let known = Representation(size: 2 * mebibyte, etag: content.etag)
            var lease = LeaseDocument.chunk(origin.url("/f"), 0, mebibyte, of: known)
            lease.task = TaskID(2)
            #expect(await bench.run(lease).durable?.offset == mebibyte)
            origin.misbehave("/f", refusal, when: .init(version: .http1))
            lease = .chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
            lease.task = TaskID(2)
            var refused = 0
            while await bench.run(lease).durable?.offset != 2 * mebibyte, refused < 4 { refused += 1 }
            let versions = origin.requests.map(\.version)
            #expect(versions.first == .http2 && versions.last == .http2)
            #expect(versions.dropFirst().dropLast().allSatisfy { $0 == .http1 }, "\(versions)")
            #expect((5...6).contains(versions.count), "\(versions)")
        }
    }

    @Test func originThatKeepsResettingStreamsIsAskedInHTTP1() async throws {
        try await withBench(.h2) { bench, origin in
            origin.serve("/f", content)
            origin.misbehave("/f", .resetStream(afterBytes: mebibyte, code: 2))
            var lease = LeaseDocument.first(origin.url("/f"))
            for attempt in 0..<2 {
                let ending = await bench.run(lease)
                #expect(ending.failure?.kind == .network, "attempt \(attempt)")
                let durable = try #require(ending.durable)
                #expect(durable.crc == crc(content.content.bytes(in: 0..<durable.offset)))
                if attempt == 1 {
                    lease.resume = durable
                    lease.representation = Representation(size: 2 * mebibyte, etag: content.etag)
                }
            }
            #expect(await bench.run(lease).finished?.size == 2 * mebibyte)
            #expect(origin.requests.map(\.version) == [.http2, .http2, .http1])
            #expect(origin.requests.last?.range?.hasPrefix("bytes=0-") == false, "what was durable is kept")
            try #expect(bench.file("out/file.bin") == content.content.allBytes)
        }
    }
}
