import MusterAPI
import MusterCore
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// Files that are refused at the same time learn from each other (adr/0033).
@Suite(.timeLimit(.minutes(3))) struct SharedTurnsTests {
    /// Up to three of the files take all turns.
    @Test func filesThatAreMissingAtTheSameTimeAreAskedForTwice() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            #expect(await bench.run(.first(origin.url("/a.bin"), path: "a.bin")).finished?.size == 100_000)
            await withTaskGroup(of: Report.Failure?.self) { group in
                for task in 2...13 as ClosedRange<Int64> {
                    let name = "\(task).bin"
                    group.addTask { await bench.run(.first(origin.url("/\(name)"), task: task, path: name)).failure }
                }
                for await failure in group { #expect(failure?.isLimit == false, "\(failure as Any)") }
            }
            let (all, few) = (OriginWitnesses.turns, OriginWitnesses.oneTurn)
            // One more request may show whether the connection, or the manner of asking, is at fault.
            let counts = (2...13).map { task in origin.requests.count { $0.path == "/\(task).bin" } }
            #expect((1...3).contains(counts.count { $0 > few + 2 }), "\(counts)")
            #expect(origin.requests.count { $0.path == "/a.bin" } <= 1 + 3 * all + 9 * few)
        }
    }

    @Test func fileThatIsServedInItsTurnIsFetched() async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            origin.serve("/b.bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            origin.misbehave("/b.bin", .status(404, retryAfter: nil), when: .first(2))
            #expect(await bench.run(.first(origin.url("/a.bin"), task: 1, path: "a.bin")).finished?.size == 100_000)
            let (witnesses, known) = (bench.context.witnesses, try SourceURL(validating: origin.url("/b.bin")))
            for _ in 2..<OriginWitnesses.turnsToBelieve { witnesses.tookTurn(known, status: 404) }
            #expect(await bench.run(.first(origin.url("/b.bin"), task: 2, path: "b.bin")).finished?.size == 100_000)
            // What earlier refusals have shown no longer counts.
            for _ in 1..<OriginWitnesses.turnsToBelieve { witnesses.tookTurn(known, status: 404) }
            #expect(witnesses.turns(of: known, status: 404, isBusy: false) == OriginWitnesses.turns)
        }
    }

    /// Three files with two sources came in ten seconds when each of them took turns first.
    @Test(arguments: [500, 502, 504]) func anErrorOfTheServerTakesTurnsOnlyWhereNoOtherSourceIsLeft(
        status: Int
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            #expect(await bench.run(.first(origin.url("/a.bin"), path: "a.bin")).finished?.size == 100_000)
            origin.misbehave("/b.bin", .status(status, retryAfter: nil))
            try await bench.serving(origin) {
                for isLeft in [true, false] {
                    var lease = LeaseDocument.first(origin.url("/b.bin"), task: isLeft ? 2 : 3, path: "b.bin")
                    lease.mayMoveOn = isLeft ? true : nil
                    #expect(await bench.run(lease).failure?.status == status)
                    #expect((origin.requests.count { $0.path == "/a.bin" } == 1) == isLeft)
                }
            }
        }
    }

    /// Otherwise the file would never have a last try, as long as other files are served.
    @Test(arguments: [nil, .failed, .atOnce] as [Look?])
    func fileThatIsAlwaysToldOfTooManyRequestsTakesTurnsAtItsLaterTries(looks: Look?) async throws {
        try await withBench { bench, origin in
            origin.serve("/a.bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            #expect(await bench.run(.first(origin.url("/a.bin"), path: "a.bin")).finished?.size == 100_000)
            origin.misbehave("/b.bin", .status(429, retryAfter: nil))
            var lease = LeaseDocument.first(origin.url("/b.bin"), task: 2, path: "b.bin")
            lease.looks = looks
            let failure = await bench.run(lease).failure
            #expect(failure?.status == 429 && failure?.isLimit == (looks == nil ? nil : false), "\(failure as Any)")
            let turns = looks == nil ? 0 : OriginWitnesses.turns
            #expect(origin.requests.count { $0.path == "/a.bin" } == 1 + turns)
        }
    }

    /// For example, a token has expired: a witness that is refused too would show nothing.
    @Test func noWitnessIsAskedForWhereNothingHasComeForLongerThanALimitLasts() async throws {
        try await withBench { bench, origin in
            for name in ["a", "b", "c"] {
                origin.serve("/\(name).bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            }
            #expect(await bench.run(.first(origin.url("/a.bin"), path: "a.bin")).finished?.size == 100_000)
            for name in ["a", "b", "c"] { origin.misbehave("/\(name).bin", .status(403, retryAfter: nil)) }
            let limited = await bench.run(.first(origin.url("/b.bin"), task: 2, path: "b.bin")).failure
            #expect(limited?.isLimit == true, "\(limited as Any)")
            let before = origin.requests.count { $0.path == "/a.bin" }
            bench.age.now.add(10_000_000_000, ordering: .sequentiallyConsistent)
            let refused = await bench.run(.first(origin.url("/c.bin"), task: 3, path: "c.bin")).failure
            #expect(refused?.kind == .httpStatus(403) && refused?.isLimit == nil, "\(refused as Any)")
            #expect(origin.requests.count { $0.path == "/a.bin" } == before)
        }
    }

    /// Such a witness says nothing.
    @Test(arguments: [ScriptedOrigin.Misbehaviour.conflictingContentLengths, .hang(afterBytes: 0)])
    func witnessWhoseBodyNeverEndsIsNotWaitedForLong(habit: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            for name in ["a", "b"] {
                origin.serve("/\(name).bin", ScriptedOrigin.File(.seeded(seed: 59, size: 100_000)))
            }
            #expect(await bench.run(.first(origin.url("/a.bin"), path: "a.bin")).finished?.size == 100_000)
            origin.misbehave("/a.bin", habit)
            origin.misbehave("/b.bin", .status(403, retryAfter: nil))
            let failure = await bench.run(.first(origin.url("/b.bin"), task: 2, path: "b.bin")).failure
            #expect(failure?.kind == .httpStatus(403), "\(failure as Any)")
            #expect(origin.requests.contains { $0.path == "/a.bin" && $0.header("Range") == "bytes=0-0" })
        }
    }
}
