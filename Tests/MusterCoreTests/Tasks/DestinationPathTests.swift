import MusterCore
import MusterTestSupport
import Testing

struct DestinationPathTests {
    private static func refusal(_ text: String) -> DestinationPath.Refusal? {
        do {
            _ = try DestinationPath(validating: text)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            "a", "a/b.tar", "...", "a/...", "..a", "a..", ".hidden", ".muster.txt", "a/.muster", "~", "-rf",
            "a b",
            "C:x", "ä/日本/😀", "a%2f..%2fb", String(repeating: "a", count: 255),
            Array(repeating: String(repeating: "a", count: 127), count: 8).joined(separator: "/"),
        ])
    func pathsBelowTheSinkAreAccepted(text: String) throws {
        #expect(try DestinationPath(validating: text).string == text)
        #expect(try DestinationPath(validating: text).description == text)
    }

    @Test(
        arguments: [
            ("", .empty),
            (String(repeating: "a", count: 256), .tooLong),
            ("a/" + String(repeating: "ä", count: 128), .tooLong),
            (Array(repeating: "abc", count: 257).joined(separator: "/"), .tooLong),
            ("/", .absolute), ("/etc/passwd", .absolute), ("//a", .absolute), ("/..", .absolute),
            (".", .traversal), ("..", .traversal), ("../a", .traversal), ("a/..", .traversal), ("a/../b", .traversal),
            ("./a", .traversal), ("a/./b", .traversal), ("a//b", .traversal), ("a/", .traversal), ("a/b/", .traversal),
            (".muster/../a", .traversal),
            ("a\0b", .forbiddenCharacter), ("a\nb", .forbiddenCharacter), ("a\tb", .forbiddenCharacter),
            ("a\r\nb", .forbiddenCharacter), ("a\u{7f}", .forbiddenCharacter), ("a\u{1b}[2J", .forbiddenCharacter),
            ("a\\b", .forbiddenCharacter), ("..\\a", .forbiddenCharacter),
            (".muster", .reserved), (".muster/parts/1.1.part", .reserved), (".MUSTER", .reserved),
            (".Muster/parts/x", .reserved),
            // Case-insensitive file systems fold these to the same name: the long s, and invisible characters.
            (".mu\u{17f}ter", .reserved), (".m\u{200c}uster/a", .reserved), (".muster\u{feff}", .reserved),
        ] as [(String, DestinationPath.Refusal)]
    )
    func pathsThatLeaveTheSinkAreRefused(text: String, refusal: DestinationPath.Refusal) {
        #expect(Self.refusal(text) == refusal)
    }

    /// In Swift a slash and a combining mark after it are one character; to the file system the slash is still a slash.
    @Test(
        arguments: [
            ("/\u{301}etc", .absolute), ("../\u{301}x", .traversal), ("a/../\u{301}x", .traversal),
            ("a/\u{301}/../b", .traversal),
            ("./\u{20DD}x", .traversal), (".muster/\u{301}x", .reserved), ("a/\u{301}//b", .traversal),
            ("\\\u{301}x", .forbiddenCharacter),
        ] as [(String, DestinationPath.Refusal)]
    )
    func combiningMarksDoNotHideASlash(text: String, refusal: DestinationPath.Refusal) {
        #expect(Self.refusal(text) == refusal)
    }

    @Test func everyRefusalSaysWhy() {
        let all: [DestinationPath.Refusal] = [.empty, .tooLong, .absolute, .traversal, .forbiddenCharacter, .reserved]
        #expect(Set(all.map(\.description)).count == all.count)
    }

