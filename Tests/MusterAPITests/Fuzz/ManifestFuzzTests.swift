import FoundationEssentials
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterAPI

/// Manifests: lists of URLs and tasks that come from anywhere.
@Suite struct ManifestFuzzTests {
    private static let task =
        #"{"key":"k","urls":["https://e.org/a","http://f.org/b"],"path":"d/p","size":12,"#
        + #""priority":7,"digests":{"crc32c":"0a0b0c0d"}}"#
    private static let corpus = [
        "https://e.org/a\n# a remark\n\n\thttps://e.org/b c \r\nftp://h/x", task + "\n" + task,
        #"{"urls":["http://e.org/ü"],"metadata":{"a":[1,null]},"headers":{"X":"y"},"fetch":{"decode":true}}"#,
        #"{"urls":["http://e.org/a"],"digests":{"9223372036854775807":"x"}}"#, "https://u:p@e.org/a",
        "[\n<a>\n  out=b\n",
        "http://e.org/a\thttp://f.org/a\nurl = \"http://e.org\"\n{}\n",
        String(repeating: "a", count: 66_000) + "\n{",
    ]

    /// What a parser makes of a manifest.
    private struct Reading: Equatable {
        var lines: [Int] = []
        var tasks: [TaskSpecification] = []
        var options: [FetchOptions?] = []
        var refusals: [InputRefusal] = []

        init(_ pieces: [[UInt8]], _ form: ManifestParser.Form) throws {
            var parser = ManifestParser(form: form)
            var refused: [InputRefusal] = []
            func note(_ refusal: InputRefusal) { refused.append(refusal) }
            var entries: [ManifestParser.Entry] = []
            for piece in pieces { entries += try parser.parse(piece, refused: note) }
            entries += try parser.finish(refused: note)
            lines = entries.map(\.line)
            tasks = entries.map(\.task)
            options = entries.map(\.fetch)
            refusals = refused
        }
    }

    @Test func readingDoesNotDependOnHowTheBytesCome() throws {
        try ByteFuzzer(Self.corpus, longestBytes: 80_000).run { input in
            var accepted = false
            for form in [ManifestParser.Form.urlsOrTasks, .tasks] {
                let whole = try Reading([input.bytes], form)
                let pieces = try Reading(input.pieces, form)
                try input.expect(pieces == whole, "in pieces it is \(pieces), and as a whole \(whole)")
                let count = input.bytes.count { $0 == UInt8(ascii: "\n") } + 1
                let lines = whole.lines + whole.refusals.compactMap(\.line)
                try input.expect(Set(lines).count == lines.count, "a line is read twice")
                try input.expect(lines.allSatisfy { (1...count).contains($0) }, "a line is beyond the end")
                for task in whole.tasks { try Self.check(task, input) }
                accepted = accepted || !whole.tasks.isEmpty
            }
            return accepted
        }
    }

    /// The bounds of every task, whichever way it was read.
    private static func check(_ task: TaskSpecification, _ input: FuzzInput) throws {
        try input.expect((1...Limits.keyBytes).contains(task.key.utf8.count), "the key \(task.key) is too long")
        try input.expect(!task.key.utf8.contains { $0 < 32 }, "the key has a control character")
        try input.expect((1...Limits.sourcesPerTask).contains(task.sources.count), "it has too many sources")
        try input.expect((0...Limits.fileSize.bytes).contains(task.size ?? 0), "its size is \(task.size ?? 0)")
        try input.expect(Limits.priority.contains(task.priority), "its priority is \(task.priority)")
        try input.expect((try? DestinationPath(validating: task.path.string)) == task.path, "\(task.path) is no path")
        for (name, value) in task.headers {
            try input.expect(
                name.utf8.count + value.utf8.count <= Limits.headerBytes
                    && !(name + value).utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 },
                "the header \(name) may not be sent")
        }
        for digest in task.digests {
            try input.expect(
                digest.hexadecimal.utf8.count == digest.algorithm.hexadecimalDigits, "\(digest) has other digits")
        }
    }

    @Test func fastReaderReadsWhatTheDecoderReads() throws {
        let corpus = [
            Self.task, #" { "urls" : [ "http://e.org/a" ] , "size" : 0 }  "#,
            #"{"urls":["http://e.org/a"],"priority":-1}"#, #"{"urls":["http://e.org/a"],"digests":{}}"#,
            #"{"urls":["http://e.org/a"],"size":123456789012345678,"path":"a"}"#,
        ]
        try ByteFuzzer(corpus).run { input in
            guard let task = PlainTaskReader.task(input.bytes) else { return false }
            let request = try JSONDecoder().decode(TaskRequest.self, from: Data(input.bytes))
            let other = try request.validated()
            try input.expect(task == other, "it is read as \(task), and by the decoder as \(other)")
            return true
        }
    }

    @Test func passwordOfATypedURLIsNotShown() throws {
        let corpus = [
            "https://user:password@e.org/a", "https://user:pass%40word@e.org/?q", "ftp://u@h/",
            "http://u:p@x@h/a@b", "u@h", "https://\u{301}user:password@e.org/a", "https://e.org/a@b",
        ]
        try ByteFuzzer(corpus).run { input in
            let request = TaskRequest(typed: input.text)
            let (url, shown) = (request.urls[0], TaskRequest.shown(input.text))
            let (typed, kept) = (Self.userInfo(input.text), Self.userInfo(url))
            try input.expect(kept == nil, "\(url) has a user")
            try input.expect((typed != nil) == (request.fetch?.credentials != nil), "the user is lost or made up")
            try input.expect(Self.userInfo(shown).map { $0 == Array("…".utf8) } ?? true, "\(shown) shows the user")
            // Whatever goes on from here has no credentials in its URL.
            if let source = try? SourceURL(validating: url) {
                try input.expect(Self.userInfo(source.string) == nil, "\(source) has a user")
            }
            return typed != nil
        }
    }

    /// The bytes between `://` and the last `@` of the authority (RFC 3986 §3.2.1).
    private static func userInfo(_ url: String) -> [UInt8]? {
        let bytes = Array(url.utf8)
        let scheme = Array("://".utf8)
        guard let colon = bytes.indices.first(where: { bytes[$0...].starts(with: scheme) }) else { return nil }
        let authority = bytes[(colon + scheme.count)...].prefix { !"/?#".utf8.contains($0) }
        return authority.lastIndex(of: UInt8(ascii: "@")).map { Array(authority[..<$0]) }
    }

    @Test func shownResolverHasNoValueOfItsQuery() throws {
        let corpus = ["https://e.org/r?key=secret&b=c#f", "https://e.org/r?secret", "https://e.org/r", "a?b=c=d&e"]
        try ByteFuzzer(corpus).run { input in
            let shown = ResolverDocument.shown(input.text)
            guard let start = shown.firstIndex(of: "?") else { return false }
            let items = shown[shown.index(after: start)...].split(separator: "&")
            try input.expect(items.allSatisfy { $0 == "•••" || $0.hasSuffix("=•••") }, "\(shown) shows a value")
            return !items.isEmpty
        }
    }
}
