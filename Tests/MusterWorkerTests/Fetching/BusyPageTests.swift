import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// An origin that serves one file at a time and says so by a page, while its files are texts too (range contract, rows 24 and 27; adr/0036).
@Suite(.timeLimit(.minutes(1))) struct BusyPageTests {
    private static func text(size: Int64, isMarked: Bool = true) -> ScriptedOrigin.File {
        var file = ScriptedOrigin.File(.seeded(seed: 59, size: size))
        file.contentType = "text/plain"
        if !isMarked { (file.etag, file.lastModified) = (nil, nil) }
        return file
    }

    private func fetch(_ bench: JobBench, _ origin: ScriptedOrigin, _ name: String, task: Int64) async -> JobEnding {
        await bench.run(LeaseDocument.first(origin.url("/\(name)"), task: task, path: name))
    }

    /// The page comes twice, but that proves nothing while another file is being served.
    @Test func pageThatComesAgainBesideTheFirstFileIsNotBelieved() async throws {
        try await withBench { bench, origin in
            for name in ["a.csv", "b.csv"] { origin.serve("/\(name)", Self.text(size: 100_000)) }
            origin.hold("/a.csv", afterBytes: 10)
            origin.misbehave("/b.csv", .replaced(with: Self.text(size: 20, isMarked: false)))
            async let first = fetch(bench, origin, "a.csv", task: 1)
            try await origin.waitForRequest { $0.path == "/a.csv" && $0.bodyBytesSent > 0 }
            let beside = await fetch(bench, origin, "b.csv", task: 2)
            #expect(beside.failure?.kind == .httpStatus(200), "\(beside)")
            origin.behave("/b.csv")
            origin.release("/a.csv")
            #expect(await first.finished?.size == 100_000)
            #expect(await fetch(bench, origin, "b.csv", task: 2).finished?.size == 100_000)
        }
    }

    /// A file that comes slowly when it is asked for again is told from the page by its head. Without a head, the page may still not be the file.
    @Test(arguments: [ScriptedOrigin.Misbehaviour.hang(afterBytes: 100_000), .resetBeforeHeaders, .statusOnly(503)])
    func pageIsNotTakenForAFileThatDoesNotComeInTime(_ second: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            var page = Self.text(size: 70_000, isMarked: false)
            page.contentType = "text/html"
            origin.serve("/b.bin", Self.text(size: 400_000))
            origin.misbehave("/b.bin", .replaced(with: page), when: .first(1))
            origin.misbehave("/b.bin", second, when: .after(1))
            let (conduct, key) = (bench.context.conduct, try SourceURL(validating: origin.url("/")).origin)
            let other = conduct.ask(key)
            let ending = await fetch(bench, origin, "b.bin", task: 1)
            #expect(ending.failure?.kind == .httpStatus(200), "\(ending)")
            #expect(ending.failure?.isLimit == (second == .hang(afterBytes: 100_000) ? true : nil))
            _ = conduct.isOver(other, key)
            origin.behave("/b.bin")
            #expect(await fetch(bench, origin, "b.bin", task: 1).finished?.size == 400_000)
        }
    }

    private static func isDurable(_ told: (name: LeaseName, news: JobNews), ofTask task: Int64) -> Bool {
        guard case .progress(.some, _) = told.news else { return false }
        return told.name.chunk == ChunkID(task * 100)
    }

    /// The examination may take seconds. A coordinator that is told of a page takes it for the file, and the real file for a change of content.
    @Test func coordinatorIsNotToldOfAPageThatWaitsToBeExamined() async throws {
        try await withBench(configure: { $0.progressInterval = .milliseconds(1) }) { bench, origin in
            let slow = ["b.csv", "c.csv"]
            for name in slow {
                origin.serve("/\(name)", Self.text(size: 4 * mebibyte))
                origin.hold("/\(name)", afterBytes: 2 * mebibyte)
            }
            origin.serve("/a.csv", Self.text(size: 20, isMarked: false))
            let (context, key) = (bench.context, try SourceURL(validating: origin.url("/")).origin)
            #expect(context.beliefs.begin(key), "another body is examined")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = await fetch(bench, origin, "a.csv", task: 1) }
                try await origin.waitForRequest { $0.path == "/a.csv" && $0.bodyBytesSent > 0 }
                await context.conduct.becomesIdle(key, for: LeaseControl())
                group.addTask { await context.checkpointer.run() }
                // The second file becomes durable in a later round than the first. A page would become durable in the first file's round at the latest.
                for (task, name) in zip([2, 3] as [Int64], slow) {
                    group.addTask { _ = await fetch(bench, origin, name, task: task) }
                    try await bench.news.wait(for: "a durable prefix of \(name)", details: { "\($0.count)" }) { news in
                        news.contains { Self.isDurable($0, ofTask: task) }
                    }
                }
                #expect(!bench.news.value.contains { Self.isDurable($0, ofTask: 1) })
                for name in slow { origin.release("/\(name)") }
                context.beliefs.end(key)
                for _ in 0..<3 { _ = try await group.next() }
                group.cancelAll()
            }
        }
    }

    /// After a page, the file is asked for again alone, so the worker waits until the origin is idle.
    @Test func originIsIdleWhenAllThatWasAskedOfItIsOver() async throws {
        let (conduct, control) = (OriginConduct(), LeaseControl())
        let visits = [conduct.ask("http://o"), conduct.ask("http://o")]
        _ = conduct.isOver(visits[0], "http://o")
        async let idle: Void = conduct.becomesIdle("http://o", for: control)
        _ = conduct.isOver(visits[1], "http://o")
        await idle
        #expect(conduct.isIdle("http://o"))
    }
}
