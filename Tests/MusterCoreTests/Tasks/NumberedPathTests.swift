import MusterCore
import Testing

@Suite struct NumberedPathTests {
    @Test(arguments: [
        ("name.ext", "name (2).ext"), ("name", "name (2)"), ("a.b/name", "a.b/name (2)"),
        ("a/b/x.tar.gz", "a/b/x.tar (2).gz"),
        (".hidden", ".hidden (2)"), ("d/.hidden.txt", "d/.hidden (2).txt"), ("trailing.", "trailing (2)."),
        ("dots...", "dots.. (2)."), ("ünï.ö", "ünï (2).ö"),
        // In Swift a combining mark and the dot or slash before it are one character; the dot or slash still counts.
        ("a.\u{301}b", "a (2).\u{301}b"), ("a/\u{301}b", "a/\u{301}b (2)"),
        ("a.this is no ending but the rest of a sentence", "a.this is no ending but the rest of a sentence (2)"),
    ])
    func theNumberGoesBeforeTheEnding(given: String, expected: String) throws {
        #expect(try DestinationPath(validating: given).numbered(2)?.string == expected)
        #expect(try DestinationPath(validating: expected).number == 2)
        #expect(try DestinationPath(validating: given).number == nil)
    }

    @Test(arguments: ["a()", "a ()", "a(2)", "a (2) b", "a (2", "a (+2)", "(2)", "a (2)/b", "a (99999999999999999999)"])
    func aNameWithoutANumberHasNone(path: String) throws {
        #expect(try DestinationPath(validating: path).number == nil)
    }

    @Test func aNameIsCutToWhatFileSystemsAllow() throws {
        let long = String(repeating: "ä", count: 125)
        let path = try DestinationPath(validating: "d/" + long + ".ext")
        let numbered = try #require(path.numbered(1_001))
        let name = numbered.string.dropFirst(2)
        #expect(name.utf8.count <= 255 && name.utf8.count > 252)
        #expect(name.hasSuffix("ä (1001).ext"))
        #expect(path.numbered(1_000) != numbered)
    }

    @Test func aPathIsCutToWhatTasksMayHave() throws {
        let directory = String(repeating: String(repeating: "d", count: 251) + "/", count: 4)
        let path = try DestinationPath(validating: directory + "file.a")
        #expect(directory.utf8.count == 1_008)
        #expect(path.numbered(2)?.string == directory + "file (2).a")
        let full = try DestinationPath(validating: directory + "0123456789abcd.a")
        #expect(full.numbered(2)?.string == directory + "0123456789 (2).a")
        let hopeless = try DestinationPath(validating: directory + ".0123456789abcde")
        #expect(hopeless.numbered(2)?.string == directory + ".0123456789a (2)")
        #expect(try DestinationPath(validating: directory + "a.0123456789abcd").numbered(2) == nil)
    }
}
