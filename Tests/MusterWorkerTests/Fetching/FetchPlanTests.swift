import MusterAPI
import MusterCurl
import Testing

@testable import MusterCore
@testable import MusterWorker

@Suite struct FetchPlanTests {
    private func plan(_ lease: LeaseDocument) throws -> FetchPlan {
        FetchPlan(lease, source: try #require(lease.source))
    }

    private func request(_ plan: FetchPlan, from offset: Int64 = 0) throws -> TransferRequest {
        let settings = try RequestSettings(url: "http://127.0.0.1/f", version: "0")
        return plan.request(plan.question(from: offset), settings)
    }

    @Test func prefixWithoutAnyValidatorIsNotGoneOnWith() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.resume = DurablePrefix(offset: 100, crc: 1)
        try #expect(!plan(lease).mayResume)
        lease.representation = Representation(etag: "\"a\"")
        try #expect(plan(lease).mayResume)
        lease.rung = .whole
        try #expect(!plan(lease).mayResume)
    }

    @Test func resumedRequestIsAsStrictAsAPlannedOne() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.resume = DurablePrefix(offset: 100, crc: 1)
        lease.representation = Representation(size: 300, etag: "\"a\"")
        let question = try plan(lease).question(from: 100)
        #expect(question.range == ByteRange(start: 100, end: 300))
        #expect(question.conditional)
        #expect(question.planned)
    }

    @Test func weakTagIsNeverSentInIfRange() throws {
        var lease = LeaseDocument.chunk("http://127.0.0.1/f", 10, 20, of: Representation(size: 30, etag: "W/\"a\""))
        let question = try plan(lease).question(from: 10)
        #expect(!question.conditional)
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == nil)
        lease.representation.etag = "\"a\""
        try #expect(plan(lease).question(from: 10).conditional)
    }

    @Test func firstRequestThatMayBeTheOnlyOneAsksForAll() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.asksForAll = true
        var plan = try plan(lease)
        try #expect(request(plan).range == RangeSpec(first: 0, last: nil))
        let found = Representation(size: 20 * mebibyte, etag: "\"a\"")
        let limit = plan.settle(
            AcceptedBody(offset: 0, count: 20 * mebibyte, representation: found, isSplittable: true), status: 206,
            effectiveURL: "http://127.0.0.1/f")
        #expect(limit == 20 * mebibyte && plan.end == 20 * mebibyte)
        #expect(plan.isDivisible && plan.isWorthTellingAtOnce && plan.isPlacedHere && !plan.doubtsEnd)
        #expect(plan.learned?.askedForAll == true && plan.learned?.rung == .chunks)
        // A transfer that breaks off is resumed.
        try #expect(request(plan, from: mebibyte).range == RangeSpec(first: mebibyte, last: 20 * mebibyte - 1))
        plan.setEnd(to: 9 * mebibyte)
        try #expect(request(plan, from: mebibyte).range == RangeSpec(first: mebibyte, last: 9 * mebibyte - 1))
        #expect(!plan.isPlacedHere)
    }

    @Test func contentThatNothingTellsApartIsNotDivided() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.asksForAll = true
        var plan = try plan(lease)
        let found = Representation(size: 20 * mebibyte)
        _ = plan.settle(
            AcceptedBody(offset: 0, count: 20 * mebibyte, representation: found, isSplittable: false), status: 206,
            effectiveURL: "http://127.0.0.1/f")
        #expect(!plan.isDivisible && plan.learned?.rung == .whole && plan.learned?.askedForAll == nil)
    }

    @Test func fileThatFitsIsAskedForPlainly() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.expectedSize = 100
        try #expect(plan(lease).question(from: 0).range == nil)
        lease.expectedSize = 9 * mebibyte
        try #expect(plan(lease).question(from: 0).range == ByteRange(first: 8 * mebibyte))
    }

    @Test func laterContentVersionGoesPastCaches() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        try #expect(request(plan(lease)).headers["Cache-Control"] == nil)
        lease.version = 2
        try #expect(request(plan(lease)).headers["Cache-Control"] == "no-cache")
    }

    @Test func dateStandsInIfRangeOnlyIfItWasOldEnough() throws {
        var lease = LeaseDocument.chunk("http://127.0.0.1/f", 10, 20, of: Representation(size: 30, etag: "W/\"a\""))
        let date = "Wed, 01 Jan 2020 00:00:00 GMT"
        lease.representation.lastModified = date
        try #expect(!plan(lease).question(from: 10).conditional)
        lease.representation.isDateStrong = true
        try #expect(plan(lease).question(from: 10).conditional)
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == date)
        lease.isOtherMirror = true
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == nil)
    }

    @Test func validatorsOfOtherNodesAreNotAskedForWhereADigestDecides() throws {
        var lease = LeaseDocument.chunk("http://127.0.0.1/f", 10, 20, of: Representation(size: 30, etag: "\"a\""))
        lease.policy = TransferPolicy()
        lease.policy?.validators = .sizeAndDigest
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == "\"a\"")
        lease.expectedDigests = ["crc32c": "00000000"]
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == "\"a\"", "a checksum proves nothing")
        lease.expectedDigests = ["sha256": String(repeating: "0", count: 64)]
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == nil)
        lease.policy = nil
        lease.isOtherMirror = true
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == nil)
        lease.expectedDigests = [:]
        try #expect(request(plan(lease), from: 10).headers["If-Range"] == "\"a\"")
    }

    @Test func questionBringsWhatTheGroupWants() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.policy = TransferPolicy()
        lease.policy?.validators = .sizeAndDigest
        lease.policy?.chunksWithoutValidator = true
        lease.isOtherMirror = true
        lease.contentType = "application/zip"
        let question = try plan(lease).question(from: 0)
        #expect(question.rule == .sizeAndDigest)
        #expect(question.mayChunkUnvalidated)
        #expect(question.isOtherMirror)
        #expect(question.expectedContentType == "application/zip")
        #expect(!question.expectsDigest)
    }

    @Test func otherProtocolsAreAskedWithoutFieldsOfHTTP() throws {
        var lease = LeaseDocument.chunk("ftp://127.0.0.1/f", 10, 20, of: Representation(size: 30, etag: "\"a\""))
        lease.version = 2
        let settings = try RequestSettings(url: "ftp://127.0.0.1/f", headers: ["X-Key": "v"], version: "0")
        let plan = try plan(lease)
        let request = plan.request(plan.question(from: 10), settings)
        #expect(request.headers.fields.isEmpty)
        #expect(request.range == RangeSpec(first: 10, last: 19))
        #expect(request.allowedSchemes == ["ftp"])
    }

    @Test func firstRequestMaySpeakHTTP2AndChunksDoNot() throws {
        var lease = LeaseDocument.first("https://127.0.0.1/f")
        try #expect(request(plan(lease)).httpVersion == .http2OverTLS)
        lease.planned = true
        try #expect(request(plan(lease)).httpVersion == .http1)
    }

    @Test func whatIsKnownGrowsWithEveryResponse() {
        let first = Representation(size: 5, etag: "\"a\"", lastModified: "d", isDateStrong: true, digests: ["md5": "1"])
        let same = first.updated(by: Representation(lastModified: "d", isDateStrong: false, digests: ["sha1": "2"]))
        #expect(same.isDateStrong == true)
        #expect(same.digests == ["md5": "1", "sha1": "2"])
        #expect(same.etag == "\"a\"")
        #expect(first.updated(by: Representation(lastModified: "e", isDateStrong: false)).isDateStrong == false)
    }

    @Test func largeFileThatComesInOneStreamIsHashedOnTheWay() throws {
        let stated = ["md5": String(repeating: "a", count: 32)]
        func algorithms(_ size: Int64?, from offset: Int64 = 0, name: String? = nil) throws -> Set<DigestAlgorithm> {
            var lease = LeaseDocument.first("http://127.0.0.1/f")
            lease.expectedDigests = ["sha1": String(repeating: "a", count: 40)]
            lease.policy = TransferPolicy()
            lease.policy?.computeDigests = [.sha512]
            var plan = try plan(lease)
            let content = Representation(size: size, etag: "\"a\"", digests: stated)
            let headers = [("ETag", "\"a\""), ("Content-MD5", "qqqqqqqqqqqqqqqqqqqqqg==")]
            let length = size.map { [("Content-Length", "\($0)")] } ?? []
            let facts = ResponseFacts(status: 200, headers: (headers + length).map { (name: $0.0, value: $0.1) })
            let question = FetchQuestion(range: nil, planned: false, known: Representation())
            guard case .accept(let body) = ResponseVerdict.judge(facts, to: question) else { return [] }
            #expect(body.representation.digests == content.digests)
            _ = plan.settle(body, status: 200, effectiveURL: "", suggestedName: name)
            return plan.digestsOnTheWay(from: offset)
        }
        try #expect(algorithms(9 * mebibyte) == [.sha1, .sha512, .md5])
        try #expect(algorithms(nil) == [.sha1, .sha512, .md5])
        try #expect(algorithms(5) == [])
        try #expect(algorithms(9 * mebibyte, from: 1) == [])
        try #expect(algorithms(9 * mebibyte, name: "n") == [], "a file that waits for its name is read again anyway")
    }
}
