import MusterAPI
import MusterCore
import Testing

/// The result of parsing a manifest: its tasks by line, or the refusal.
private enum Result: Hashable {
    case tasks([Int: String])
    case refusal(InputRefusal)
}

private func parse(_ pieces: [[UInt8]], _ form: ManifestParser.Form = .urlsOrTasks) -> Result {
    var parser = ManifestParser(form: form)
    do {
        var entries: [ManifestParser.Entry] = []
        for piece in pieces { entries += try parser.parse(piece) }
        entries += try parser.finish()
        return .tasks(
            Dictionary(uniqueKeysWithValues: entries.map { ($0.line, "\($0.task.key) \($0.task.sources[0])") })
        )
    } catch {
        return .refusal(error)
    }
}

private func parse(_ text: String, _ form: ManifestParser.Form = .urlsOrTasks) -> Result {
    parse([Array(text.utf8)], form)
}

private let a = "https://example.org/a"
private let b = #"{"urls":["https://example.org/b"],"key":"k"}"#

struct ManifestParserTests {
    @Test(
        arguments: [
            ("", [:]), ("\n", [:]), ("\n\n\r\n", [:]), (" \t \n", [:]), ("# nothing", [:]), ("  # nothing\n", [:]),
            ("\(a)", [1: "a \(a)"]), ("\(a)\n", [1: "a \(a)"]), ("\(a)\r\n", [1: "a \(a)"]),
            ("  \(a)\t \n", [1: "a \(a)"]),
            ("\(b)", [1: "k https://example.org/b"]), (" \t\(b) \r\n", [1: "k https://example.org/b"]),
            ("# first\n\n\(a)\n \n\(b)\n", [3: "a \(a)", 5: "k https://example.org/b"]),
            ("\(a)\r", [1: "a \(a)"]),
        ] as [(String, [Int: String])]
    )
    func urlsAndTasksAreReadByLine(text: String, tasks: [Int: String]) {
        #expect(parse(text) == .tasks(tasks))
    }

    @Test(
        arguments: [
            ("nowhere", 1, "/urls/0"), ("\(a)\n\n\(a) \(a)\n", 3, "/urls/0"), ("\(a)\n\(a)\0\n", 2, "/urls/0"),
            ("\(a)\r\r\n", 1, "/urls/0"), ("\u{FEFF}\(a)", 1, "/urls/0"), ("gopher://h/a", 1, "/urls/0"),
            ("\(a)\n{\"urls\":[]}", 2, "/urls"), ("{\"url\":\"x\"}", 1, "/url"), ("{", 1, ""), ("\(b)\(b)", 1, ""),
            ("{\"urls\":[\"\(a)\"],\n\"key\":\"k\"}", 1, ""), ("{\"urls\":[\"\(a)\"],\"path\":\"../x\"}", 1, "/path"),
            ("{\"urls\":[\"\(a)\"],\"metadata\":\"\\u0000\"}", 1, "/metadata"),
            ("{\"urls\":[\"\(a)\"],\"size\":-1}\n\(a)", 1, "/size"),
        ] as [(String, Int, String)]
    )
    func badLineIsNamed(text: String, line: Int, pointer: String) {
        guard case .refusal(let refusal) = parse(text) else {
            Issue.record("was accepted")
            return
        }
        #expect(refusal.line == line)
        #expect(refusal.pointer == pointer)
    }

    @Test(arguments: [a, "# nothing", "[]", "null", "\"x\""])
    func streamOfTasksTakesObjectsAlone(text: String) {
        #expect(
            parse("\(b)\n\(text)\n", .tasks)
                == .refusal(InputRefusal(pointer: "", line: 2, reason: "is not a JSON object"))
        )
    }

    @Test(
        arguments: [
            ("[", "jq -c"), ("[{\"urls\": []}]", "jq -c"), ("  ]", "jq -c"),
            ("  out=b", "the option \"out\" of an input file of aria2"),
            ("https://a.example/x\thttps://b.example/x", "mirrors in an input file of aria2"),
            ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">", "a Metalink file"),
            ("  <url>https://a.example/x</url>", "a Metalink file"),
            ("url=\"https://a.example/x\"", "the option \"url\" of a configuration file of curl"),
            ("url = https://a.example/x", "the option \"url\" of a configuration file of curl"),
            ("--output = \"b\"", "the option \"output\" of a configuration file of curl"),
        ])
    func listOfAnotherProgramIsRefusedWithAHint(line: String, words: String) {
        var parser = ManifestParser(form: .urlsOrTasks)
        let refusal = #expect(throws: InputRefusal.self) {
            _ = try parser.parse("https://a.example/x\n\(line)\n".utf8)
        }
        #expect(refusal?.line == 2 && refusal?.pointer == "" && refusal?.reason.contains(words) == true)
    }

    @Test func streamOfTasksMayHaveBlankLines() {
        #expect(parse("\n\(b)\r\n\r\n", .tasks) == .tasks([2: "k https://example.org/b"]))
    }

    @Test func lineThatIsNoUTF8IsRefused() {
        #expect(
            parse([Array("\(a)\nhttps://h/".utf8) + [0xFF, 0x0A]])
                == .refusal(InputRefusal(pointer: "", line: 2, reason: "is not UTF-8"))
        )
    }

    @Test func lineMayHaveSixtyFourKibibytes() {
        let limit = Int(Limits.manifestLine.bytes)
        let padding = String(repeating: " ", count: limit - a.utf8.count)
        #expect(parse("\(a)\n\(a)\(padding)\n") == .tasks([1: "a \(a)", 2: "a \(a)"]))
        let refusal = InputRefusal(pointer: "", line: 2, reason: "the line is longer than \(Limits.manifestLine)")
        #expect(parse("\(a)\n\(a)\(padding) \n") == .refusal(refusal))
    }

    @Test func endlessLineIsRefusedBeforeItEnds() {
        var parser = ManifestParser(form: .tasks)
        let piece = [UInt8](repeating: UInt8(ascii: "{"), count: 1_024)
        #expect(throws: InputRefusal.self) {
            for _ in 0...64 { _ = try parser.parse(piece) }
        }
    }

    @Test func tasksComeOutAsSoonAsTheirLineIsComplete() throws {
        var parser = ManifestParser(form: .urlsOrTasks)
        #expect(try parser.parse(Array(a.utf8)).isEmpty)
        #expect(try parser.parse(Array("\nhttps://exa".utf8)).map(\.line) == [1])
        #expect(try parser.parse(Array("mple.org/c".utf8)).isEmpty)
        #expect(try parser.finish().map(\.task.key) == ["c"])
    }

    /// The result does not depend on how the bytes are split, whether the manifest is good or bad.
    @Test(
        arguments: [
            "# ü\r\n\(a)\n\n  \(b)\r\n\(a)?ä=1\n{\"urls\":[\"https://example.org/x\"],\"metadata\":{\"a\":\"😀\"}}",
            "\(a)\r\n\(b)\nhttps://example.org/ü x\n\(a)", "\(b)\n{\"urls\":[\"\(a)\"],\"sise\":1}\n", "\r\n\r",
        ])
    func splitAtAnyByteGivesTheSame(text: String) {
        let bytes = Array(text.utf8)
        let whole = parse([bytes])
        for cut in 0...bytes.count {
            #expect(parse([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole, "cut at \(cut)")
        }
        #expect(parse(bytes.map { [$0] }) == whole)
    }
}
