import FoundationEssentials
import MusterTestSupport
import Testing

@testable import MusterCore

private let zero256 = String(repeating: "A", count: 43) + "="
private let hex256 = String(repeating: "0", count: 64)
private let zeroMD5 = String(repeating: "A", count: 22) + "=="
private let hexMD5 = String(repeating: "0", count: 32)
private let onesMD5 = String(repeating: "/", count: 21) + "w=="
private let hexOnes = String(repeating: "f", count: 32)

private func digests(_ status: Int, _ headers: [(String, String)]) -> [String: String] {
    StatedDigests(ResponseFacts(status: status, headers: headers.map { (name: $0.0, value: $0.1) })).byName
}

/// Row 35 of the range contract.
struct StatedDigestsTests {
    @Test(
        arguments: [
            ("Repr-Digest", "sha-256=:\(zero256):", ["sha256": hex256]),
            // The example of RFC 9530 appendix B.1.
            (
                "Repr-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
                ["sha256": "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38"]
            ),
            (
                "Repr-Digest", " md5=:\(zeroMD5):;q=1, crc32c=:AAAAAA==: ,\tsha=:AAAAAAAAAAAAAAAAAAAAAAAAAAA=:",
                ["md5": hexMD5, "crc32c": "00000000", "sha1": String(repeating: "0", count: 40)]
            ),
            ("Repr-Digest", "sha-512=:\(String(repeating: "A", count: 86))==:", ["sha512": hex256 + hex256]),
            // Members of other kinds, and unknown algorithms, are passed over.
            (
                "Repr-Digest",
                #"a, b;x, c=?1, d="a\",b", e=(1 "x" :AA==:;y), f=-1.5, g=t/x:y, h=@5, sha-256=:\#(zero256):"#,
                ["sha256": hex256]
            ),
            ("Repr-Digest", "unixsum=:AAAA:, sha-256=:\(zero256):", ["sha256": hex256]),
            ("Repr-Digest", "sha-256=:\(zero256.dropLast()):", ["sha256": hex256]),
            // The last of several members with one key counts.
            ("Repr-Digest", "md5=:\(zeroMD5):, md5=:\(onesMD5):", ["md5": hexOnes]),
            ("Repr-Digest", "md5=:\(zeroMD5):, md5", [:]),

            ("Digest", "SHA-256=\(zero256)", ["sha256": hex256]),
            ("Digest", "md5=\(zeroMD5) , sha-256=\(zero256),UNIXsum=30637", ["md5": hexMD5, "sha256": hex256]),
            // The example of RFC 3230 §4.3.2.
            ("Digest", "SHA=thvDyvhfIqlvFe+A9MYgxAfm1q5=", ["sha1": "b61bc3caf85f22a96f15ef80f4c620c407e6d6ae"]),
        ] as [(String, String, [String: String])]
    )
    func digestsOfTheWholeAreRead(name: String, field: String, expected: [String: String]) {
        #expect(digests(206, [(name, field)]) == expected)
        #expect(digests(200, [(name, field)]) == expected)
    }

