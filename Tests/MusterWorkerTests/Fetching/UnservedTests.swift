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
        let visit = conduct.ask("http://o")
        #expect(await !conduct.servesNobody("http://o", for: Self.unwanted), "nobody knows yet")
        let control = LeaseControl()
        async let nobody = conduct.servesNobody("http://o", for: control)
        conduct.enter("http://o", visit)
        #expect(await !nobody)
        let refused = conduct.ask("http://p")
        async let refusal = conduct.servesNobody("http://p", for: control)
        _ = conduct.isOver(refused, "http://p")
        #expect(await refusal)
    }

    /// Many at once may be more than the origin allows.
    @Test func requestsAreMadeOneAfterTheOtherUntilSomethingComes() async throws {
        let conduct = OriginConduct()
        let first = try #require(await conduct.admit("http://o", for: LeaseControl()))
        // One whose work is wanted no more is turned away where it would have to wait.
        #expect(await conduct.admit("http://o", for: Self.unwanted) == nil)
        conduct.enter("http://o", first)
        #expect(await conduct.admit("http://o", for: Self.unwanted) != nil, "what is served is asked by many at once")
        conduct.refusesTogether("http://o")
        #expect(await conduct.admit("http://o", for: Self.unwanted) == nil, "until a file is there again")
    }

    /// The control of a job that never waits.
    private static var unwanted: LeaseControl {
        let control = LeaseControl()
        control.ask(.release)
        return control
    }

    @Test(arguments: [OriginConduct.aloneToBelieve, OriginConduct.aloneToBelieve - 1])
    func filesThatWereRefusedAloneLetOthersBeAskedForAtOnce(count: Int) async throws {
        let conduct = OriginConduct()
        for number in 0..<count {
            // Once more in another manner.
            for _ in 0..<2 {
                let visit = try #require(await conduct.admit("o", for: LeaseControl()))
                #expect(!conduct.isOver(visit, "o", url: "\(number)", isThere: false))
            }
        }
        let isBelieved = count == OriginConduct.aloneToBelieve
        #expect(conduct.isRefusedForItself("o", isShared: true) == isBelieved)
        #expect(conduct.isRefusedForItself("o", isShared: false))
        #expect(await conduct.admit("o", for: LeaseControl()) != nil)
        #expect(await (conduct.admit("o", for: Self.unwanted) != nil) == isBelieved)
    }

    /// All that overlap are refused, each of them: curl asks for one after the other.
    @Test(arguments: [404, 403, 410]) func refusalOfAllThatWereAskedForTogetherIsFollowedByOneAlone(
        status: Int
    ) async throws {
        try await withBench { bench, origin in
            let names = ["a.bin", "b.bin", "c.bin"]
            for name in names {
                origin.serve("/\(name)", file)
                origin.misbehave("/\(name)", .status(status, retryAfter: nil), when: .first(1))
            }
            // As if something had come from there a moment ago.
            let name = try SourceURL(validating: origin.url("/")).origin
            let conduct = bench.context.conduct
            _ = conduct.isOver(conduct.ask(name), name, isThere: true)
            let failures = await withTaskGroup(of: Report.Failure?.self) { group in
                for (task, name) in names.enumerated() {
                    group.addTask { await fetch(bench, origin, name, task: Int64(task) + 1) }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(failures.count { $0 != nil && $0?.isLimit != true } == 0, "\(failures)")
        }
    }
}
