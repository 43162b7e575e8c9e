import MusterCore
import Testing

struct SourceURLTests {
    private static func refusal(_ text: String) -> SourceURL.Refusal? {
        do {
            _ = try SourceURL(validating: text)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            ("https://example.org/a/b.tar", "https://example.org:443", "/a/b.tar"),
            ("http://example.org", "http://example.org:80", ""),
            ("HTTP://EXAMPLE.org:8080/X?q=1#f", "http://example.org:8080", "/X"),
            ("https://example.org:443/", "https://example.org:443", "/"),
            ("http://127.0.0.1:1/", "http://127.0.0.1:1", "/"),
            ("http://[::1]:8080/a", "http://[::1]:8080", "/a"),
            ("http://[2001:DB8::1]/a", "http://[2001:db8::1]:80", "/a"),
            ("https://example.org/a%20b?X=%2F", "https://example.org:443", "/a%20b"),
            (
                "https://example.org/My%20Show%20[720p].mkv?x=[#[", "https://example.org:443",
                "/My%20Show%20[720p].mkv"
            ), ("https://example.org/q|%20{é}", "https://example.org:443", "/q|%20{é}"),
            ("https://example.org:65535/", "https://example.org:65535", "/"),
            ("https://example.org:/a", "https://example.org:443", "/a"),
            // Row 37.
            ("ftp://example.org/pub/a", "ftp://example.org:21", "/pub/a"),
            ("ftps://example.org/a", "ftps://example.org:990", "/a"),
            ("SFTP://Example.org/~/a", "sftp://example.org:22", "/~/a"),
            ("sftp://[::1]:2222/a", "sftp://[::1]:2222", "/a"),
        ])
    func originIsSchemeHostAndPort(text: String, origin: String, path: String) throws {
        let url = try SourceURL(validating: text)
        // No request has the fragment (RFC 9110 §7.1), so two URLs that differ only by it are the same.
        #expect(url.string == text.prefix { $0 != "#" })
        #expect(url.description == url.string)
        #expect(url.origin == origin)
        #expect(url.path == path)
    }

    @Test(
        arguments: [
            "", " ", "https://example.org/a b", " https://example.org/", "https://example.org/\n",
            "https://example.org/\u{7f}", "https://exam\tple.org/", "http://[::1/", "http://[::1", "\0",
            "https://example.org:x/",
        ])
    func whatIsNoURLIsRefused(text: String) {
        #expect(Self.refusal(text) == .malformed)
    }

    @Test(arguments: [
        "example.org/a", "/a", "//example.org/a", "www.example.org", "localhost:8080/a", "example.org:80",
        "\"https://example.org/a\"", "'https://example.org/a'",
    ])
    func aURLBeginsWithItsScheme(text: String) {
        #expect(Self.refusal(text) == .noScheme)
    }

    @Test(arguments: ["https://", "https:///a", "https:a", "http://:80/", "http://:28100"])
    func aURLNamesAHost(text: String) {
        #expect(Self.refusal(text) == .noHost)
    }

    @Test(arguments: ["0", "65536", "99999999999999999999"])
    func aPortIsANumber(port: String) {
        #expect(Self.refusal("https://example.org:\(port)/") == .noPort)
    }

    @Test(arguments: [
        ("gopher://h/a", "gopher"), ("file:///etc/passwd", "file"), ("S3://b/k", "s3"), ("javascript:x", "javascript"),
        ("scp://h/a", "scp"), ("ftpes://h/a", "ftpes"), ("smb://h/a", "smb"), ("httpx://h/a", "httpx"),
    ])
    func otherSchemesAreRefused(text: String, scheme: String) {
        #expect(Self.refusal(text) == .unsupportedScheme(scheme))
    }

    @Test(arguments: [
        "https://u:p@example.org/", "https://u@example.org/", "https://:p@example.org/", "https://@example.org/",
        "ftp://anonymous:x@example.org/a", "sftp://u@example.org/a",
    ])
    func credentialsAreRefused(text: String) {
        #expect(Self.refusal(text) == .credentials)
    }

    @Test(arguments: [
        "ftp://example.org", "ftp://example.org/", "FTPS://example.org/a/", "sftp://example.org/a/?b",
        "ftp://example.org/a%2F", "sftp://example.org/a%2f%2F", "ftp://example.org/a/..", "sftp://example.org/.",
        "ftp://example.org/a/%2E%2e", "ftp://example.org/a/;type=D",
    ])
    func aDirectoryIsNoFile(text: String) {
        #expect(Self.refusal(text) == nil)
        #expect(throws: SourceURL.Refusal.directory) { try SourceURL(validatingFile: text) }
    }

    @Test(arguments: [
        "ftp://example.org/a", "sftp://example.org/~/a?b", "ftp://example.org/%2Fa", "ftp://example.org/a/..b",
        "ftp://example.org/a;type=i", "http://example.org/", "https://example.org", "https://example.org/a%2F",
    ])
    func aFileIsTaken(text: String) {
        #expect(throws: Never.self) { try SourceURL(validatingFile: text) }
    }

    @Test func lengthIsBounded() {
        let prefix = "https://example.org/"
        let longest = prefix + String(repeating: "a", count: Limits.urlBytes - prefix.utf8.count)
        #expect(Self.refusal(longest) == nil)
        #expect(Self.refusal(longest + "a") == .tooLong)
    }

    @Test func hostIsBounded() throws {
        let label = String(repeating: "h", count: 63)
        let longest = "\(label).\(label).\(label).\(label.prefix(61))"
        #expect(try SourceURL(validating: "http://\(longest)/").origin == "http://\(longest):80")
        #expect(Self.refusal("http://\(longest)h/") == .hostTooLong)
        // Such a name is refused, by our bound or by Foundation.
        #expect(Self.refusal("http://\(String(repeating: "h", count: 4_000))/") != nil)
    }

    @Test(arguments: ["http://h%00h/", "http://h%0ah/", "http://%20/", "http://%7f/"])
    func aHostHasNoControlCharactersHoweverTheyAreWritten(text: String) {
        #expect(Self.refusal(text) == .malformed)
    }

    /// Each would have an origin that reads as another host.
    @Test(arguments: [
        "http://a%2Fb/", "http://a%3Ab/", "http://a%40b/", "http://a%23b/", "http://a%2541/", "http://[a:b]/",
    ])
    func hostHasNoDelimitersHoweverTheyAreWritten(text: String) {
        #expect(Self.refusal(text) != nil)
    }

    @Test func everyRefusalSaysWhyWithoutTheURL() {
        let all: [SourceURL.Refusal] = [
            .tooLong, .noScheme, .noHost, .noPort, .malformed, .hostTooLong, .unsupportedScheme("gopher"), .credentials,
        ]
        #expect(Set(all.map(\.description)).count == all.count)
        #expect(SourceURL.Refusal.credentials.description.contains("\"credentials\""))
        let schemes = SourceURL.Refusal.unsupportedScheme("gopher").description
        #expect(["gopher", "http", "https", "ftp", "ftps", "sftp"].allSatisfy(schemes.contains))
    }
}
