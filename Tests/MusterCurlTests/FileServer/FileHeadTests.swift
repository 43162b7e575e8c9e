import Testing

@testable import MusterCurl

@Suite struct FileHeadTests {
    private static let facts = FileHead.Facts(size: 10, modificationTime: 784_111_777)

    @Test func plainRequestIsAnsweredBy200() {
        let head = FileHead.file(Self.facts, range: nil)
        #expect(head.status == 200)
        #expect(head.headers == ["Content-Length": "10", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"])
        #expect(head.length == 10)
        #expect(!head.isWithoutBody)
    }

    @Test(
        arguments: [
            (0, nil, "bytes 0-9/10", 10), (0, 0, "bytes 0-0/10", 1), (3, 5, "bytes 3-5/10", 3),
            (9, nil, "bytes 9-9/10", 1),
            (9, .max, "bytes 9-9/10", 1),
        ] as [(Int64, Int64?, String, Int64)])
    func rangeIsCutAtTheEnd(first: Int64, last: Int64?, stated: String, length: Int64) {
        let head = FileHead.file(Self.facts, range: RangeSpec(first: first, last: last))
        #expect(head.status == 206)
        #expect(head.headers["Content-Range"] == stated)
        #expect(head.headers["Content-Length"] == "\(length)")
        #expect(head.length == length)
    }

    @Test(arguments: [10, 11, .max] as [Int64])
    func rangeBehindTheEndIsNotSatisfiable(first: Int64) {
        let head = FileHead.file(Self.facts, range: RangeSpec(first: first, last: nil))
        #expect(head.status == 416)
        #expect(head.headers["Content-Range"] == "bytes */10")
        #expect(head.length == 0)
    }

    @Test func partOfAFileOfUnknownSizeHasNoHead() {
        let facts = FileHead.Facts(size: nil, modificationTime: nil)
        let start = FileHead.file(facts, range: RangeSpec(first: 0, last: 5))
        #expect(start.status == 200)
        #expect(start.headers == [])
        #expect(!start.isWithoutBody)
        let later = FileHead.file(facts, range: RangeSpec(first: 1, last: 5))
        #expect(later.status == 200)
        #expect(later.isWithoutBody)
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (-1_000_000_000, "Sun, 24 Apr 1938 22:13:20 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (253_402_300_800, nil), (.max, nil),
        ] as [(Int64, String?)])
    func datesAreThoseOfHTTP(seconds: Int64, text: String?) {
        #expect(HTTPDate.text(secondsSince1970: seconds) == text)
    }

    @Test(
        arguments: [
            (["220 hi", "213 19941106084937", "229 ok (|||1|)", "213 12"], 12, 213),
            (["220 hi", "213 19941106084937", "227 ok", "502 what?", "150 file (77 bytes)"], nil, 150),
            (["220-213 5", "220 hi", "229 ok (|||1|)", "213 x"], nil, 213),
            (["229 ok", "213 7", "226 done", "221 bye"], 7, 226),
            (["nonsense", "", "12", "1234 5"], nil, 0),
        ] as [([String], Int64?, Int)])
    func sizeIsReadFromTheRepliesOfTheServer(lines: [String], size: Int64?, last: Int) {
        var replies = FTPReplies()
        for line in lines { Array("\(line)\r\n".utf8).withUnsafeBytes { replies.take($0) } }
        #expect(replies.size == size)
        #expect(replies.lastCode == last)
    }

    @Test(
        arguments: [
            ("ftp://h/f", .ftp), ("FTPS://h/f", .ftps), ("sftp://h/f", .sftp), ("http://ftp/f", nil), ("ftp", nil),
            ("", nil),
        ] as [(String, FileScheme?)])
    func schemeIsReadInAnyCase(url: String, scheme: FileScheme?) {
        #expect(FileScheme(url: url) == scheme)
    }

    @Test(
        arguments: [
            ("http://u:p@h:1/a@b?c@d", "http://h:1/a@b?c@d", "u:p"), ("http://h/a@b", "http://h/a@b", nil),
            ("u:p@h:1", "h:1", "u:p"), ("ftp://a@b:c@h/", "ftp://h/", "a@b:c"), ("http://h?x@y", "http://h?x@y", nil),
            ("http://@h/", "http://h/", ""),
        ] as [(String, String, String?)])
    func credentialsAreTakenOutOfAURL(url: String, rest: String, credentials: String?) {
        #expect(URLCredentials.removed(from: url) == rest)
        #expect(URLCredentials.text(of: url) == credentials)
    }

    @Test func originIsSchemeHostAndPort() throws {
        let origin = try #require(URLOrigin("HTTPS://Example.ORG/a"))
        #expect(origin == URLOrigin("https://example.org:443/b"))
        #expect(origin != URLOrigin("http://example.org:443/"))
        #expect(origin != URLOrigin("https://example.org:444/"))
        #expect(origin != URLOrigin("https://www.example.org/"))
        #expect(URLOrigin("/x", relativeTo: "https://example.org/a") == origin)
        #expect(URLOrigin("//example.org/x", relativeTo: "https://other/a") == origin)
        #expect(URLOrigin("http:/\\", relativeTo: "https://other/a")?.scheme != "https")
    }
}
