import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCommandLine

/// Arguments, configuration files and manifests, and texts of others on a terminal.
@Suite("Arguments that are nearly right")
struct ArgumentFuzzTests {
    @Test func listenAddressIsWrittenAsItIsRead() throws {
        let corpus = ["127.0.0.1:7300", "[::1]:7300", "localhost:0", "0.0.0.0:80", "[fe80::1%eth0]:1", "h:65535"]
        try ByteFuzzer(corpus).run { input in
            guard let address = ListenAddress(input.text) else { return false }
            try input.expect((0...65_535).contains(address.port), "the port is \(address.port)")
            try input.expect(ListenAddress(address.description) == address, "it is written as \(address)")
            let isHost = !address.host.utf8.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: " ") }
            try input.expect(isHost && !address.host.isEmpty, "the host is \(address.host)")
            return true
        }
    }

    @Test func partOfTheDayHasTwoTimes() throws {
        try ByteFuzzer(["22:00-06:00", "8:00-24:00", "0:00-0:00", "23:59-00:01"]).run { input in
            guard let window = TimeWindowArgument(input.text) else { return false }
            for time in [window.from, window.to] {
                let parts = time.split(separator: ":").compactMap { Int($0) }
                let isTime = time.utf8.count == 5 && parts.count == 2 && parts[0] < 24 && parts[1] < 60
                try input.expect(isTime, "\(time) is no time of the day")
            }
            let again = TimeWindowArgument("\(window.from)-\(window.to)")
            try input.expect(again == window, "it is read again as \(again.map { "\($0)" } ?? "nothing")")
            return true
        }
    }

    @Test func rateDigestAndPatternKeepTheRulesOfTheCoordinator() throws {
        let digest = "sha256:" + String(repeating: "0a", count: 32)
        let corpus = [
            "500KiB/s", "2M", "20MB/s", "1", digest, "SHA-1:" + String(repeating: "F", count: 40), "night-*", "?.b",
        ]
        try ByteFuzzer(corpus).run { input in
            let rate = RateNotation.parse(input.text)
            try input.expect(rate.map { Limits.bytesPerSecond.contains($0) } ?? true, "the rate is out of bounds")
            let digest = try? DigestArgument(input.text)
            if let digest {
                let (name, value) = try #require(digest.document.first)
                let again = try DigestArgument("\(name):\(value)")
                try input.expect(again == digest, "it is another digest as \(again)")
                try input.expect(value.utf8.count == digest.digest.algorithm.hexadecimalDigits, "it has other digits")
            }
            // A pattern of the command line is one of the coordinator's.
            let pattern = try? GroupPattern(input.text)
            let filter = try? EventFilter(groups: input.text, types: [])
            try input.expect(pattern == nil || filter != nil, "the coordinator would refuse the pattern")
            return rate != nil || digest != nil || pattern != nil
        }
    }

    @Test func sinkHasANameAndAnAbsoluteDirectory() throws {
        try ByteFuzzer(["default=/srv/files", "a=.", "b=x/y", "n=/a=b"]).run { input in
            guard let sink = try? SinkArgument(input.text, base: "/base") else { return false }
            try input.expect(NameRule.accepts(sink.name), "its name is \(sink.name)")
            try input.expect(sink.directory.utf8.first == UInt8(ascii: "/"), "its directory is \(sink.directory)")
            return true
        }
    }

    @Test func configurationFileHasKnownKeysAlone() throws {
        let corpus = [
            #"{"server": "http://10.0.0.1:7300", "slots": 3, "json": true, "work": {"sink": ["a=/srv"], "slots": 9}}"#,
            #"{"get": {"directory": "d"}, "sink": ["a=/x", "b=/y"], "rate": "2M"}"#, #"{"slots": 9223372036854775807}"#,
        ]
        try ByteFuzzer(corpus).run { input in
            let file = try? ConfigurationFile(
                json: input.bytes, path: "f", command: "work", commands: MusterCommand.names)
            guard let file else { return false }
            for (name, texts) in file.values {
                try input.expect(name != .exitWithParent, "a key is one that no user has")
                try input.expect(name.isList || texts.count == 1, "\(name) has \(texts.count) values")
                let bytes = texts.reduce(0) { $0 + $1.utf8.count }
                // A number such as 1e18 is longer when it is written out.
                try input.expect(bytes <= input.bytes.count + 20 * texts.count, "\(name) has \(bytes) bytes")
            }
            return true
        }
    }

    /// What a command sends of a list is what it has checked.
    @Test func convertedListHasTheTasksOfTheList() throws {
        let corpus = [
            "https://e.org/a\r\n{\"urls\":[\"https://e.org/ü\"],\"size\":3}\n\n# x\nhttps://u:p@e.org/c",
            "ftp://h/%41?q\n",
            "\thttps://e.org/b \n{\"urls\":[\"http://e.org/c\"],\"key\":\"k\",\"metadata\":[1.5]}",
        ]
        try ByteFuzzer(corpus).run { input in
            guard let given = try? Self.entries([input.bytes], .urlsOrTasks), !given.isEmpty else { return false }
            var lines = ManifestLines()
            let sent = try lines.convert(input.bytes) + lines.finish()
            let taken = try Self.entries(sent, .tasks)
            try input.expect(taken.map(\.task) == given.map(\.task), "the tasks are \(taken.map(\.task))")
            try input.expect(taken.map(\.fetch) == given.map(\.fetch), "the options are other ones")
            try input.expect(taken.map(\.line) == given.map(\.line), "the lines are \(taken.map(\.line))")
            return true
        }
    }

    private static func entries(_ pieces: [[UInt8]], _ form: ManifestParser.Form) throws -> [ManifestParser.Entry] {
        var parser = ManifestParser(form: form)
        var entries: [ManifestParser.Entry] = []
        for piece in pieces { entries += try parser.parse(piece) }
        return try entries + parser.finish()
    }

    @Test func textOfOthersFitsItsLinesAndIsVisible() throws {
        let corpus = [
            "a file of some length.tar.gz", "\u{1b}[2J\u{202e}name", "漢字\u{1f469}\u{200d}\u{1f467}x",
            "one  two, three; four:", "  indented words of a sentence that goes on", "\u{1f1e6}\u{1f1e7}\u{1f1e8}",
            "e\u{301}\u{fe0f}\u{200d}",
        ]
        try ByteFuzzer(corpus, longestBytes: 96).run { input in
            let text = TextWidth.escaped(input.text)
            try input.expect(TextWidth.escaped(text) == text, "\(text.debugDescription) has something invisible")
            for width in [1, 2, 7, 40] {
                let clipped = TextWidth.clipped(text, to: width)
                try input.expect(TextWidth.columns(clipped) <= width, "\(clipped) is wider than \(width)")
                let shortened = TextWidth.shortened(text, to: width)
                try input.expect(TextWidth.columns(shortened) <= width, "\(shortened) is wider than \(width)")
                let words = TextWidth.wrapped(text, to: width, hanging: 2).flatMap { $0.split(separator: " ") }
                try input.expect(words == text.split(separator: " "), "in \(width) columns the words are \(words)")
            }
            return true
        }
    }
}
