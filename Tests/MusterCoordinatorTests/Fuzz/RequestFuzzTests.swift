import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// Fields of requests from strangers, and what workers report.
@Suite("Requests that are nearly right")
struct RequestFuzzTests {
    @Test func onlyLoopbackHostsPassOnLoopback() throws {
        let check = StrangerCheck(listenHost: "127.0.0.1", names: [])
        let corpus = [
            "localhost:7300", "127.0.0.1", "[::1]:80", "LOCALHOST.", "127.1.2.3:1", "127.0.0.1.example.org",
            "[::1%eth0]", "example.org", "localhost@example.org",
        ]
        try ByteFuzzer(corpus).run { input in
            guard (try? check.check(authority: input.text, origins: [])) != nil else { return false }
            try input.expect(Self.isLoopback(input.text), "it is no name of this machine")
            func passes(_ page: String) -> Bool {
                (try? check.check(authority: input.text, origins: [page])) != nil
            }
            try input.expect(passes("http://" + input.text), "the coordinator's own page is refused")
            for page in ["http://example.org", "null", input.text, "http://user@" + input.text] {
                try input.expect(!passes(page), "the page \(page) passes")
            }
            return true
        }
    }

    /// Whether an authority names this machine: by the one name, or by an address as the system reads it.
    private static func isLoopback(_ authority: String) -> Bool {
        let lowered = authority.lowercased()
        if lowered.hasPrefix("[") { return lowered == "[::1]" || lowered.hasPrefix("[::1]:") }
        var host = lowered.prefix { $0 != ":" }
        if host.last == "." { host = host.dropLast() }
        // Which module `in_addr` belongs to is not the same in every build.
        let isAddress = withUnsafeTemporaryAllocation(byteCount: 4, alignment: 4) {
            inet_pton(AF_INET, String(host), $0.baseAddress) == 1
        }
        return host == "localhost" || host.hasPrefix("127.") && isAddress
    }

    @Test func typeThatIsPreferredIsNamed() throws {
        let corpus = [
            "text/event-stream", "application/json;q=0.4, text/event-stream;q=0.5", "text/*;q=nan, */*;q=1e9",
            "Text/Event-Stream ; q=0.001", "text/event-stream;q=-1",
        ]
        try ByteFuzzer(corpus).run { input in
            let field = AcceptField([input.text])
            let prefers = field.prefers("text/event-stream", to: "application/json")
            let isNamed = input.text.lowercased().filter { $0 != " " && $0 != "\t" }.contains("text/event-stream")
            try input.expect(!prefers || isNamed, "a type is preferred that is not named")
            return prefers
        }
    }

    @Test func reportedTextIsBoundedAndCleanAndStaysSo() throws {
        let corpus = [
            "a detail", String(repeating: "x", count: 1_999) + "漢字", "r-1\u{1b}[2J", "192.0.2.1", "2001:db8::1",
            "\"tag\"", "d/a (2).tar", "../a", String(repeating: "e", count: 8_193), String(repeating: "0a", count: 16),
        ]
        try ByteFuzzer(corpus, longestBytes: 10_000).run { input in
            let clean = ReportedText.clean(input.text)
            let isStorable = clean.utf8.count <= 2_000 && !clean.utf8.contains(0)
            try input.expect(isStorable, "\(clean.utf8.count) bytes can't be stored")
            try input.expect(ReportedText.clean(clean) == clean, "the stored text changes")
            let id = ReportedText.requestID(input.text)
            let isPrintable = id?.utf8.allSatisfy { (33...126).contains($0) } ?? true
            let length = id?.utf8.count ?? 1
            try input.expect(isPrintable && (1...200).contains(length), "the name of a request is \(id ?? "")")
            let address = ReportedText.address(input.text)
            try input.expect(address.map { AddressRange($0) != nil } ?? true, "\(address ?? "") is no address")
            let validator = ReportedText.validator(input.text)
            let isWhole = validator == nil || validator == input.text && input.text.utf8.count <= Limits.validatorBytes
            try input.expect(isWhole, "a part of a validator is stored")
            let name = ReportedText.name(input.text)
            let isName = name.map { !$0.utf8.contains(UInt8(ascii: "/")) && $0 != ".." } ?? true
            try input.expect(isName, "a name is a path")
            for (algorithm, value) in ReportedText.digests(["md5": input.text, "sha256": input.text]) {
                let digits = DigestAlgorithm(rawValue: algorithm)?.hexadecimalDigits
                try input.expect(value.utf8.count == digits, "\(algorithm) is \(value)")
            }
            return address != nil || name != nil
        }
    }
}
