import MusterCore
import MusterCurl
import Synchronization
import Testing

@testable import MusterWorker

/// An FTP server may reply 350 to REST, and send the file from its beginning all the same (range contract, row 37).
struct PositionTests {
    private static let part = ResponseHead(status: 206, version: .notHTTP, bodyFraming: .untilClose)

    private static func came(_ count: Int64) -> AnswerCollector.Ending {
        .answered(part, [], DurablePrefix(offset: count, crc: CRC32C.empty))
    }

    private static func failed(after count: Int64) -> AnswerCollector.Ending {
        var statistics = TransferStatistics()
        statistics.bytesDelivered = count
        return .failed(.tooSlow(TransferError.Detail(code: 0, message: "silence")), statistics)
    }

    @Test(arguments: [came(0), came(1), failed(after: 1)])
    func oneByteFromTheLastPositionOnProvesPositions(_ ending: AnswerCollector.Ending) {
        guard case nil = FetchJob.step(afterLastByte: ending) else {
            Issue.record("\(ending)")
            return
        }
    }

    @Test(arguments: [
        came(2), .tooLarge(part),
        .failed(.protocolViolation(TransferError.Detail(code: 0, message: "no part")), TransferStatistics()),
        .answered(ResponseHead(status: 200, bodyFraming: .none), [], .init(offset: 0, crc: CRC32C.empty)),
    ])
    func fileFromItsBeginningIsAskedForAsAWhole(_ ending: AnswerCollector.Ending) {
        guard case .restart(_, on: .whole) = FetchJob.step(afterLastByte: ending) else {
            Issue.record("\(ending)")
            return
        }
    }

    @Test(arguments: [
        failed(after: 0), failed(after: 2),
        .answered(ResponseHead(status: 503, bodyFraming: .none), [], .init(offset: 0, crc: CRC32C.empty)),
    ])
    func inconclusiveAnswerIsTriedAgain(_ ending: AnswerCollector.Ending) {
        guard case .failed(let kind, _, _) = FetchJob.step(afterLastByte: ending) else {
            Issue.record("\(ending)")
            return
        }
        #expect(kind.rule == .retry)
    }

    @Test func positionsAreProvedForTenMinutes() {
        let age = JobBench.Clock()
        let conduct = OriginConduct { age.now.load(ordering: .sequentiallyConsistent) }
        #expect(!conduct.keepsPositions("ftp://a:21"))
        conduct.provedPositions(of: "ftp://a:21")
        #expect(conduct.keepsPositions("ftp://a:21") && !conduct.keepsPositions("ftp://b:21"))
        age.now.store(600_000_000_000, ordering: .sequentiallyConsistent)
        #expect(!conduct.keepsPositions("ftp://a:21"))
    }
}
