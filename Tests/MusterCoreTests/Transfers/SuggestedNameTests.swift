import MusterTestSupport
import Testing

@testable import MusterCore

private func name(_ disposition: String?, url: String = "https://example.org/") -> String? {
    let headers = disposition.map { [(name: "Content-Disposition", value: $0)] } ?? []
    return SuggestedName(ResponseFacts(status: 200, headers: headers), effectiveURL: url)?.description
}

/// Row 34 of the range contract.
struct SuggestedNameTests {
    @Test(
        arguments: [
            (#"attachment; filename="a.tar""#, "a.tar"), ("attachment; filename=a.tar", "a.tar"),
            (#"inline; FileName = "a b.tar""#, "a b.tar"), ("attachment;filename=a b.tar;x=y", "a b.tar"),
            ("filename=a.tar", "a.tar"), (#"attachment; filename="a;b.tar""#, "a;b.tar"),
            (#"attachment; filename="a\"b.tar"; x"#, #"a"b.tar"#),
            (#"attachment; x="filename=\"no\""; filename=yes"#, "yes"),
            // The examples of RFC 6266 §5 and of its appendix D.
            ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "€ rates"),
            (#"attachment; filename="EURO rates"; filename*=utf-8''%e2%82%ac%20rates"#, "€ rates"),
            (#"attachment; filename*=UTF-8'de'%c3%a4.txt; filename="a.txt""#, "ä.txt"),
            ("attachment; filename=100%25.txt", "100%25.txt"),
            // A parameter that can't be read gives way to one that can.
            (#"attachment; filename*=UTF-8''%ff; filename="a""#, "a"),
            (#"attachment; filename*=ISO-8859-1''%e4; filename=a"#, "a"),
            (#"attachment; filename*=a; filename=b"#, "b"), ("attachment; filename*=UTF-8''..; filename=b", "b"),
            ("attachment; filename=a; filename=b", "a"),
            // Only the last segment is taken, and hostile characters are replaced.
            (#"attachment; filename="/etc/passwd""#, "passwd"), (#"attachment; filename="../../a""#, "a"),
            (#"attachment; filename="C:\\dir\\a.txt""#, "a.txt"), ("attachment; filename*=UTF-8''..%2f..%2fx", "x"),
            ("attachment; filename*=UTF-8''a%00b%0d%0ac", "a_b__c"),
            ("attachment; filename*=UTF-8''%2f%cc%81a", "\u{301}a"),
            ("attachment; filename*=UTF-8''a%e2%80%aetxt.exe", "a_txt.exe"),
            ("attachment; filename*=UTF-8''a%c2%85b", "a_b"),
            ("attachment; filename=\"  a.tar  \"", "a.tar"), ("attachment; filename=...", "..."),
            ("attachment; filename=-rf", "-rf"),
        ])
    func nameIsReadFromContentDisposition(field: String, expected: String) {
        #expect(name(field) == expected)
        #expect(name(field, url: "https://example.org/other") == expected)
    }

    @Test(
        arguments: [
            "", ";", "attachment", "attachment; filename", "attachment; filename=", #"attachment; filename="""#,
            #"attachment; filename="a"#, "attachment; filename=.", "attachment; filename=..",
            "attachment; filename=\" .. \"",
            "attachment; filename=.muster", "attachment; filename=a/.muster", "attachment; filename=/",
            #"attachment; filename="a/""#,
            #"attachment; filename="\\""#, "attachment; filename*=UTF-8''%2e%2e", "attachment; filename*=UTF-8''",
            "attachment; name=a", "attachment; filename=" + String(repeating: "a", count: 10_000),
        ])
    func unusableNameGivesWayToTheURL(field: String) {
        #expect(name(field) == nil)
        #expect(name(field, url: "https://example.org/b.tar?x=/y#z/") == "b.tar")
    }

    @Test(
        arguments: [
            ("https://example.org/pub/a%20b.tar", "a b.tar"), ("https://example.org/%C3%A4.txt?q", "ä.txt"),
            ("ftp://example.org/pub/a.tar", "a.tar"), ("https://example.org/a%2fb", "b"),
            ("https://example.org/%2e%2e%5cx", "x"),
            ("https://example.org/%ff.bin", "%ff.bin"), ("https://example.org/.bashrc", ".bashrc"),
            ("https://example.org/a%00", "a_"),
            ("https://example.org", nil), ("https://example.org/pub/", nil), ("https://example.org/..", nil),
            ("https://example.org/%2e%2e", nil), ("https://example.org/.muster", nil),
            ("https://example.org/%2Emuster", nil), ("https://example.org/.MUSTER", nil),
            ("https://example.org/a%E2%80%8Bb", "a_b"), ("https://example.org/a%C2%ADb", "a_b"),
            ("https://example.org/a%D8%9Cb", "a_b"), ("https://example.org/a%F3%A0%81%81b", "a_b"),
            ("https://example.org/a%2f", nil), ("no URL", nil), ("file:///etc/passwd", nil), ("", nil),
        ] as [(String, String?)]
    )
    func nameIsReadFromTheURLThatAnswered(url: String, expected: String?) {
        #expect(name(nil, url: url) == expected)
    }

    @Test(
        arguments: [
            (String(repeating: "a", count: 300), String(repeating: "a", count: 255)),
            (String(repeating: "a", count: 300) + ".tar", String(repeating: "a", count: 251) + ".tar"),
            (String(repeating: "a", count: 255), String(repeating: "a", count: 255)),
            ("a." + String(repeating: "b", count: 300), "a." + String(repeating: "b", count: 253)),
            ("." + String(repeating: "b", count: 300), "." + String(repeating: "b", count: 254)),
            (String(repeating: "👩‍👩‍👧", count: 30) + ".png", String(repeating: "👩‍👩‍👧", count: 13) + ".png"),
        ])
    func longNamesAreCutBetweenCharactersAndKeepTheirExtension(text: String, expected: String) throws {
        let cut = try #require(SuggestedName(safe: text)).description
        #expect(cut == expected)
        #expect(cut.utf8.count <= 255)
    }

    @Test func oneEndlessCharacterIsNoName() {
        #expect(SuggestedName(safe: "a" + String(repeating: "\u{301}", count: 200)) == nil)
    }

    private static let pieces = [
        "/", "\\", "..", ".", "a", "\0", "\u{301}", "\u{202e}", "\n", ".muster", "%2f", "%2e", "%00", "%", "ä",
        "\u{7f}", "\u{85}", "\"",
        ";", "=", "'", "UTF-8''", "filename=", "filename*=", "attachment", " ", String(repeating: "x", count: 250),
    ]

    @Test(arguments: 0..<3_000 as Range<UInt64>)
    func whateverIsSuggestedIsOneSafeComponent(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var piece: String { Self.pieces.randomElement(using: &random) ?? "" }
        let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in piece }.joined()
        let noise = String(decoding: (0..<30).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
        let suggestions = [
            name(text), name("attachment; filename=\"\(text)\""), name("attachment; filename*=UTF-8''\(text)"),
            name(noise),
            name("x; filename=" + noise), name(nil, url: "https://example.org/\(text)"),
            SuggestedName(safe: text)?.description,
        ]
        for suggestion in suggestions.compactMap({ $0 }) {
            let bytes = Array(suggestion.utf8)
            #expect((1...255).contains(bytes.count), "seed \(seed)")
            #expect(
                !bytes.contains { $0 < 32 || $0 == 127 || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") },
                "seed \(seed)")
            #expect(![".", "..", ".muster"].contains(suggestion), "seed \(seed)")
            #expect(try DestinationPath(validating: suggestion).string == suggestion, "seed \(seed)")
        }
    }
}
