import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// A file that is refused, and one that was served, are asked for in turns: that tells a limit from a file that is not there (range contract, row 24;
/// adr/0033).
@Suite struct TurnsTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 59, size: 100_000))

    /// A file whose bytes depend on `number`.
    private func file(_ number: Int64) -> ScriptedOrigin.File {
        ScriptedOrigin.File(.seeded(seed: UInt64(number), size: 100_000))
    }

    private func requests(_ origin: ScriptedOrigin, _ path: String) -> [ScriptedOrigin.Request] {
        origin.requests.filter { $0.path == path }
    }

    /// Fetches a file, and returns its failure.
    private func fetch(
        _ bench: JobBench, _ origin: ScriptedOrigin, _ name: String, task: Int64, asksForAll: Bool? = nil
    ) async -> Report.Failure? {
        var lease = LeaseDocument.first(origin.url("/\(name)"), task: task, path: name)
        lease.asksForAll = asksForAll
        let ending = await bench.run(lease)
        #expect(ending.failure != nil || ending.finished?.size == 100_000, "\(ending)")
        return ending.failure
    }

    @Test(arguments: [400, 403, 404, 503]) func refusalInTurnsWithAFileThatIsServedIsForItsFile(
        status: Int
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            origin.serve("/b.bin", file)
            origin.misbehave("/b.bin", .status(status, retryAfter: nil))
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            let failure = await fetch(bench, origin, "b.bin", task: 2)
            #expect(failure?.isLimit == false, "\(failure as Any)")
            #expect(failure?.status == status)
            let served = requests(origin, "/a.bin")
            #expect(served.count == 1 + OriginWitnesses.turns)
            #expect(served.dropFirst().allSatisfy { $0.header("Range") == "bytes=0-0" })
        }
    }

    @Test(arguments: [202, 302, 304, 400, 401, 402, 403, 404, 405, 409, 410, 416, 418, 423, 451])
    func refusalOfAServedFileShowsALimit(status: Int) async throws {
        try await withBench { bench, origin in
            for name in ["a.bin", "c.bin"] { origin.serve("/\(name)", file) }
            origin.misbehave("/a.bin", .status(status, retryAfter: nil), when: .init(requests: 1..<2))
            origin.misbehave("/c.bin", .status(status, retryAfter: nil), when: .first(4))
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            // The file that comes meanwhile shows that the origin serves, however long that takes.
            try await bench.serving(origin) {
                #expect(await fetch(bench, origin, "c.bin", task: 3)?.isLimit == true)
                // The file is fetched as soon as there is room. From now on few turns are not enough.
                #expect(await fetch(bench, origin, "c.bin", task: 3) == nil)
            }
            let known = try SourceURL(validating: origin.url("/c.bin"))
            for _ in 0..<20 { bench.context.witnesses.tookTurn(known, status: status) }
            #expect(bench.context.witnesses.turns(of: known, status: status, isBusy: false) == OriginWitnesses.turns)
        }
    }

    /// Answers that are not HTTP, and redirects that go in a circle or lead to an unreachable host.
    @Test(arguments: [
        ScriptedOrigin.Misbehaviour.garbage("Too many connections\r\n"), .negativeContentLength,
        .redirect(to: "/circle", status: 302), .redirect(to: "http://127.0.0.1:1/nobody", status: 302),
    ])
    func brokenAnswerMayShowALimitOrNone(refusal: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            for name in ["a.bin", "b.bin", "c.bin"] { origin.serve("/\(name)", file) }
            origin.misbehave("/circle", .redirect(to: "/circle", status: 302))
            origin.misbehave("/b.bin", refusal)
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            #expect(await fetch(bench, origin, "b.bin", task: 2)?.isLimit == false)
            for name in ["a.bin", "c.bin"] { origin.misbehave("/\(name)", refusal) }
            #expect(await fetch(bench, origin, "c.bin", task: 3)?.isLimit == true)
        }
    }

    /// Silence signals a limit if a file that was served is not answered either, while other files come.
    @Test(arguments: [true, false]) func silenceShowsALimitOrNone(isLimit: Bool) async throws {
        try await withBench { bench, origin in
            for name in ["a.bin", "b.bin"] { origin.serve("/\(name)", file) }
            if isLimit { origin.misbehave("/a.bin", .hangBeforeHeaders, when: .after(1)) }
            origin.misbehave("/b.bin", .hangBeforeHeaders)
            // A second request for the file would hang, so this request keeps the default timeouts.
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            try await bench.serving(origin) {
                var lease = LeaseDocument.first(origin.url("/b.bin"), task: 2, path: "b.bin")
                lease.options = FetchOptions()
                lease.options?.firstByteTimeoutSeconds = 4
                let failure = await bench.run(lease).failure
                #expect(failure?.kind == .timeout)
                #expect(failure?.isLimit == (isLimit ? true : nil), "\(failure as Any)")
                // The file that is served meanwhile asks for a witness only after it has arrived.
                #expect(requests(origin, "/a.bin").count == 2)
            }
            let isAskedPlainly = requests(origin, "/b.bin").contains { $0.range == nil }
            #expect(isAskedPlainly != isLimit, "a plain GET follows where it is none")
            let address = try SourceURL(validating: origin.url("/b.bin")).origin
            #expect(bench.context.witnesses.isSilentAtLimit(address) == isLimit)
        }
    }

    @Test func refusalOfAURLThatMayBeUsedUpShowsNothing() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            origin.misbehave("/a.bin", .status(404, retryAfter: nil), when: .init(requests: 1..<9))
            #expect(await fetch(bench, origin, "a.bin", task: 1, asksForAll: true) == nil)
            try await bench.serving(origin) {
                let failure = await fetch(bench, origin, "b.bin", task: 2, asksForAll: true)
                #expect(failure?.kind == .notFound)
                #expect(failure?.isLimit == nil)
            }
            #expect(requests(origin, "/a.bin").count == 2)
        }
    }

    /// These statuses usually don't signal a limit. If the witness may be used up, the job waits, and asks for the refused file again while others come.
    @Test(arguments: [401, 410]) func fileThatIsServedAfterAWaitShowsALimit(status: Int) async throws {
        try await withBench { bench, origin in
            for name in ["a.bin", "b.bin"] { origin.serve("/\(name)", file) }
            origin.misbehave("/a.bin", .status(status, retryAfter: nil), when: .after(1))
            origin.misbehave("/b.bin", .status(status, retryAfter: nil), when: .first(4))
            #expect(await fetch(bench, origin, "a.bin", task: 1, asksForAll: true) == nil)
            try await bench.serving(origin) {
                #expect(await fetch(bench, origin, "b.bin", task: 2, asksForAll: true) == nil)
                origin.misbehave("/c.bin", .status(status, retryAfter: nil))
                #expect(await fetch(bench, origin, "c.bin", task: 3, asksForAll: true)?.isLimit == true)
            }
        }
    }

    /// A URL that was served again is not used up, and neither is any other URL of its origin.
    @Test func refusalShowsALimitOnceTheOriginHasServedAWitnessAgain() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            origin.misbehave("/a.bin", .status(403, retryAfter: nil), when: .after(1 + OriginWitnesses.turns))
            #expect(await fetch(bench, origin, "a.bin", task: 1, asksForAll: true) == nil)
            origin.serve("/b.bin", file)
            origin.misbehave("/b.bin", .status(403, retryAfter: nil))
            #expect(await fetch(bench, origin, "b.bin", task: 2, asksForAll: true)?.isLimit == false)
            #expect(await fetch(bench, origin, "b.bin", task: 3, asksForAll: true)?.isLimit == true)
        }
    }

    /// Limits of requests per time. Each file takes one request, and one file is served once more while there is room.
    @Test(arguments: [403, 404, 200]) func refusalShowsALimitWhereFilesAreServedMoreThanOnce(status: Int) async throws {
        var page = ScriptedOrigin.File(.seeded(seed: 61, size: 900))
        (page.contentType, page.etag, page.lastModified) = ("text/html", nil, nil)
        let refusal: ScriptedOrigin.Misbehaviour =
            status == 200 ? .replaced(with: page) : .status(status, retryAfter: nil)
        try await withBench { bench, origin in
            for task in 1...4 as ClosedRange<Int64> {
                origin.serve("/\(task).zip", file(task))
                #expect(await fetch(bench, origin, "\(task).zip", task: task, asksForAll: true) == nil)
            }
            #expect(
                origin.requests.map { $0.header("Range") } == Array(repeating: "bytes=0-", count: 4) + ["bytes=0-0"])
            origin.serve("/5.zip", file)
            for task in 1...5 { origin.misbehave("/\(task).zip", refusal) }
            #expect(await fetch(bench, origin, "5.zip", task: 5, asksForAll: true)?.isLimit == true)
        }
    }

    @Test func refusalShowsNothingWhereEachFileIsServedOnce() async throws {
        try await withBench { bench, origin in
            for task in 1...9 as ClosedRange<Int64> {
                origin.serve("/\(task).bin", file(task))
                origin.misbehave("/\(task).bin", .status(403, retryAfter: nil), when: .after(1))
                #expect(await fetch(bench, origin, "\(task).bin", task: task, asksForAll: true) == nil)
            }
            // After four files, and after eight.
            #expect(origin.requests.count { $0.header("Range") == "bytes=0-0" } == 2)
            let failure = await fetch(bench, origin, "none.bin", task: 10, asksForAll: true)
            #expect(failure?.kind == .notFound)
            #expect(failure?.isLimit == nil)
        }
    }

    /// A limit for files of one name, or of one directory, beside files without a limit.
    @Test(arguments: ["b", "x/slow/"]) func fileIsMeasuredByFilesWithTheMostSimilarPaths(
        name: String
    ) async throws {
        let others = ["a", "c", "d", "e", "x/", "x/a", "x/c", "x/fast/"].map { "\($0)1.bin" }
        let (witness, refused) = ("\(name)1.bin", "\(name)2.bin")
        try await withBench { bench, origin in
            for (task, path) in (others + [witness, refused]).enumerated() {
                origin.serve("/\(path)", file)
                if path != refused { #expect(await fetch(bench, origin, path, task: Int64(task)) == nil) }
            }
            for path in [witness, refused] { origin.misbehave("/\(path)", .status(403, retryAfter: nil)) }
            #expect(await fetch(bench, origin, refused, task: 20)?.isLimit == true)
            #expect(requests(origin, "/\(witness)").count == 2)
            #expect(others.allSatisfy { requests(origin, "/\($0)").count == 1 })
        }
    }

    /// One turn is enough, unless other files are served, which may take the connection that the witness has left.
    @Test(arguments: [false, true])
    func fewTurnsAreEnoughWhereFilesHaveTakenManyAlready(isBusy: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            if isBusy { bench.context.conduct.enter(try SourceURL(validating: origin.url("/a.bin")).origin) }
            var before = requests(origin, "/a.bin").count
            var turns: [Int] = []
            for task in 2...6 as ClosedRange<Int64> {
                #expect(await fetch(bench, origin, "\(task).bin", task: task)?.isLimit == false)
                let count = requests(origin, "/a.bin").count
                turns.append(count - before)
                before = count
            }
            let few = isBusy ? OriginWitnesses.fewTurns : OriginWitnesses.oneTurn
            let second = OriginWitnesses.turnsToBelieve - OriginWitnesses.turns
            #expect(turns == [OriginWitnesses.turns, second] + Array(repeating: few, count: 3))
        }
    }

    @Test func fileIsMeasuredByFilesOfItsOwnPartOfTheOriginIfThereAreAny() async throws {
        try await withBench { bench, origin in
            for (task, name) in [(1, "x/a.bin"), (2, "y/a.bin"), (3, "x/a.iso")] as [(Int64, String)] {
                origin.serve("/\(name)", file)
                #expect(await fetch(bench, origin, name, task: task) == nil)
            }
            #expect(await fetch(bench, origin, "x/b.bin", task: 4)?.isLimit == false)
            #expect(["x/a.bin", "y/a.bin", "x/a.iso"].map { requests(origin, "/\($0)").count - 1 } == [6, 0, 0])
            #expect(await fetch(bench, origin, "z/b.bin", task: 5)?.isLimit == false)
            #expect(["x/a.bin", "y/a.bin", "x/a.iso"].map { requests(origin, "/\($0)").count - 1 } == [7, 1, 1])
        }
    }

    /// For example, the token of a directory has expired.
    @Test func partThatIsClosedWhileAnotherIsServedHasNoLimit() async throws {
        try await withBench { bench, origin in
            for name in ["x/a.bin", "x/b.bin", "x/c.bin", "x/d.bin", "y/a.bin", "y/b.bin"] {
                origin.serve("/\(name)", file)
            }
            for (task, name) in [(1, "x/a.bin"), (2, "y/a.bin")] as [(Int64, String)] {
                #expect(await fetch(bench, origin, name, task: task) == nil)
            }
            for name in ["a", "b", "c", "d"] { origin.misbehave("/x/\(name).bin", .status(403, retryAfter: nil)) }
            // A file of the directory was served a moment ago.
            #expect(await fetch(bench, origin, "x/b.bin", task: 3)?.isLimit == true)
            bench.age.now.add(20_000_000_000, ordering: .sequentiallyConsistent)
            #expect(await fetch(bench, origin, "y/b.bin", task: 4) == nil)
            let before = requests(origin, "/y/b.bin").count + requests(origin, "/y/a.bin").count
            #expect(await fetch(bench, origin, "x/c.bin", task: 5)?.isLimit == false)
            let all = requests(origin, "/y/b.bin").count + requests(origin, "/y/a.bin").count - before
            #expect(all == OriginWitnesses.turns)
            #expect(await fetch(bench, origin, "x/d.bin", task: 6)?.isLimit == false)
            let few = requests(origin, "/y/b.bin").count + requests(origin, "/y/a.bin").count - before - all
            #expect(few == OriginWitnesses.oneTurn)
        }
    }

    /// A limit of the whole origin, which is used up by the files of another directory.
    @Test func partOfWhichNothingComesIsMeasuredByOneThatIsServed() async throws {
        try await withBench { bench, origin in
            for name in ["x/a.bin", "x/b.bin", "y/a.bin", "y/b.bin"] { origin.serve("/\(name)", file) }
            #expect(await fetch(bench, origin, "x/a.bin", task: 1) == nil)
            bench.age.now.add(20_000_000_000, ordering: .sequentiallyConsistent)
            #expect(await fetch(bench, origin, "y/a.bin", task: 2) == nil)
            for name in ["x/b.bin", "y/a.bin"] { origin.misbehave("/\(name)", .status(404, retryAfter: nil)) }
            #expect(await fetch(bench, origin, "x/b.bin", task: 3)?.isLimit == true)
            #expect(requests(origin, "/x/a.bin").count == 1)
        }
    }

    @Test func pageInTurnsWithAFileIsTheFileAndPagesInTurnsAreALimit() async throws {
        var page = ScriptedOrigin.File(.seeded(seed: 61, size: 900))
        (page.contentType, page.etag, page.lastModified) = ("text/html", nil, nil)
        try await withBench { [page] bench, origin in
            for name in ["a.zip", "c.zip"] { origin.serve("/\(name)", file) }
            origin.serve("/b.zip", page)
            #expect(await fetch(bench, origin, "a.zip", task: 1) == nil)
            let ending = await bench.run(LeaseDocument.first(origin.url("/b.zip"), task: 2, path: "b.zip"))
            #expect(ending.finished?.size == 900, "\(ending)")
            #expect(requests(origin, "/a.zip").count == 2, "nothing else was asked for meanwhile")
            // A body that looks like that file is not taken for another file.
            var limit = page
            limit.content = .seeded(seed: 62, size: 900)
            for name in ["a.zip", "c.zip"] { origin.misbehave("/\(name)", .replaced(with: limit)) }
            try await bench.serving(origin) {
                let failure = await fetch(bench, origin, "c.zip", task: 3)
                #expect(failure?.kind == .httpStatus(200))
                #expect(failure?.isLimit == true)
            }
        }
    }

    /// Before the third try, the page counts as a refusal, and the report says nothing about turns.
    @Test(arguments: [true, false]) func pageIsBelievedAtTheThirdTryUnlessAWitnessIsOneToo(
        hasWitness: Bool
    ) async throws {
        var page = ScriptedOrigin.File(.seeded(seed: 61, size: 900))
        (page.contentType, page.etag, page.lastModified) = ("text/html", nil, nil)
        try await withBench { [page] bench, origin in
            for name in ["a.zip", "b.zip"] { origin.serve("/\(name)", file) }
            if hasWitness { #expect(await fetch(bench, origin, "a.zip", task: 1) == nil) }
            for name in ["a.zip", "b.zip"] { origin.misbehave("/\(name)", .replaced(with: page)) }
            var lease = LeaseDocument.first(origin.url("/b.zip"), task: 2, path: "b.zip")
            lease.looks = .failed
            let ending = await bench.run(lease)
            #expect(ending.failure?.kind == (hasWitness ? .httpStatus(200) : nil), "\(ending)")
            #expect(ending.finished?.size == (hasWitness ? nil : 900), "\(ending)")
        }
    }

    /// A file is missing while a slow file arrives. The slow file's request is left alone for a while; then the slow file serves as the witness.
    @Test func fileThatIsOnItsWayIsAWitness() async throws {
        try await withBench { bench, origin in
            try await bench.serving(origin) {
                #expect(await fetch(bench, origin, "b.iso", task: 2)?.isLimit == false)
            }
        }
    }
}
