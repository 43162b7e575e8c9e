import MusterCore
import Testing

@testable import MusterWorker

@Suite struct ExpectedDigestsTests {
    private let a = String(repeating: "a", count: 32)
    private let b = String(repeating: "b", count: 32)

    @Test func digestsOfBothSidesCountAndEqualOnesCountOnce() {
        let digests = ExpectedDigests(given: ["md5": a], stated: ["md5": a, "sha1": String(repeating: "c", count: 40)])
        #expect(digests.all.map(\.algorithm) == [.md5, .sha1])
        let torn = ExpectedDigests(given: ["md5": a], stated: ["md5": b])
        #expect(torn.all.map(\.hexadecimal) == [a, b], "the content can't be right for both")
    }

    @Test func mismatchNamesTheContradictedSideAndBothValues() throws {
        let digests = ExpectedDigests(given: ["md5": a], stated: ["crc32c": "00000001"])
        let found = try #require(ContentDigest(algorithm: .md5, hexadecimal: b))
        #expect(
            digests.mismatch(expected: digests.given[0], found: found)
                == "the caller expects md5 \(a), the bytes have \(b)"
        )
        let other = try #require(ContentDigest(algorithm: .crc32c, hexadecimal: "00000002"))
        #expect(
            digests.mismatch(expected: digests.stated[0], found: other)
                == "the origin states crc32c 00000001, the bytes have 00000002"
        )
    }

    @Test func invalidDigestIsLeftOut() {
        #expect(ExpectedDigests(given: ["md5": "xyz", "sha3": a], stated: nil).all.isEmpty)
    }

    @Test func checksumTellsNoContentsApart() {
        #expect(!ExpectedDigests(given: ["crc32c": "00000001"], stated: ["md5": a]).tellsContentsApart)
        #expect(ExpectedDigests(given: ["md5": a], stated: nil).tellsContentsApart)
    }
}
