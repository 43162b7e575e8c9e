import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// An origin that serves nobody refuses for no limit (range contract, row 24; adr/0033).
@Suite struct UnservedTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 59, size: 100_000))

    private func fetch(
        _ bench: JobBench, _ origin: ScriptedOrigin, _ name: String, task: Int64
    ) async -> Report.Failure? {
        await bench.run(LeaseDocument.first(origin.url("/\(name)"), task: task, path: name)).failure
    }

    /// A limit serves others.
    @Test(arguments: [false, true]) func refusalTellsWhetherAnythingIsServed(isServed: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            origin.hold("/a.bin", afterBytes: 10)
            origin.misbehave("/b.bin", .statusOnly(404))
            origin.serve("/b.bin", file)
            async let other = isServed ? fetch(bench, origin, "a.bin", task: 1) : nil
            if isServed { try await origin.waitForRequest { $0.path == "/a.bin" && $0.bodyBytesSent > 0 } }
            let failure = await fetch(bench, origin, "b.bin", task: 2)
            origin.release("/a.bin")
            #expect(failure?.kind == .notFound)
            #expect(failure?.unserved == (isServed ? nil : true), "\(failure as Any)")
            #expect(await other == nil)
        }
    }

    /// What is asked for at the same time may be served, and is waited for.
    @Test func refusalWaitsForTheAnswersThatOthersWaitFor() async throws {
        let conduct = OriginConduct()
        let control = LeaseControl()
        let visit = conduct.ask("http://o")
        async let nobody = conduct.servesNobody("http://o", for: control)
        conduct.enter("http://o", visit)
        #expect(await !nobody)
        let refused = conduct.ask("http://p")
        async let refusal = conduct.servesNobody("http://p", for: control)
        _ = conduct.isOver(refused, "http://p")
        #expect(await refusal)
    }
}
