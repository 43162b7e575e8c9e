import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Contents that are stored decoded, over real sockets (range contract, row 13).
@Suite struct DecodingTests {
    private static let gzip = CodedText.bytes(CodedText.gzip)

    /// Runs a lease on a content that the origin has as `bytes`, and checks the ending.
    private func ending(
        _ bytes: [UInt8], _ coding: String, expectedSize: Int64? = nil, closes: Bool = false,
        then check: (JobBench, JobEnding) throws -> Void
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.bytes(bytes)))
            origin.misbehave("/f", .contentEncoding(coding))
            if closes { origin.misbehave("/f", .closeDelimited) }
            var lease = LeaseDocument.first(origin.url("/f"))
            var options = FetchOptions()
            options.decode = true
            lease.options = options
            lease.expectedSize = expectedSize
            // The rung that the coordinator grants after a coded 206.
            lease.rung = .whole
            try check(bench, await bench.run(lease))
        }
    }

    @Test(arguments: CodedText.all.indices) func decodedContentIsStored(index: Int) async throws {
        let (coding, bytes) = CodedText.all[index]
        let size = Int64(CodedText.text.count)
        for expected in [nil, size] {
            try await ending(bytes, coding.rawValue, expectedSize: expected) { (bench, ending) throws in
                #expect(ending.finished?.size == size, "\(ending)")
                #expect(try bench.file("out/file.bin") == CodedText.text)
            }
        }
    }

    @Test func contentWithoutItsEndIsNotStored() async throws {
        for (coding, bytes) in CodedText.all {
            try await ending(Array(bytes.dropLast(6)), coding.rawValue) { (bench, ending) throws in
                #expect(ending.failure?.kind == .badRange, "\(ending)")
                #expect(
                    ending.failure?.detail.contains("coded as \(coding.rawValue), is not complete") == true,
                    "\(ending)")
                #expect(!bench.exists("out/file.bin"))
            }
        }
    }

    @Test func endOfTheConnectionInTheMiddleOfTheCodingIsACut() async throws {
        try await ending(Self.gzip.dropLast(6), "gzip", closes: true) { (bench, ending) throws in
            #expect(ending.failure?.kind == .network, "\(ending)")
            #expect(!bench.exists("out/file.bin"))
        }
        try await ending(Self.gzip, "x-gzip", closes: true) { (bench, ending) throws in
            #expect(ending.finished != nil, "\(ending)")
            #expect(try bench.file("out/file.bin") == CodedText.text)
        }
    }

    @Test func otherSizeThanTheDecodedOneIsRefused() async throws {
        for difference in [-1, 1] as [Int64] {
            try await ending(Self.gzip, "gzip", expectedSize: Int64(CodedText.text.count) + difference) {
                (bench, ending) throws in
                #expect(ending.failure?.kind == .sizeMismatch, "\(ending)")
                #expect(!bench.exists("out/file.bin"))
            }
        }
    }

    /// An origin can state digests only of the coded content.
    @Test(arguments: [true, false]) func statedDigestIsThatOfTheCodedContent(isRight: Bool) async throws {
        for (coding, bytes) in CodedText.all {
            try await withBench { bench, origin in
                var file = ScriptedOrigin.File(.bytes(bytes))
                file.headers = [.reprDigest(of: .bytes(isRight ? bytes : CodedText.text), .sha256)]
                origin.serve("/f", file)
                origin.misbehave("/f", .contentEncoding(coding.rawValue))
                var lease = LeaseDocument.first(origin.url("/f"))
                var options = FetchOptions()
                options.decode = true
                lease.options = options
                lease.rung = .whole
                let ending = await bench.run(lease)
                #expect((ending.finished != nil) == isRight, "\(ending)")
                #expect(bench.exists("out/file.bin") == isRight)
            }
        }
    }

    @Test(arguments: ["compress", "gzip, br", "aes128gcm"]) func unknownCodingIsRefused(coding: String) async throws {
        try await ending(Self.gzip, coding) { (bench, ending) throws in
            #expect(ending.failure?.kind == .badRange, "\(ending)")
            #expect(ending.failure?.detail == "Content-Encoding \"\(coding)\" can't be decoded")
            #expect(!bench.exists("out/file.bin"))
        }
    }
}
