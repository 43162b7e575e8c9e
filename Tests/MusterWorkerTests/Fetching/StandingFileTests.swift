import MusterCore
import Testing

@testable import MusterWorker

@Suite struct StandingFileTests {
    private let file = StandingFile(size: 5, modificationTime: 1_577_836_800)
    private let date = "Wed, 01 Jan 2020 00:00:00 GMT"

    private func looks(_ content: Representation) -> Bool {
        if case .examine = file.judge(content) { true } else { false }
    }

    @Test func sameSizeAndTimeIsLookedAtWithoutABody() {
        #expect(
            file.judge(Representation(size: 5, lastModified: date))
                == .examine([], lastModified: file.modificationTime)
        )
    }

    @Test func anotherSizeSettlesIt() {
        #expect(looks(Representation(size: 6)))
        #expect(looks(Representation(size: 6, lastModified: date)))
    }

    @Test func statedDigestSettlesIt() {
        #expect(looks(Representation(digests: ["md5": String(repeating: "a", count: 32)])))
        #expect(!looks(Representation(digests: ["md5": "x"])))
    }

    @Test func fileIsFetchedIfOnlyItsBytesCanTell() {
        #expect(file.judge(Representation(size: 5, lastModified: "Thu, 02 Jan 2020 00:00:00 GMT")) == .fetch)
        #expect(file.judge(Representation(size: 5, etag: "\"a\"")) == .fetch)
        #expect(file.judge(Representation(lastModified: date)) == .fetch)
    }
}
