import FoundationEssentials
import MusterTestSupport
import Testing

@testable import MusterCore

/// Paths, URLs and other parts of tasks.
@Suite struct TaskFuzzTests {
    @Test func pathStaysBelowItsSink() throws {
        let corpus = [
            "a/b.tar", "d/e/f (2).tar.gz", "..a/b..", ".muster2/a", "\u{301}/\u{e4}",
            String(repeating: "d/", count: 500) + "f", String(repeating: "n", count: 255),
        ]
        try ByteFuzzer(corpus).run { input in
            let suggested = DestinationPath.suggested(byURLPath: input.text)
            try input.expect(
                (try? DestinationPath(validating: suggested))?.string == suggested
                    && !suggested.utf8.contains(UInt8(ascii: "/")),
                "the suggestion \(suggested.debugDescription) is no name")
            guard let path = try? DestinationPath(validating: input.text) else { return false }
            // The directories that the file system goes through, byte by byte.
            let parts = path.string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            for part in parts.map({ Array($0) }) {
                let isName = !part.isEmpty && part != Array(".".utf8) && part != Array("..".utf8) && !part.contains(0)
                try input.expect(isName && part.count <= Limits.pathComponentBytes, "\(part) is no name")
            }
            try input.expect(path.string.utf8.count <= Limits.pathBytes, "it is too long")
            try input.expect(parts[0].map { $0 | 0x20 } != Array(".muster".utf8), "it is Muster's own directory")
            guard path.string.utf8.count < 200, let numbered = path.numbered(17) else { return true }
            try input.expect(numbered.number == 17, "\(numbered) does not have its number")
            let directories = numbered.string.utf8.split(separator: UInt8(ascii: "/")).dropLast().map { Array($0) }
            try input.expect(directories == parts.dropLast().map { Array($0) }, "\(numbered) is elsewhere")
            return true
        }
    }

    @Test func bothReadersOfURLsAgreeAndTheOriginIsReadAgain() throws {
        let corpus = [
            "https://example.org/a/b.tar?x=1", "http://127.0.0.1:8080/", "HTTP://Example.ORG:80/%20",
            "http://[::1]:1/a", "ftp://h/%2fetc", "sftp://[fe80::1%25eth0]:22/~/a", "http://a%2Fb.example/",
            "https://b\u{fc}cher.example/\u{301}a", "http://example.org:/a", "http://e.org/a/../b;c=d",
        ]
        try ByteFuzzer(corpus, longestBytes: 9_000).run { input in
            let text = input.text
            guard let url = try? SourceURL(validating: text) else { return false }
            try input.expect(url.string.utf8.count <= Limits.urlBytes, "it is too long")
            let isSent = !url.string.utf8.contains { $0 <= 32 || $0 == 127 || $0 == UInt8(ascii: "#") }
            try input.expect(isSent, "\(url) is no URL of a request")
            let port = url.origin.split(separator: ":").last.flatMap { Int($0) } ?? 0
            try input.expect((1...65_535).contains(port), "the port of \(url.origin) is \(port)")
            // A fragment takes the text to the full reader.
            if !text.utf8.contains(UInt8(ascii: "#")), text.utf8.count < Limits.urlBytes {
                let full = try? SourceURL(validating: text + "#")
                try input.expect(full == url, "the full reader reads something else")
            }
            // The zone of an address is written in more than one way.
            if !url.origin.utf8.contains(UInt8(ascii: "%")) {
                let again = (try? SourceURL(validating: url.origin + "/"))?.origin
                try input.expect(again == url.origin, "\(url.origin) is read as \(again ?? "no URL")")
            }
            return true
        }
    }

    @Test func everyPointerIsPutIntoWords() throws {
        let corpus = ["/urls/0", "/headers/a~1~0b", "/digests/9223372036854775807", "/headers/-1", "", "/", "//7/x"]
        try ByteFuzzer(corpus).run { input in
            let words = InputRefusal.field(input.text)
            let parts = input.text.split(separator: "/").count
            try input.expect(words.isEmpty == (parts == 0), "\(parts) parts are shown as \(words)")
            // A name that is no number is shown as it is.
            let name = input.text
            let isPrintable = !name.isEmpty && name.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
            guard isPrintable, Int(name) == nil else { return true }
            let shown = InputRefusal.field("/headers/" + InputRefusal.pointerPart(name))
            try input.expect(shown == "\"headers\", \"\(name)\"", "the name is shown as \(shown)")
            return true
        }
    }

    @Test func anyJSONIsWrittenAsItWasRead() throws {
        let corpus = [
            #"{"a":[1,null,{"b":false}],"c":"\u00e4\/"}"#, "[9223372036854775807,-9223372036854775808,1.5,1e300]",
            #""\ud83d\ude00""#, "true", String(repeating: "[", count: 400) + String(repeating: "]", count: 400),
            #"[[],{},""]"#,
        ]
        try ByteFuzzer(corpus, longestBytes: 16_384).run { input in
            guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(input.bytes)) else { return false }
            let again = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value))
            try input.expect(again == value, "\(value) becomes \(again)")
            return true
        }
    }

    @Test func secretPrintsNothingAndItsReferenceIsWellFormed() throws {
        let corpus = ["env:TOKEN_1", "file:/etc/token", "value:env:x", "plain", "env:1A", "file:token"]
        try ByteFuzzer(corpus).run { input in
            let secret = Secret(input.text)
            try input.expect("\(secret)" == "•••" && String(reflecting: secret) == "•••", "it is shown as \(secret)")
            guard secret.isWellFormed else { return false }
            switch secret.form {
            case .value(let text): try input.expect(input.text.hasSuffix(text), "the value is another one")
            case .environment(let name):
                try input.expect(name.firstMatch(of: /^[A-Za-z_][A-Za-z0-9_]*$/) != nil, "\(name) is no variable")
            case .file(let path):
                try input.expect(path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0), "\(path) is no path")
            }
            return true
        }
    }
}