    @Test(
        arguments: [
            ("Repr-Digest", ""), ("Repr-Digest", "sha-256"), ("Repr-Digest", "sha-256=\(zero256)"),
            ("Repr-Digest", "SHA-256=:\(zero256):"), ("Repr-Digest", "sha-256=:\(zero256)"),
            ("Repr-Digest", "sha-256=:"),
            ("Repr-Digest", "sha-256=::"), ("Repr-Digest", "sha-256=:AAAA:"),
            ("Repr-Digest", "sha-256=:\(zero256)\(zero256):"),
            ("Repr-Digest", "sha-256=:\(hex256):"), ("Repr-Digest", "sha-256 = :\(zero256):"),
            // One mistake invalidates the whole field.
            ("Repr-Digest", "sha-256=:\(zero256):,"), ("Repr-Digest", ",sha-256=:\(zero256):"),
            ("Repr-Digest", "sha-256=:\(zero256): x"), ("Repr-Digest", "sha-256=:\(zero256):;"),
            ("Repr-Digest", #"sha-256=:\#(zero256):, a="x"#), ("Repr-Digest", "sha-256=:\(zero256):, a=(1"),
            ("Repr-Digest", "sha-256=:\(zero256):, a=(1,2)"), ("Repr-Digest", "sha-256=:\(zero256):, a="),
            ("Repr-Digest", "sha-256=:\(zero256):, Ä"), ("Repr-Digest", #"sha-256=:\#(zero256):, a="\x""#),
            ("Repr-Digest", "sha-256=:\(zero256):" + String(repeating: " ", count: 10_000)),
            ("Digest", ""), ("Digest", "="), ("Digest", "sha-256"), ("Digest", "sha-256="),
            ("Digest", "sha-256=\(hex256)"),
            ("Digest", "md5=\(hexMD5)"), ("Digest", "sha-256=:\(zero256):"), ("Digest", "sha-256=\(zero256)x"),
            ("Digest", "sha256=\(zero256)"), ("Digest", String(repeating: "a=b,", count: 50_000) + "md5=\(zeroMD5)"),
            ("Content-MD5", ""), ("Content-MD5", hexMD5), ("Content-MD5", "\(zeroMD5)\(zeroMD5)"),
            // Fields that say nothing about the whole, or nothing at all.
            ("Want-Repr-Digest", "sha-256=:\(zero256):"),
            ("ETag", "\"\(hexMD5)\""), ("X-Digest", "md5=\(zeroMD5)"),
        ])
    func fieldWithoutADigestOfTheWholeIsIgnored(name: String, field: String) {
        #expect(digests(200, [(name, field)]) == [:])
        #expect(
            ResponseFacts(status: 200, headers: [(name: name, value: field)]).representation(size: 1).digests == nil)
    }

    @Test func contentMD5CoversTheWholeInAWholeBodyAlone() {
        #expect(digests(200, [("Content-MD5", " \(zeroMD5)")]) == ["md5": hexMD5])
        #expect(digests(206, [("Content-MD5", zeroMD5)]) == [:])
        #expect(digests(206, [("Content-MD5", zeroMD5), ("Content-Range", "bytes 0-8/10")]) == [:])
        #expect(digests(206, [("Content-MD5", zeroMD5), ("Content-Range", "bytes 0-9/10")]) == ["md5": hexMD5])
        #expect(digests(200, [("Content-MD5", zeroMD5), ("Content-MD5", onesMD5)]) == [:])
    }

    @Test func contentDigestCoversTheWholeInAWholeBodyAlone() {
        let field = ("Content-Digest", "sha-256=:\(zero256):")
        #expect(digests(200, [field]) == ["sha256": hex256])
        #expect(digests(206, [field]) == [:])
        #expect(digests(206, [field, ("Content-Range", "bytes 0-8/10")]) == [:])
        #expect(digests(206, [field, ("Content-Range", "bytes 0-9/10")]) == ["sha256": hex256])
        #expect(digests(200, [("Repr-Digest", "md5=:\(zeroMD5):"), field]) == ["md5": hexMD5, "sha256": hex256])
    }

    @Test func newestFieldCountsIfFieldsContradictEachOther() {
        let (old, older) = (("Digest", "md5=\(onesMD5), sha-256=\(zero256)"), ("Content-MD5", zeroMD5))
        #expect(digests(200, [old, older]) == ["md5": hexOnes, "sha256": hex256])
        #expect(digests(200, [("Repr-Digest", "md5=:\(zeroMD5):"), old, older]) == ["md5": hexMD5, "sha256": hex256])
    }

    @Test func severalLinesAreOneField() {
        #expect(
            digests(206, [("Repr-Digest", "md5=:\(zeroMD5):"), ("repr-digest", "sha-256=:\(zero256):")])
                == ["md5": hexMD5, "sha256": hex256])
        #expect(digests(206, [("Digest", "md5=\(zeroMD5)"), ("Digest", "sha-256=\(zero256)")]).count == 2)
    }

    @Test func representationCarriesThem() {
        let facts = ResponseFacts(status: 206, headers: [(name: "Digest", value: "md5=\(zeroMD5)")])
        #expect(facts.representation(size: 9) == Representation(size: 9, digests: ["md5": hexMD5]))
    }

    private static let pieces = [
        "sha-256", "md5", "=", ":", zeroMD5, zero256, ",", ";", " ", "\t", "(", ")", "\"", "\\", "?1", "a", "*", "-",
        "\0", "ä",
    ]

    /// Whatever the field holds, an accepted value has the length of its algorithm.
    @Test(arguments: 0..<3_000 as Range<UInt64>)
    func noFieldMakesTheParserFail(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let field =
            Bool.random(using: &random)
            ? String(decoding: (0..<60).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
            : (0..<Int.random(in: 0...14, using: &random)).compactMap { _ in Self.pieces.randomElement(using: &random) }
                .joined()
        for name in ["Repr-Digest", "Digest", "Content-MD5"] {
            for (algorithm, value) in digests(200, [(name, field)]) {
                let known = try #require(DigestAlgorithm(rawValue: algorithm), "seed \(seed)")
                #expect(ContentDigest(algorithm: known, hexadecimal: value)?.hexadecimal == value, "seed \(seed)")
            }
        }
    }

    /// The digest that an origin computes is read from every field.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func anyDigestSurvives(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let names: [(DigestAlgorithm, String)] = [
            (.sha256, "sha-256"), (.sha512, "sha-512"), (.sha1, "sha"), (.md5, "md5"), (.crc32c, "crc32c"),
        ]
        let (algorithm, name) = try #require(names.randomElement(using: &random))
        let bytes = (0..<algorithm.hexadecimalDigits / 2).map { _ in UInt8.random(in: 0...255, using: &random) }
        let text = Data(bytes).base64EncodedString()
        let expected = [algorithm.rawValue: ContentDigest(algorithm: algorithm, bytes: bytes).hexadecimal]
        #expect(digests(206, [("Repr-Digest", "\(name)=:\(text):")]) == expected, "seed \(seed)")
        #expect(digests(206, [("Digest", "\(name.uppercased())=\(text)")]) == expected, "seed \(seed)")
    }
}
