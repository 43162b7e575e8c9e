import MusterCore
import Testing

private let url = "https://example.org/pub/a%20b.tar"
private let sha256 = String(repeating: "aB", count: 32)

/// A mistake in a submitted task, and the pointer that names it.
struct Mistake: Sendable, CustomTestStringConvertible {
    var urls: [String] = [url]
    var key: String?
    var path: String?
    var size: Int64?
    var digests: [String: String] = [:]
    var headers: [String: String] = [:]
    var priority: Int32 = 0
    var contentType: String?
    var deadline: String?
    let pointer: String

    var testDescription: String {
        "\(pointer) \(key ?? "") \(path ?? "") \(digests.keys.sorted()) \(headers.keys.sorted().first ?? "")"
            + " \(contentType ?? "") \(deadline ?? "")"
    }

    func submit() throws(InputRefusal) -> TaskSpecification {
        try TaskSpecification(
            urls: urls,
            key: key,
            path: path,
            size: size,
            digests: digests,
            headers: headers,
            priority: priority,
            contentType: contentType,
            deadline: deadline
        )
    }

    static let all: [Mistake] = [
        Mistake(urls: [], pointer: "/urls"),
        Mistake(urls: Array(repeating: url, count: 21), pointer: "/urls"),
        Mistake(urls: ["nowhere"], pointer: "/urls/0"),
        Mistake(urls: [url, url, "gopher://example.org/"], pointer: "/urls/2"),
        Mistake(path: "", pointer: "/path"),
        Mistake(path: "../a", pointer: "/path"),
        Mistake(path: ".muster/a", pointer: "/path"),
        Mistake(key: "", pointer: "/key"),
        Mistake(key: "a\nb", pointer: "/key"),
        Mistake(key: "a\0", pointer: "/key"),
        Mistake(key: String(repeating: "k", count: 1_025), pointer: "/key"),
        Mistake(key: ".", pointer: "/key"),
        Mistake(key: "..", pointer: "/key"),
        Mistake(size: -1, pointer: "/size"),
        Mistake(size: .max, pointer: "/size"),
        Mistake(digests: ["crc32": "00000000"], pointer: "/digests/crc32"),
        Mistake(digests: ["SHA256": sha256], pointer: "/digests/SHA256"),
        Mistake(digests: ["a/b~c": "00"], pointer: "/digests/a~1b~0c"),
        Mistake(digests: ["sha256": ""], pointer: "/digests/sha256"),
        Mistake(digests: ["sha256": String(sha256.dropLast())], pointer: "/digests/sha256"),
        Mistake(digests: ["sha256": sha256 + "0"], pointer: "/digests/sha256"),
        Mistake(digests: ["md5": "g" + String(repeating: "0", count: 31)], pointer: "/digests/md5"),
        Mistake(digests: ["sha1": String(repeating: "é", count: 20)], pointer: "/digests/sha1"),
        // The first name in alphabetical order is reported, whatever the dictionary's order is.
        Mistake(digests: ["sha512": "x", "md5": "x", "sha1": "x"], pointer: "/digests/md5"),
        Mistake(headers: ["": "x"], pointer: "/headers/"),
        Mistake(headers: ["X Y": "x"], pointer: "/headers/X Y"),
        Mistake(headers: ["X:": "x"], pointer: "/headers/X:"),
        Mistake(headers: ["X/Y": "x"], pointer: "/headers/X~1Y"),
        Mistake(headers: ["Ä": "x"], pointer: "/headers/Ä"),
        Mistake(headers: ["X": "a\r\nEvil: b"], pointer: "/headers/X"),
        Mistake(headers: ["X": "a\0"], pointer: "/headers/X"),
        Mistake(headers: ["X": "\u{7f}"], pointer: "/headers/X"),
        Mistake(headers: ["X": String(repeating: "v", count: 8_192)], pointer: "/headers/X"),
        Mistake(headers: ["B B": "x", "A A": "x", "C C": "x"], pointer: "/headers/A A"),
        Mistake(
            headers: Dictionary(uniqueKeysWithValues: (0...64).map { ("X-\($0)", "v") }),
            pointer: "/headers"
        ),
        Mistake(priority: 1_001, pointer: "/priority"),
        Mistake(priority: .min, pointer: "/priority"),
        Mistake(contentType: "", pointer: "/contentType"),
        Mistake(contentType: "zip", pointer: "/contentType"),
        Mistake(contentType: "application/", pointer: "/contentType"),
        Mistake(contentType: "/zip", pointer: "/contentType"),
        Mistake(contentType: "a/b/c", pointer: "/contentType"),
        Mistake(contentType: "text/html; charset=utf-8", pointer: "/contentType"),
        Mistake(contentType: "*/*\r\n", pointer: "/contentType"),
        Mistake(deadline: "", pointer: "/deadline"),
        Mistake(deadline: "0s", pointer: "/deadline"),
        Mistake(deadline: "-1h", pointer: "/deadline"),
        Mistake(deadline: "2", pointer: "/deadline"),
        Mistake(deadline: "366d", pointer: "/deadline"),
        Mistake(deadline: "2026-03-01T00:00:00Z", pointer: "/deadline"),
    ]
}

