import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// A small body with status 200 may be a page that tells of a limit (range contract, rows 24 and 27; adr/0036).
@Suite struct BelievingTests {
    /// What an origin may send in the place of a file.
    enum Page: String, CaseIterable {
        case nothing, tagged, large, plain, json, octets

        var file: ScriptedOrigin.File {
            var file = ScriptedOrigin.File(
                .seeded(seed: 71, size: self == .nothing ? 0 : self == .large ? 70_000 : 900))
            switch self {
            case .nothing: break
            case .tagged: file.contentType = "text/html"
            case .large: (file.contentType, file.etag, file.lastModified) = ("text/html", nil, nil)
            case .plain: (file.contentType, file.etag, file.lastModified) = ("text/plain", nil, nil)
            case .json: (file.contentType, file.etag, file.lastModified) = ("application/json", nil, nil)
            case .octets: (file.etag, file.lastModified) = (nil, nil)
            }
            return file
        }
    }

    private let file = ScriptedOrigin.File(.seeded(seed: 59, size: 400_000))

    /// A JSON file without validators.
    private static func json(seed: UInt64, size: Int) -> ScriptedOrigin.File {
        var file = ScriptedOrigin.File(.seeded(seed: seed, size: Int64(size)))
        (file.contentType, file.etag, file.lastModified) = ("application/json", nil, nil)
        return file
    }

    private func lease(_ origin: ScriptedOrigin, _ name: String, task: Int64) -> LeaseDocument {
        LeaseDocument.first(origin.url("/\(name)"), task: task, path: name)
    }

    private func requests(_ origin: ScriptedOrigin, _ path: String) -> Int {
        origin.requests.count { $0.path == path }
    }

    /// Runs `body` while the origin sends a file.
    private func serving(_ bench: JobBench, _ origin: ScriptedOrigin, _ body: () async throws -> Void) async throws {
        origin.serve("/slow.iso", ScriptedOrigin.File(.seeded(seed: 60, size: 4 * mebibyte)))
        origin.hold("/slow.iso", afterBytes: 2 * mebibyte)
        let lease = lease(origin, "slow.iso", task: 99)
        async let slow = bench.run(lease)
        try await bench.waitForBytes(lease, 1)
        try await body()
        origin.release("/slow.iso")
        #expect(await slow.finished?.size == 4 * mebibyte)
    }

    /// Starts another request at the origin, which has answered before that a file is there. Returns a closure that ends the request.
    @discardableResult
    private func othersAsk(_ bench: JobBench, _ origin: ScriptedOrigin) throws -> () -> Void {
        let (conduct, origin) = (bench.context.conduct, try SourceURL(validating: origin.url("/")).origin)
        _ = conduct.isOver(conduct.ask(origin), origin, isThere: true)
        let visit = conduct.ask(origin)
        return { _ = conduct.isOver(visit, origin) }
    }

    @Test(arguments: Page.allCases) func bodyThatComesInThePlaceOfAServedFileTooIsALimit(page: Page) async throws {
        try await withBench { bench, origin in
            for name in ["a.bin", "b.bin"] { origin.serve("/\(name)", file) }
            #expect(await bench.run(lease(origin, "a.bin", task: 1)).finished?.size == 400_000)
            try await serving(bench, origin) {
                for name in ["a.bin", "b.bin"] { origin.misbehave("/\(name)", .replaced(with: page.file)) }
                let failure = await bench.run(lease(origin, "b.bin", task: 2)).failure
                #expect(failure?.kind == .httpStatus(200), "\(failure as Any)")
                #expect(failure?.isLimit == true)
                // The worker knows the page from a moment ago.
                let before = origin.requests.count
                #expect(await bench.run(lease(origin, "b.bin", task: 3)).failure?.isLimit == true)
                #expect(origin.requests.count - before <= 2)
                for name in ["a.bin", "b.bin"] { origin.behave("/\(name)") }
            }
            #expect(await bench.run(lease(origin, "b.bin", task: 2)).finished?.size == 400_000)
        }
    }

    /// There is no served file to compare with. The file itself comes when nothing else is asked for.
    @Test(arguments: Page.allCases) func bodyIsALimitWhereALoneRequestBringsTheFile(page: Page) async throws {
        try await withBench { bench, origin in
            origin.serve("/b.bin", file)
            origin.misbehave("/b.bin", .replaced(with: page.file), when: .first(page == .nothing ? 2 : 1))
            try othersAsk(bench, origin)
            let failure = await bench.run(lease(origin, "b.bin", task: 1)).failure
            #expect(failure?.kind == .httpStatus(200), "\(failure as Any)")
            #expect(failure?.isLimit == true)
        }
    }

