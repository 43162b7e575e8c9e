import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

private let lease = LeaseName(chunk: ChunkID(31), epoch: LeaseEpoch(77))

/// The documents that workers and coordinators of different versions exchange.
struct SessionDocumentTests {
    @Test func introductionSurvives() throws {
        let request = SessionRequest(name: "w", sinks: ["default"], slots: 16, version: "1.0", labels: ["zone": "a"])
        let json = #"{"labels":{"zone":"a"},"name":"w","sinks":["default"],"slots":16,"version":"1.0"}"#
        #expect(try jsonText(request) == json)
        #expect(try document(SessionRequest.self, json) == request)
        let answer = SessionDocument(id: SessionID(12), ttlMilliseconds: 30_000)
        #expect(try jsonText(answer) == #"{"id":12,"ttlMilliseconds":30000}"#)
        #expect(try document(SessionDocument.self, jsonText(answer)) == answer)
    }

    @Test func syncSurvives() throws {
        let request = SyncRequest(
            sequence: 2,
            settled: 1,
            reports: [
                Report(lease: lease, kind: .progress, durable: DurablePrefix(offset: 8, crc: .max)),
                Report(
                    lease: lease,
                    kind: .failed,
                    failure: .init(kind: .httpStatus(429), detail: "busy", retryAfter: 7, source: 1)
                ),
            ],
            held: [lease],
            room: 3,
            waitMilliseconds: 20_000,
            sinks: [SinkStatus(name: "s", parked: .storageFull, detail: "no room", freeBytes: 0)],
            receivedBytes: 5
        )
        let json =
            #"{"held":[{"chunk":31,"epoch":77}],"receivedBytes":5,"reports":[{"chunk":31,"durable":{"crc":4294967295,"#
            + #""offset":8},"epoch":77,"kind":"progress"},{"chunk":31,"epoch":77,"failure":{"detail":"busy","#
            + #""kind":"httpStatus(429)","retryAfter":7,"source":1},"kind":"failed"}],"room":3,"sequence":2,"settled":1,"#
            + #""sinks":[{"detail":"no room","freeBytes":0,"name":"s","parked":"storageFull"}],"waitMilliseconds":20000}"#
        #expect(try jsonText(request) == json)
        #expect(try document(SyncRequest.self, json) == request)
    }

    @Test func learnedFactsOfAReportSurvive() throws {
        let report = Report(
            lease: lease,
            kind: .done,
            durable: DurablePrefix(offset: 9, crc: 1),
            learned: .init(
                representation: Representation(size: 9, etag: "\"x\"", lastModified: "then"),
                rung: .chunks,
                effectiveURL: "u",
                source: 0
            ),
            finished: .init(size: 9, digests: ["sha256": "00"])
        )
        let json =
            #"{"chunk":31,"durable":{"crc":1,"offset":9},"epoch":77,"finished":{"digests":{"sha256":"00"},"size":9},"#
            + #""kind":"done","learned":{"effectiveURL":"u","representation":{"etag":"\"x\"","lastModified":"then","size":9},"#
            + #""rung":"chunks","source":0}}"#
        #expect(try jsonText(report) == json)
        #expect(try document(Report.self, json) == report)
        #expect(report.lease == lease)
    }