struct TaskSpecificationTests {
    @Test(arguments: Mistake.all)
    func mistakeIsNamedByItsPointer(mistake: Mistake) {
        do {
            _ = try mistake.submit()
            Issue.record("was accepted")
        } catch {
            #expect(error.pointer == mistake.pointer)
            #expect(error.line == nil)
            #expect(!error.reason.isEmpty)
        }
    }

    @Test(
        arguments: [
            "Range", "if-range", "ACCEPT-ENCODING", "Content-Length", "Transfer-Encoding", "Connection", "Host", "TE",
            "Upgrade",
            "Expect",
        ])
    func headersThatMusterSetsItselfAreRefused(name: String) {
        #expect(throws: InputRefusal(pointer: "/headers/\(name)", reason: "this header is set by Muster itself")) {
            try TaskSpecification(urls: [url], headers: [name: "x"])
        }
    }

    @Test func pathComesFromTheURLAndTheKeyFromThePath() throws {
        let task = try TaskSpecification(urls: [url, "https://example.org/other"])
        #expect(task.path.string == "a b.tar")
        #expect(task.key == "a b.tar")
        #expect(task.sources.map(\.string) == [url, "https://example.org/other"])
        let placed = try TaskSpecification(urls: [url], path: "x/y")
        #expect(placed.key == "x/y")
    }

    @Test func everythingThatIsAllowedIsKept() throws {
        let task = try TaskSpecification(
            urls: Array(repeating: url, count: 20),
            key: String(repeating: "k", count: 1_024),
            path: "p",
            size: 0,
            digests: ["sha256": sha256, "md5": String(repeating: "0", count: 32)],
            headers: ["Authorization": "Bearer ä\tx", "!#$%&'*+-.^_`|~": ""],
            priority: -1_000,
            metadata: .array([.null])
        )
        #expect(task.sources.count == 20)
        #expect(task.size == 0)
        #expect(task.digests.map(\.algorithm) == [.md5, .sha256])
        #expect(task.digests.last?.hexadecimal == sha256.lowercased())
        #expect(task.headers.count == 2)
        #expect(task.priority == -1_000)
        #expect(task.metadata == .array([.null]))
        #expect(try TaskSpecification(urls: [url], size: Limits.fileSize.bytes).size == Limits.fileSize.bytes)
    }

    @Test func contentTypeAndDeadlineAreKept() throws {
        let task = try TaskSpecification(urls: [url], contentType: "Application/X-Tar", deadline: "365d")
        #expect(task.contentType == "application/x-tar")
        #expect(task.deadline == Limits.deadline)
        #expect(try TaskSpecification(urls: [url], deadline: "1ms").deadline == .milliseconds(1))
        #expect(try TaskSpecification(urls: [url]).deadline == nil)
        #expect(try TaskSpecification(urls: [url]).contentType == nil)
    }

    @Test func refusalSaysWhereInALargerDocument() {
        let refusal = InputRefusal(pointer: "/urls/0", reason: "not a URL with a host")
        #expect(InputRefusal.field(refusal.pointer) == "\"urls\", entry 1")
        #expect(InputRefusal.field("/headers/" + InputRefusal.pointerPart("a/~b")) == "\"headers\", \"a/~b\"")
        #expect(InputRefusal.field("/digests/\(Int.max)") == "\"digests\", \"\(Int.max)\"")
        #expect(refusal.within("/tasks/3").pointer == "/tasks/3/urls/0")
        #expect(refusal.onLine(7).description == "line 7: /urls/0: not a URL with a host")
        #expect(InputRefusal(pointer: "", line: 2, reason: "is not JSON").description == "line 2: is not JSON")
        #expect(InputRefusal(pointer: "", reason: "is not JSON").description == "is not JSON")
    }

    @Test(arguments: [("a", "a"), ("a/b", "a~1b"), ("~1", "~01"), ("/\u{301}", "~1\u{301}"), ("", "")])
    func pointersAreEscaped(name: String, part: String) {
        #expect(InputRefusal.pointerPart(name) == part)
    }
}

struct ContentDigestTests {
    @Test func onlyAChecksumIsTooShortToTellContentsApart() {
        #expect(DigestAlgorithm.allCases.filter { !$0.tellsContentsApart } == [.crc32c])
    }

    @Test(arguments: DigestAlgorithm.allCases)
    func digestHasAsManyDigitsAsItsAlgorithm(algorithm: DigestAlgorithm) throws {
        let count = algorithm.hexadecimalDigits
        let bytes = (0..<count / 2).map { UInt8(truncatingIfNeeded: $0 &* 17) }
        let digest = ContentDigest(algorithm: algorithm, bytes: bytes)
        #expect(digest.hexadecimal.utf8.count == count)
        #expect(ContentDigest(algorithm: algorithm, hexadecimal: digest.hexadecimal.uppercased()) == digest)
        #expect(ContentDigest(algorithm: algorithm, hexadecimal: String(repeating: "0", count: count - 2)) == nil)
        #expect(ContentDigest(algorithm: algorithm, hexadecimal: String(repeating: " ", count: count)) == nil)
    }
}