    @Test(arguments: Page.allCases) func bodyThatComesAgainInTurnsWithAServedFileIsTheFile(page: Page) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            for name in ["b.bin", "c.bin"] { origin.serve("/\(name)", page.file) }
            #expect(await bench.run(lease(origin, "a.bin", task: 1)).finished?.size == 400_000)
            try await serving(bench, origin) {
                let size = page.file.content.size
                #expect(await bench.run(lease(origin, "b.bin", task: 2)).finished?.size == size)
                let before = origin.requests.count
                #expect(await bench.run(lease(origin, "c.bin", task: 3)).finished?.size == size)
                // The same body is known to be a file.
                #expect(origin.requests.count - before <= 2)
            }
        }
    }

    @Test func fileThatComesAloneIsBelieved() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", Page.octets.file)
            #expect(await bench.run(lease(origin, "a.bin", task: 1)).finished?.size == 900)
            #expect(origin.requests.count == 1)
        }
    }

    /// A page without a validator that comes alone may signal a limit of requests per time, unless its URL works only once.
    @Test(arguments: [true, false]) func pageIsKeptWhereItsURLWorksOnce(worksOnce: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.zip", Page.plain.file)
            if worksOnce { origin.misbehave("/a.zip", .status(403, retryAfter: nil), when: .after(1)) }
            let ending = await bench.run(lease(origin, "a.zip", task: 1))
            #expect(ending.finished?.size == (worksOnce ? 900 : nil))
            #expect(ending.failure?.kind == (worksOnce ? nil : .httpStatus(200)))
            #expect(origin.requests.count == 2)
            if worksOnce { try #expect(bench.file("a.zip").count == 900) }
        }
    }

    /// The second request brings a page saying that the link was used. The first body is the file, whether other requests are made or not.
    @Test(arguments: [Page.plain, .json, .octets, .nothing], [false, true]) func firstBodyIsKeptWhereAPageComesNext(
        page: Page, isShared: Bool
    ) async throws {
        try await withBench { bench, origin in
            var used = ScriptedOrigin.File(.seeded(seed: 72, size: page == .nothing ? 0 : 300))
            (used.contentType, used.etag, used.lastModified) = ("text/html", nil, nil)
            origin.serve("/a.zip", page.file)
            let isRefused = page == .nothing
            if isRefused { origin.misbehave("/a.zip", .ignoreRange) }
            origin.misbehave(
                "/a.zip", isRefused ? .status(403, retryAfter: nil) : .replaced(with: used), when: .after(1))
            if isShared { try othersAsk(bench, origin) }
            let ending = await bench.run(lease(origin, "a.zip", task: 1))
            #expect(ending.finished?.size == page.file.content.size, "\(ending)")
            #expect(requests(origin, "/a.zip") == (page == .octets && !isShared ? 1 : 2))
        }
    }

    /// The second body is larger than the first; for `/a.json`, both look alike.
    @Test(arguments: ["/a.json", "/a.log"]) func fileIsKeptWhereALargerPageComesNext(path: String) async throws {
        try await withBench { bench, origin in
            let isEmpty = path == "/a.log"
            var (first, used) = (
                ScriptedOrigin.File(.seeded(seed: 73, size: isEmpty ? 0 : 100)),
                ScriptedOrigin.File(.seeded(seed: 74, size: 2_000))
            )
            (first.contentType, first.etag, first.lastModified) = ("application/json", nil, nil)
            (used.contentType, used.etag, used.lastModified) = (isEmpty ? "text/html" : "application/json", nil, nil)
            origin.serve(path, first)
            origin.misbehave(path, .ignoreRange)
            origin.misbehave(path, .replaced(with: used), when: .after(1))
            try othersAsk(bench, origin)
            let ending = await bench.run(lease(origin, String(path.dropFirst()), task: 1))
            #expect(ending.finished?.size == first.content.size, "\(ending)")
            // A third answer shows whether the larger body is the same each time.
            #expect(requests(origin, path) == (isEmpty ? 2 : 3))
        }
    }

    /// A page that names its request differs each time; the file is the same each time.
    @Test func pageIsNotTakenForTheFileThatComesTwiceAfterIt() async throws {
        try await withBench { bench, origin in
            let (file, page) = (Self.json(seed: 75, size: 3_000), Self.json(seed: 76, size: 60))
            for name in ["a.json", "b.json"] { origin.serve("/\(name)", file) }
            #expect(await bench.run(lease(origin, "a.json", task: 1)).finished?.size == 3_000)
            origin.misbehave("/b.json", .replaced(with: page), when: .first(1))
            try othersAsk(bench, origin)
            let failure = await bench.run(lease(origin, "b.json", task: 2)).failure
            #expect(failure?.kind == .httpStatus(200) && failure?.isLimit == true, "\(failure as Any)")
            #expect(await bench.run(lease(origin, "b.json", task: 2)).finished?.size == 3_000)
        }
    }

    /// Nothing was served before. The answer for another file at the same time shows that URLs work more than once.
    @Test func pageIsNotTakenForTheFileWhereAnotherShowsThatURLsWorkAgain() async throws {
        try await withBench { bench, origin in
            let (file, page) = (Self.json(seed: 75, size: 3_000), Self.json(seed: 76, size: 60))
            for name in ["a.json", "b.json"] { origin.serve("/\(name)", file) }
            origin.misbehave("/b.json", .replaced(with: page), when: .first(1))
            var end = try othersAsk(bench, origin)
            async let failed = bench.run(lease(origin, "b.json", task: 2))
            try await origin.waitForRequests("/b.json", count: 1)
            end()
            // Two more requests follow the page.
            try await origin.waitForRequests("/b.json", count: 3)
            end = try othersAsk(bench, origin)
            async let other = bench.run(lease(origin, "a.json", task: 1))
            try await origin.waitForRequests("/a.json", count: 1)
            end()
            #expect(await other.finished?.size == 3_000)
            let failure = await failed.failure
            #expect(failure?.kind == .httpStatus(200) && failure?.isLimit == true, "\(failure as Any)")
            #expect(await bench.run(lease(origin, "b.json", task: 2)).finished?.size == 3_000)
        }
    }

    /// A page with an advertisement differs each time, and has another size for each file.
    @Test func pagesOfManySizesAreNotTakenForFiles() async throws {
        try await withBench { bench, origin in
            for number in 1...6 {
                origin.serve("/\(number).bin", file)
                for (start, size) in [(0, 900), (1, 1_100)] {
                    var page = ScriptedOrigin.File(
                        .seeded(seed: UInt64(80 + size + number), size: Int64(size + 700 * number)))
                    (page.contentType, page.etag, page.lastModified) = ("text/html", nil, nil)
                    origin.misbehave(
                        "/\(number).bin", .replaced(with: page), when: .init(requests: start..<(start + 1)))
                }
                try othersAsk(bench, origin)
                let lease = lease(origin, "\(number).bin", task: Int64(number))
                let doubted = await bench.run(lease)
                #expect(doubted.failure?.kind == .httpStatus(200), "\(doubted)")
                let found = await bench.run(lease)
                #expect(found.finished?.size == 400_000, "\(found)")
            }
        }
    }

    /// A body that is empty only for the range is not an empty file; a body that is empty for the plain GET too is one.
    @Test(arguments: [false, true]) func emptyBodyForARangeIsFollowedByAPlainGET(isEmpty: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", isEmpty ? Page.nothing.file : file)
            origin.misbehave("/a.bin", .replaced(with: Page.nothing.file), when: .first(1))
            #expect(await bench.run(lease(origin, "a.bin", task: 1)).finished?.size == (isEmpty ? 0 : 400_000))
            #expect(requests(origin, "/a.bin") == 2)
        }
    }

    @Test(arguments: [Page.nothing, .tagged, .large]) func anotherSourceIsAskedBeforeAPageIsBelieved(
        page: Page
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.zip", page.file)
            var lease = lease(origin, "a.zip", task: 1)
            lease.mayMoveOn = true
            // If another source may answer, only a part of the patience applies.
            lease.options = FetchOptions()
            lease.options?.firstByteTimeoutSeconds = 300
            #expect(await bench.run(lease).failure?.kind == .httpStatus(200))
            lease.mayMoveOn = nil
            lease.looks = .failed
            #expect(await bench.run(lease).finished?.size == page.file.content.size)
        }
    }

    /// Some origins answer only requests with a Range by a page.
    @Test func pageForTheRangeAloneIsFollowedByAPlainGET() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.zip", file)
            origin.misbehave("/a.zip", .replaced(with: Page.plain.file), when: .first(1))
            #expect(await bench.run(lease(origin, "a.zip", task: 1)).finished?.size == 400_000)
        }
    }

    /// A mirror sends the same few bytes for every file, and they look like a file in every respect. For the first file,
    /// nothing shows that. For further files the job rejects these bytes, and leaves the file to the next mirror.
    @Test func sameBytesOfAFirstMirrorAreTakenForOneFileAlone() async throws {
        try await withBench { bench, origin in
            var few = Page.octets.file
            (few.etag, few.lastModified) = (file.etag, file.lastModified)
            for task in 1...4 as ClosedRange<Int64> {
                origin.serve("/\(task).bin", few)
                var lease = lease(origin, "\(task).bin", task: task)
                lease.mayMoveOn = true
                let ending = await bench.run(lease)
                #expect(ending.finished?.size == (task == 1 ? 900 : nil), "\(ending)")
                #expect(ending.failure?.kind == (task == 1 ? nil : .httpStatus(200)), "\(ending)")
            }
            #expect(origin.requests.count == 4)
        }
    }
}

