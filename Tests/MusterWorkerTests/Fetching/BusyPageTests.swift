import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// An origin that serves one file at a time, and tells so by a page, where its files are texts too (range contract, rows 24 and 27; adr/0036).
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

    /// That it comes twice tells nothing as long as something else does.
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

    /// What comes in the place of a file is asked for alone.
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