    @Test func answerToASyncSurvives() throws {
        let range = try #require(ByteRange(start: 0, end: 8))
        var work = LeaseDocument(name: lease, kind: .fetch, task: TaskID(5), sink: "s", path: "a/b")
        work.version = 2
        work.start = 8
        work.end = 16
        work.planned = true
        work.fenced = true
        work.resume = DurablePrefix(offset: 9, crc: 3)
        work.representation = Representation(size: 16, etag: "\"x\"")
        work.expectedSize = 16
        work.expectedDigests = ["md5": "00"]
        work.source = LeaseSource(ordinal: 0, url: "https://h/a", headers: ["Authorization": "secret"])
        work.chunks = [FinishedChunk(range: range, crc: 4)]
        let response = SyncResponse(
            lost: [lease],
            refused: [RefusedReport(lease: lease, reason: "no")],
            shrink: [
                Shrink(lease: lease, end: 12), Shrink(lease: lease, end: 20, isFurther: true),
                Shrink(lease: lease, end: 0, isUntouched: true),
            ],
            leases: [work],
            drain: true,
            ttlMilliseconds: 30_000
        )
        let json =
            #"{"drain":true,"leases":[{"chunk":31,"chunks":[{"crc":4,"range":{"end":8,"start":0}}],"end":16,"epoch":77,"#
            + #""expectedDigests":{"md5":"00"},"expectedSize":16,"fenced":true,"kind":"fetch","path":"a/b","planned":true,"#
            + #""representation":{"etag":"\"x\"","size":16},"resume":{"crc":3,"offset":9},"rung":"chunks","sink":"s","#
            + #""source":{"headers":{"Authorization":"secret"},"ordinal":0,"url":"https://h/a"},"start":8,"#
            + #""task":5,"version":2}],"lost":[{"chunk":31,"epoch":77}],"#
            + #""refused":[{"chunk":31,"epoch":77,"reason":"no"}],"shrink":[{"end":12,"lease":{"chunk":31,"epoch":77}},"#
            + #"{"end":20,"isFurther":true,"lease":{"chunk":31,"epoch":77}},"#
            + #"{"end":0,"isUntouched":true,"lease":{"chunk":31,"epoch":77}}],"#
            + #""ttlMilliseconds":30000}"#
        #expect(try jsonText(response) == json)
        #expect(try document(SyncResponse.self, json) == response)
        #expect(work.name == lease)
    }

    @Test func byteBudgetsSurvive() throws {
        let sync = SyncRequest(
            sequence: 2, settled: 1,
            traffic: [
                Traffic(budget: BudgetShare.name(group: "nightly"), bytes: 7, bytesPerSecond: 9, isShort: false)
            ])
        #expect(
            try jsonText(sync)
                == #"{"held":[],"receivedBytes":0,"reports":[],"room":0,"sequence":2,"settled":1,"sinks":[],"#
                + #""traffic":[{"budget":"group:nightly","bytes":7,"bytesPerSecond":9,"isShort":false}],"waitMilliseconds":0}"#
        )
        #expect(try document(SyncRequest.self, jsonText(sync)) == sync)
        let answer = SyncResponse(
            ttlMilliseconds: 1,
            budgets: [
                BudgetShare(name: BudgetShare.name(origin: "https://h:443"), bytesPerSecond: 5),
                BudgetShare(name: BudgetShare.fleet, bytesPerSecond: 6),
            ])
        #expect(
            try jsonText(answer)
                == #"{"budgets":[{"bytesPerSecond":5,"name":"origin:https://h:443"},{"bytesPerSecond":6,"name":"fleet"}],"#
                + #""drain":false,"leases":[],"lost":[],"refused":[],"shrink":[],"ttlMilliseconds":1}"#)
        #expect(try document(SyncResponse.self, jsonText(answer)) == answer)
        let session = SessionRequest(name: "w", sinks: ["s"], slots: 4, version: "1", bytesPerSecond: 9)
        #expect(try document(SessionRequest.self, jsonText(session)) == session)
    }

    @Test func holderSaysWhereItsChunkEnds() throws {
        let report = Report(lease: lease, kind: .shrunk, end: 12)
        #expect(try jsonText(report) == #"{"chunk":31,"end":12,"epoch":77,"kind":"shrunk"}"#)
        #expect(try document(Report.self, jsonText(report)) == report)
    }

    @Test(
        arguments: [
            #"{"chunk":1,"epoch":1,"kind":"renewed"}"#, #"{"chunk":1,"kind":"done"}"#,
            #"{"chunk":1,"epoch":1,"kind":"failed","failure":{"kind":"bad luck","detail":""}}"#,
            #"{"chunk":1,"epoch":1,"kind":"done","durable":{"offset":0,"crc":4294967296}}"#,
            #"{"chunk":1,"epoch":1,"kind":"done","durable":{"offset":0,"crc":-1}}"#,
        ])
    func reportThatIsNotUnderstoodIsRefused(json: String) {
        #expect(throws: DecodingError.self) { try document(Report.self, json) }
    }

    @Test func namesOfReportsStay() {
        #expect(
            Report.Kind.allCases.map(\.rawValue) == [
                "progress", "done", "failed", "released", "restart", "resolved", "servedAgain", "shrunk",
            ])
    }
}
