import MusterTestSupport
import Testing

@testable import MusterCurl

/// Heads of HTTP responses, replies of FTP servers, and URLs that redirects lead to.
@Suite struct ResponseHeadFuzzTests {
    private static let limitBytes = 2_048

    /// Lines as libcurl hands them over, each with its line break.
    private static func lines(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(rest[...end])
            rest = rest[(end + 1)...]
        }
        return rest.isEmpty ? lines : lines + [rest]
    }

    @Test func headIsBoundedAndItsFramingIsOneOfItsLines() throws {
        let corpus = [
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nETag: \"a\"\r\n\r\n",
            "HTTP/2 206 \r\ncontent-range: bytes 0-1/2\r\n\r\n",
            "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 302 Found\r\nLocation: /a\r\n folded\r\n\r\n",
            "http/1.1 200\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: +7\r\n\r\n",
            " a: b\r\nHTTP/3 999 x\r\n\t\r\n",
        ]
        try ByteFuzzer(corpus).run { input in
            var head = HeadCollector(followsRedirects: true, limitBytes: Self.limitBytes)
            var isFinal = false
            for line in Self.lines(input.bytes) {
                let event = line.withUnsafeBytes { head.take($0) }
                if case .more = event { continue }
                if case .informational = event { continue }
                if case .final = event { isFinal = true }
                break
            }
            try input.expect((0...999).contains(head.status), "the status is \(head.status)")
            // A byte that is not UTF-8 is replaced by three.
            let bytes = head.headers.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
            try input.expect(bytes <= 3 * Self.limitBytes, "\(bytes) bytes are kept")
            for field in head.headers.fields {
                let isOneLine = !(field.name + field.value).utf8.contains(UInt8(ascii: "\n"))
                try input.expect(isOneLine && !field.name.utf8.contains(UInt8(ascii: ":")), "\(field) is no field")
            }
            if case .contentLength(let length) = head.framing(isHead: false) {
                let stated = head.headers.all("content-length").map { value in
                    Int64(String(decoding: value.utf8.filter { (48...57).contains($0) }, as: UTF8.self))
                }
                try input.expect(length >= 0 && stated.contains(length), "no field states \(length)")
            }
            try input.expect(head.framing(isHead: true) == .none, "an answer to HEAD has a body")
            return isFinal
        }
    }

    @Test func repliesOfAnFTPServerStateNoSizeBelowZero() throws {
        let corpus = [
            "220 hi\r\n213 19700101000000\r\n227 Entering (1,2,3,4,5,6)\r\n213 1234\r\n226 done\r\n221 bye\r\n",
            "229 (|||5|)\r\n213 -5\r\n450-busy\r\n450 busy\r\n", "229 x\r\n213 9223372036854775807\r\n",
            "229 x\n213  7 \n421",
        ]
        try ByteFuzzer(corpus).run { input in
            var replies = FTPReplies()
            for line in Self.lines(input.bytes) { line.withUnsafeBytes { replies.take($0) } }
            try input.expect((0...999).contains(replies.lastCode), "the code is \(replies.lastCode)")
            try input.expect(replies.size ?? 0 >= 0, "the size is \(replies.size ?? 0)")
            try input.expect(replies.size == nil || !replies.statesNegativeSize, "the size has two signs")
            guard let size = replies.size else { return false }
            // The head that is made of it is one that HTTP knows.
            for (first, last) in [(0, nil), (5, nil), (size, nil), (size / 2, size), (0, .max)] as [(Int64, Int64?)] {
                let facts = FileHead.Facts(size: size, modificationTime: size)
                let head = FileHead.file(facts, range: RangeSpec(first: first, last: last))
                try input.expect(head.status == (first < size ? 206 : 416), "\(first) of \(size) is \(head.status)")
                guard head.status == 206 else { continue }
                let end = first + (head.length ?? 0)
                try input.expect(end > first && end <= size, "the part ends at \(end) of \(size)")
                let stated = head.headers["Content-Range"] ?? ""
                try input.expect(stated == "bytes \(first)-\(end - 1)/\(size)", "the part up to \(end) is \(stated)")
            }
            return true
        }
    }

    @Test func momentOfAFileIsADateOfHTTPOrNone() throws {
        let corpus = ["0", "784111777", "-62167219200", "253402300799", "253402300800", "9223372036854775807"]
        try ByteFuzzer(corpus).run { input in
            guard let seconds = Int64(input.text) else { return false }
            let text = HTTPDate.text(secondsSince1970: seconds)
            let isInRange = (-62_167_219_200...253_402_300_799).contains(seconds)
            try input.expect((text != nil) == isInRange, "\(seconds) is written as \(text ?? "nothing")")
            let form = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/
            try input.expect(text.map { $0.wholeMatch(of: form) != nil } ?? true, "\(text ?? "") is no date")
            return text != nil
        }
    }

    @Test func credentialsAreTakenOutOfAnyURL() throws {
        let corpus = [
            "https://user:password@e.org/a@b?c@d", "http://a@b@c:80", "u:p@proxy:3128", "ftp://h/;type=i",
            "sftp://u@h/d/", "http://\u{301}u:p@h/", "HTTPS://E.org:443/%41",
        ]
        try ByteFuzzer(corpus).run { input in
            let url = input.text
            let rest = URLCredentials.removed(from: url)
            try input.expect(URLCredentials.text(of: rest) == nil, "\(rest) still has credentials")
            // libcurl reads the same host without them, and finds no user.
            if !url.utf8.contains(0), let origin = URLOrigin(url) {
                let again = URLOrigin(rest)
                try input.expect(again == nil || again == origin, "\(origin) becomes \(again.map { "\($0)" } ?? "")")
                try input.expect(!origin.host.isEmpty && UInt16(origin.port) != nil, "\(origin) is no origin")
                if let scheme = FileScheme(url: url), scheme.complaint(about: url) == nil {
                    let path = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
                    try input.expect(path.last != UInt8(ascii: "/"), "a directory passes")
                }
            }
            return rest != url
        }
    }
}
