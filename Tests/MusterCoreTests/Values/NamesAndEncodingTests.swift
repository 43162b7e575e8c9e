import FoundationEssentials
import MusterCore
import MusterTestSupport
import Testing

struct NameRuleTests {
    @Test(arguments: [
        "a", "Z", "0", "_", "-", "...", ".a", "a.", "releases-2026.03_x", String(repeating: "a", count: 200),
    ])
    func namesAreAccepted(name: String) {
        #expect(NameRule.accepts(name))
    }

    @Test(
        arguments: [
            "", ".", "..", " ", "a b", "a/b", "a\\b", "a\0", "a\n", "ä", "a\u{301}", "Ａ", "a%20", "a:b", "*",
            String(repeating: "a", count: 201),
        ])
    func whatIsNoNameIsRefused(name: String) {
        #expect(!NameRule.accepts(name))
    }
}

struct PercentEncodingTests {
    @Test(
        arguments: [
            ("", ""), ("az-AZ_09.~", "az-AZ_09.~"), ("a/b", "a%2Fb"), ("a b+c", "a%20b%2Bc"), ("100%", "100%25"),
            ("ä", "%C3%A4"), ("😀", "%F0%9F%98%80"), ("a\0b", "a%00b"), ("?&=#", "%3F%26%3D%23"), ("..", ".."),
        ])
    func oneSegmentIsEncoded(text: String, encoded: String) {
        #expect(PercentEncoding.encodeSegment(text) == encoded)
        #expect(PercentEncoding.decode(encoded) == text)
    }

    @Test(arguments: [("%2f", "/"), ("%C3%a4", "ä"), ("a+b", "a+b"), ("ä", "ä"), ("%2525", "%25"), ("%00", "\0")])
    func anySpellingIsDecodedOnce(encoded: String, text: String) {
        #expect(PercentEncoding.decode(encoded) == text)
    }

    @Test(arguments: ["%", "%2", "a%", "%%20", "%g0", "%0g", "% 20", "%+1", "%ff", "%c3", "%c0%af", "%ed%a0%80"])
    func malformedEscapesAndBytesThatAreNoTextAreRefused(encoded: String) {
        #expect(PercentEncoding.decode(encoded) == nil)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func anyTextSurvives(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let text = String(decoding: (0..<40).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
        let encoded = PercentEncoding.encodeSegment(text)
        #expect(!encoded.utf8.contains(UInt8(ascii: "/")))
        #expect(PercentEncoding.decode(encoded) == text)
    }
}

struct JSONValueTests {
    @Test(
        arguments: [
            ("null", .null), ("true", .bool(true)), ("0", .integer(0)), ("1", .integer(1)), ("-7", .integer(-7)),
            ("9223372036854775807", .integer(.max)), ("1.5", .number(1.5)), ("1e300", .number(1e300)),
            ("9007199254740993.0000000001", .integer(9_007_199_254_740_994)),
            (#""a\/\u00e4""#, .string("a/ä")), ("[]", .array([])), ("{}", .object([:])),
            (
                #"{"a":[1,null,{"b":false}]}"#,
                .object(["a": .array([.integer(1), .null, .object(["b": .bool(false)])])])
            ),
        ] as [(String, JSONValue)]
    )
    func anyJSONIsKept(json: String, value: JSONValue) throws {
        let read = try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8))
        #expect(read == value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(read)) == value)
    }

    @Test(arguments: ["", "{", "[1", "nul", "'a'"])
    func whatIsNoJSONIsRefused(json: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8)) }
    }

    @Test func anIdentifierIsABareNumber() throws {
        #expect(String(decoding: try JSONEncoder().encode([TaskID(7)]), as: UTF8.self) == "[7]")
        #expect(try JSONDecoder().decode([TaskID].self, from: Data("[7]".utf8)) == [TaskID(7)])
        #expect(TaskID(3) < TaskID(20))
        #expect("\(TaskID(20))" == "20")
    }
}