/// Bodies that are taken for files without further requests.
@Suite struct OriginBeliefsTests {
    private let origin = "http://h"
    private let look = Appearance(
        ResponseFacts(status: 200, headers: [(name: "Content-Type", value: "image/png")]), size: 1_000)

    private func standing(
        _ beliefs: OriginBeliefs, _ url: String, size: Int64 = 1_000, crc: UInt32 = 1
    ) -> OriginBeliefs.Standing {
        beliefs.standing(of: DurablePrefix(offset: size, crc: crc), as: look, from: url, of: origin)
    }

    @Test func kindOfAnswerIsKnownByOneFileThatWasSeen() {
        let beliefs = OriginBeliefs { 0 }
        #expect(standing(beliefs, "a") == .unknown)
        beliefs.believe(DurablePrefix(offset: 1_000, crc: 1), as: look, from: "a", of: origin)
        #expect(standing(beliefs, "b", crc: 2) == .file)
        #expect(standing(beliefs, "c", crc: 1) == .file)
        #expect(
            beliefs.standing(of: DurablePrefix(offset: 0, crc: 0), as: look.of(0), from: "d", of: origin) == .unknown)
        #expect(
            beliefs.standing(of: DurablePrefix(offset: 1_000, crc: 2), as: look, from: "d", of: "http://i") == .unknown)
    }

    @Test func bodyOfSeveralFilesIsDoubtedUntilThreeWereSeenToBeFiles() {
        let beliefs = OriginBeliefs { 0 }
        beliefs.believe(DurablePrefix(offset: 1_000, crc: 1), as: look, from: "a", of: origin)
        for crc in 2...4 as ClosedRange<UInt32> {
            #expect(standing(beliefs, "b", crc: crc) == .file)
            #expect(standing(beliefs, "b", crc: crc) == .file)
            #expect(standing(beliefs, "c", crc: crc) == .unknown)
            beliefs.believe(DurablePrefix(offset: 1_000, crc: crc), as: look, from: "c", of: origin)
            #expect(standing(beliefs, "d", crc: crc) == .file)
        }
        #expect(standing(beliefs, "b", crc: 5) == .file)
        #expect(standing(beliefs, "c", crc: 5) == .file)
    }

    @Test func bodiesOfThreeSizesAreNoPage() {
        let beliefs = OriginBeliefs { 0 }
        let sizes: [Int64] = [1_000, 1_010, 1_600, 2_200]
        let found = sizes.enumerated().map {
            standing(beliefs, "\($0.offset)", size: $0.element, crc: UInt32($0.offset))
        }
        #expect(found == [.unknown, .unknown, .unknown, .file])
    }

    @Test func limitIsKnownForAMoment() {
        let moment = Mutex<Int64>(0)
        let beliefs = OriginBeliefs { moment.withLock { $0 } }
        beliefs.believe(DurablePrefix(offset: 1_000, crc: 1), as: look, from: "a", of: origin)
        beliefs.disprove(DurablePrefix(offset: 1_000, crc: 2), as: look, of: origin)
        #expect(standing(beliefs, "b", crc: 2) == .limit)
        #expect(standing(beliefs, "b", crc: 3) == .unknown)
        moment.withLock { $0 = 3_000_000_000 }
        #expect(standing(beliefs, "b", crc: 2) == .unknown)
    }
}
