import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("The lines of a manifest")
struct ManifestLinesTests {
    private func convert(_ text: String, chosen: Set<String>? = nil) throws -> [String] {
        var lines = ManifestLines(chosen: chosen)
        let converted = try lines.convert(Array(text.utf8)) + lines.finish()
        return converted.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func aURLBecomesATaskAndATaskStaysAsItIs() throws {
        let task = #"{"urls": ["https://e.org/b"],  "path": "b/b"}"#
        #expect(
            try convert("https://e.org/a?x=1\n\(task)\n") == [
                #"{"urls":["https:\/\/e.org\/a?x=1"]}"# + "\n", task + "\n",
            ]
        )
    }

    @Test func linesThatAreSkippedStayLines() throws {
        let converted = try convert("\n# a remark\n  \nhttps://e.org/a")
        #expect(converted.count == 4)
        #expect(converted.prefix(3).allSatisfy { $0 == "\n" })
        #expect(converted.last?.hasSuffix("}\n") == true)
    }

    @Test func theResultDoesNotDependOnHowTheBytesCome() throws {
        let text = "https://e.org/a\r\n{\"urls\":[\"https://e.org/ü\"]}\n\nhttps://e.org/c"
        let whole = try convert(text)
        var lines = ManifestLines()
        var single: [[UInt8]] = []
        for byte in text.utf8 { single += try lines.convert([byte]) }
        single += try lines.finish()
        #expect(single.map { String(decoding: $0, as: UTF8.self) } == whole)
    }

    @Test func everyConvertedLineIsWhatTheCoordinatorTakes() throws {
        var parser = ManifestParser(form: .tasks)
        let converted = try convert("# list\nhttps://e.org/a\n\n\thttps://e.org/b \n{\"urls\":[\"http://e.org/c\"]}")
            .joined()
        let entries = try parser.parse(Array(converted.utf8)) + parser.finish()
        #expect(entries.map(\.line) == [2, 4, 5])
        #expect(entries.map(\.task.key) == ["a", "b", "c"])
    }

    @Test func onlyChosenTasksGoOn() throws {
        let text = "https://e.org/a\n{\"urls\":[\"https://e.org/x\"],\"key\":\"b\"}\nhttps://e.org/c\n"
        let converted = try convert(text, chosen: ["b", "c"])
        #expect(converted.map { $0 == "\n" } == [true, false, false])
    }

    /// The key stays, so that it is the same task.
    @Test func aFileThatStandsElsewhereIsAskedForThere() throws {
        let place = try DestinationPath(validating: "x (2)")
        var lines = ManifestLines(places: ["a": place, "k": place])
        let text = "https://e.org/a\n{\"key\":\"k\",\"urls\":[\"https://e.org/b\"]}\nhttps://e.org/c\n"
        let tasks = try lines.convert(Array(text.utf8)).map { line in
            try JSONDecoder().decode(TaskRequest.self, from: Data(line)).validated()
        }
        #expect(tasks.map(\.key) == ["a", "k", "c"])
        #expect(tasks.map(\.path.string) == ["x (2)", "x (2)", "c"])
    }
}
