import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// The refusals of an origin that serves nothing are not due to a limit (range contract, row 24; adr/0033).
@Suite struct UnservedTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 59, size: 100_000))

    private func fetch(
        _ bench: JobBench, _ origin: ScriptedOrigin, _ name: String, task: Int64
    ) async -> Report.Failure? {
        await bench.run(LeaseDocument.first(origin.url("/\(name)"), task: task, path: name)).failure
    }

    /// An origin at its limit serves other requests.
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

    /// Requests that are made at the same time may be served, so the job waits for their answers.
    @Test func refusalWaitsForTheAnswersThatOthersWaitFor() async throws {
        let conduct = OriginConduct()
        let visit = conduct.ask("http://o")
        #expect(await !conduct.servesNobody("http://o", for: Self.unwanted), "it is not known yet")
        let control = LeaseControl()
        async let nobody = conduct.servesNobody("http://o", for: control)
        conduct.enter("http://o", visit)
        #expect(await !nobody)
        let refused = conduct.ask("http://p")
        async let refusal = conduct.servesNobody("http://p", for: control)
        _ = conduct.isOver(refused, "http://p")
        #expect(await refusal)
    }

    /// Many requests at once may be more than the origin allows.
    @Test func requestsAreMadeOneAfterTheOtherUntilSomethingComes() async throws {
        let conduct = OriginConduct()
        let first = try #require(await conduct.admit("http://o", for: LeaseControl()))
        // A job whose work is no longer wanted is turned away if it would have to wait.
        #expect(await conduct.admit("http://o", for: Self.unwanted) == nil)
        conduct.enter("http://o", first)
        #expect(await conduct.admit("http://o", for: Self.unwanted) != nil, "an origin that serves is asked by many")
        conduct.refusesTogether("http://o")
        #expect(await conduct.admit("http://o", for: Self.unwanted) == nil, "until a file is there again")
    }

    /// Requests that waited for their answers together for a while did overlap at the origin; others may have come one after the other.
    @Test(arguments: [0, 200_000_000, 300_000_000] as [Int64])
    func originThatServesOverlappingRequestsDoesNotRefuseForOverlap(time: Int64) async throws {
        let clock = JobBench.Clock()
        let conduct = OriginConduct { clock.now.load(ordering: .sequentiallyConsistent) }
        let visits = (0..<2).map { _ in conduct.ask("o") }
        clock.now.add(time, ordering: .sequentiallyConsistent)
        conduct.enter("o", visits[0])
        #expect(conduct.servesTogether("o") == (time > 250_000_000))
        // A request that comes alone shows nothing.
        let alone = conduct.ask("p")
        clock.now.add(time, ordering: .sequentiallyConsistent)
        conduct.enter("p", alone)
        #expect(!conduct.servesTogether("p"))
    }

    /// A missing file keeps other requests waiting only if the origin may refuse all overlapping requests.
    @Test func refusalKeepsNoRequestWaitingWhereOverlappingOnesAreServed() async throws {
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
            // The file is asked for once more in another manner.
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

    /// The origin refuses every request that overlaps another. curl makes its requests one after the other, and gets the files.
    @Test(arguments: [404, 403, 410]) func refusalOfAllThatWereAskedForTogetherIsFollowedByOneAlone(
        status: Int
    ) async throws {
        try await withBench { bench, origin in
            let names = ["a.bin", "b.bin", "c.bin"]
            for name in names {
                origin.serve("/\(name)", file)
                origin.misbehave("/\(name)", .status(status, retryAfter: nil), when: .first(1))
            }
            // As if the origin had served something a moment ago.
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
