import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
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

    /// Requests that waited for their answers together for a while have met there; others may have come one after the other.
    @Test(arguments: [0, 200_000_000, 300_000_000] as [Int64])
    func originThatServesWhatOverlapsDoesNotRefuseForThat(time: Int64) async throws {
        let clock = JobBench.Clock()
        let conduct = OriginConduct { clock.now.load(ordering: .sequentiallyConsistent) }
        let visits = (0..<2).map { _ in conduct.ask("o") }
        clock.now.add(time, ordering: .sequentiallyConsistent)
        conduct.enter("o", visits[0])
        #expect(conduct.servesTogether("o") == (time > 250_000_000))
        // One that comes alone shows nothing.
        let alone = conduct.ask("p")
        clock.now.add(time, ordering: .sequentiallyConsistent)
        conduct.enter("p", alone)
        #expect(!conduct.servesTogether("p"))
    }

    /// A file that is missing keeps others waiting only where all that overlap may be refused.
    @Test func refusalKeepsNobodyWaitingWhereWhatOverlapsIsServed() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", file)
            origin.serve("/b.bin", file)
            origin.misbehave("/b.bin", .statusOnly(404))
            #expect(await fetch(bench, origin, "a.bin", task: 1) == nil)
            let (conduct, home) = (bench.context.conduct, try SourceURL(validating: origin.url("/")).origin)
            let visits = (0..<2).map { _ in conduct.ask(home) }
            bench.age.now.add(300_000_000, ordering: .sequentiallyConsistent)
            conduct.enter(home, visits[0])
            conduct.leave(home)
            _ = conduct.isOver(visits[0], home)
            #expect(await fetch(bench, origin, "b.bin", task: 2)?.isLimit == false)
            #expect(await conduct.admit(home, for: Self.unwanted) != nil)
        }
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