    @Test(
        arguments: [
            ("/pub/a.tar", "a.tar"), ("/a%20b.tar", "a b.tar"), ("/%C3%A4.txt", "ä.txt"), ("a", "a"),
            // Paths without a name.
            ("", "index.html"), ("/", "index.html"), ("/pub/", "index.html"), ("/a//", "index.html"),
            // Hostile names.
            ("/..%2f..%2fetc", ".._.._etc"), ("/a/%2e%2e", "__"), ("/%2e", "_"), ("/..", "__"), ("/.", "_"),
            ("/a%00.tar", "a_.tar"), ("/a%0d%0ab", "a__b"), ("/%7f", "_"), ("/..%5c..%5cx", ".._.._x"),
            ("/%2fetc", "_etc"),
            ("/.muster", "_muster"), ("/%2emuster", "_muster"), ("/.muster%2fparts", ".muster_parts"),
            ("/.%2e%2f%cc%81x", ".._\u{301}x"), ("/.MUSTER", "_MUSTER"), ("/.Mu%C5%BFter", "_Mu\u{17f}ter"),
            // Invisible characters, and those that reverse the reading direction: cod.exe would read as exe.doc.
            ("/a%E2%80%AEcod.exe", "a_cod.exe"), ("/a%E2%81%A6b%E2%81%A9.txt", "a_b_.txt"),
            ("/a%E2%80%8B.txt", "a_.txt"),
            ("/a%D8%9C.txt", "a_.txt"), ("/a%E2%80%A8b", "a_b"), ("/a%C2%85b", "a_b"), ("/a%C2%ADb", "a_b"),
            ("/a%F3%A0%81%81b", "a_b"), ("/a%E3%85%A4b", "a_b"), ("/a%EF%BB%BFb", "a_b"),
            // Names that only look odd are kept.
            ("/.bashrc", ".bashrc"), ("/...", "..."), ("/a%252fb", "a%2fb"), ("/-rf", "-rf"),
            // What can't be decoded stays as it is.
            ("/%ff.bin", "%ff.bin"), ("/100%", "100%"), ("/%c0%ae%c0%ae", "%c0%ae%c0%ae"),
        ])
    func urlSuggestsASafeName(path: String, name: String) throws {
        #expect(DestinationPath.suggested(byURLPath: path) == name)
        #expect(Self.refusal(name) == nil)
    }

    @Test func longNamesAreCutBetweenCharacters() {
        #expect(DestinationPath.suggested(byURLPath: "/" + String(repeating: "a", count: 300)).utf8.count == 255)
        let family = String(repeating: "👩‍👩‍👧", count: 30)
        let name = DestinationPath.suggested(byURLPath: "/" + PercentEncoding.encodeSegment(family))
        #expect(name == String(repeating: "👩‍👩‍👧", count: 14))
        // A single character that is longer than a name may be.
        let marks = "a" + String(repeating: "\u{301}", count: 200)
        #expect(DestinationPath.suggested(byURLPath: "/" + PercentEncoding.encodeSegment(marks)) == "index.html")
    }

    /// Pieces that might form a path that leaves the sink.
    private static let pieces = [
        "/", "/", "..", ".", "a", "\\", "\0", "\u{301}", "\u{200d}", "\n", ".muster", "%2f", "%2e", "%00", "%cc%81",
        "%", "ä",
        "\u{7f}", "\u{85}", "\u{202e}", "e\u{301}", " ", String(repeating: "x", count: 250),
    ]

    @Test(arguments: 0..<2_000 as Range<UInt64>)
    func whateverIsAcceptedStaysInTheSink(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let count = Int.random(in: 0...12, using: &random)
        let text = (0..<count).compactMap { _ in Self.pieces.randomElement(using: &random) }.joined()
        let suggestion = DestinationPath.suggested(byURLPath: text)
        #expect(!suggestion.utf8.contains(UInt8(ascii: "/")))
        #expect(Self.refusal(suggestion) == nil, "\(suggestion.debugDescription)")

        guard let path = try? DestinationPath(validating: text) else { return }
        // Resolved as the file system does it: byte by byte.
        let bytes = Array(path.string.utf8)
        let components = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init)
        #expect(bytes.first != UInt8(ascii: "/"))
        #expect(!bytes.contains { $0 < 32 || $0 == 127 })
        #expect(
            components.allSatisfy { !$0.isEmpty && $0.count <= 255 && $0 != Array(".".utf8) && $0 != Array("..".utf8) }
        )
        #expect(components.first != Array(".muster".utf8))
    }
}
