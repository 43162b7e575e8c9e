import MusterAPI
import MusterCore
import MusterCurl
import Testing

@testable import MusterWorker

@Suite struct FetchPlanTests {
    private func plan(_ lease: LeaseDocument) throws -> FetchPlan {
        FetchPlan(lease, source: try #require(lease.source), version: "0")
    }

    @Test func prefixWithoutAnyValidatorIsNotGoneOnWith() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.resume = DurablePrefix(offset: 100, crc: 1)
        #expect(try !plan(lease).mayResume)
        lease.representation = Representation(etag: "\"a\"")
        #expect(try plan(lease).mayResume)
        lease.stream = true
        #expect(try !plan(lease).mayResume)
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
        #expect(try plan(lease).request(question).headers["If-Range"] == nil)
        lease.representation.etag = "\"a\""
        #expect(try plan(lease).question(from: 10).conditional)
    }

    @Test func fileThatFitsIsAskedForPlainly() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        lease.expectedSize = 100
        #expect(try plan(lease).question(from: 0).range == nil)
        lease.expectedSize = 9 * mebibyte
        #expect(try plan(lease).question(from: 0).range == ByteRange(first: 8 * mebibyte))
    }

    @Test func laterContentVersionGoesPastCaches() throws {
        var lease = LeaseDocument.first("http://127.0.0.1/f")
        let first = try plan(lease)
        #expect(first.request(first.question(from: 0)).headers["Cache-Control"] == nil)
        lease.version = 2
        let second = try plan(lease)
        #expect(second.request(second.question(from: 0)).headers["Cache-Control"] == "no-cache")
    }
}
