import MusterCore
import MusterStore
import Testing

/// URLs that expire, and the resolver that gives fresh ones (range contract, row 21).
@Suite struct ExpiryTests {
    /// A planned task, of five chunks by default, with `count` of them leased, including the first.
    private func begin(
        _ fixture: StoreFixture, _ count: Int32, size: Int64 = 500, origins: [String] = ["a"], hasResolver: Bool = true
    ) async throws -> (TestWorker, [GrantedLease]) {
        if hasResolver {
            try await fixture.makeResolvedGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        } else {
            try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        }
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        try await worker.learn(first, size: size)
        let others = try await worker.claim(count - 1)
        return (worker, [first] + others)
    }

    /// Ends all waits, and leases the next chunk.
    private func claimDue(_ fixture: StoreFixture, _ worker: inout TestWorker) async throws -> GrantedLease? {
        try await fixture.passChunkWaits()
        return try await worker.claimWork().first
    }

    @Test func expiredURLAsksTheResolverOnceForAllWorkers() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, 4)
            var other = try await fixture.makeWorker("other")
            for lease in leases {
                try await worker.refuse(lease, 403)
                try await fixture.check()
            }
            #expect(
                try await fixture.chunks() == [0, 100, 200, 300, 400].map { "fetch \($0) 0 waiting 0" }
                    + ["resolve 0 0 ready 0"])
            let questions = try await worker.claim(9)
            #expect(questions.map(\.kind) == [.resolve])
            #expect(try await other.claim(9).isEmpty)
            try await fixture.check()
            try await worker.resolve(try #require(questions.first))
            try await fixture.check()
            #expect(try await fixture.chunks() == [0, 100, 200, 300, 400].map { "fetch \($0) 0 ready 0" })
            #expect(try await Set(fixture.readyChunks().map(\.origin)) == ["http://fresh.test:80"])
            // None of it counted as a try.
            #expect(try await fixture.store.task("t", of: "g").attempts == 0)
            #expect(try await fixture.outcomes() == ["resolve", "returned", "returned", "returned"])
            try await worker.finishEverything(size: 500)
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func lateRefusalsOfTheOldURLAreNotCounted() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, 3)
            try await worker.refuse(leases[0], 403)
            try await worker.resolve(try #require(try await worker.claim().first))
            let fresh = try #require(try await worker.claim().first)
            #expect(fresh.start == 300)
            for lease in leases[1...] { try await worker.refuse(lease, 403) }
            try await fixture.check()
            #expect(
                try await fixture.chunks() == [0, 100, 200, 400].map { "fetch \($0) 0 ready 0" },
                "refusals of leases of the old URL ask no resolver")
            #expect(
                try await Set(fixture.readyChunks().map(\.origin)) == ["http://fresh.test:80"],
                "returned chunks go to the fresh URL too")
            try await worker.refuse(fresh, 403)
            #expect(try await fixture.chunks().contains { $0.hasPrefix("resolve") }, "a fresh URL's refusal does")
            try await fixture.check()
        }
    }

    @Test(arguments: [401, 403, 410]) func firstRequestMayAskTheResolverToo(status: Int) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), status)
            try await fixture.check()
            #expect(try await fixture.chunks() == ["fetch 0 0 waiting 0", "resolve 0 0 ready 0"])
            let question = try #require(try await worker.claim().first)
            #expect(question.kind == .resolve)
            // A task of which only a resolver question is leased is not active.
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
            try await fixture.check()
        }
    }

    @Test func resolverIsAskedAgainAfterABackoffAndNotForEver() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for round in 0..<3 {
                try await worker.refuse(try #require(try await worker.claim().first), 401)
                try await fixture.check()
                #expect(try await fixture.chunks().last == "resolve 0 0 \(round == 0 ? "ready" : "waiting") 0")
                try await fixture.passChunkWaits(of: "resolve")
                try await worker.resolve(try #require(try await worker.claim().first))
            }
            try await worker.refuse(try #require(try await worker.claim().first), 401)
            try await fixture.check()
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .authentication && task.failure?.status == 401)
        }
    }

    @Test func progressLetsTheResolverBeAskedAgain() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, 1, size: 100)
            for step in 1...6 {
                try await worker.refuse(leases[0], 403, at: Int64(step))
                try await fixture.check()
                let question = try #require(try await worker.claim().first)
                #expect(question.kind == .resolve)
                try await worker.resolve(question)
                leases = try await worker.claim()
                #expect(leases.first?.start == 0)
            }
            #expect(try await fixture.store.task("t", of: "g").bytesDone == 6)
        }
    }

    /// Bytes that were dropped because they could not be resumed came from the URL as well: it is not a URL that never worked.
    /// Bytes that may be of an error page don't prove that.
    @Test(arguments: [403, 410], [FailureKind.network, .httpStatus(200)])
    func refusalOfAURLWhoseBytesWereDroppedIsNotFinal(status: Int, kind: FailureKind) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 500, isSplittable: false, etag: nil)
            try await worker.fail(first, kind, at: 300, status: 200)
            try await fixture.check()
            let second = try #require(try await claimDue(fixture, &worker))
            #expect(second.version == 2 && second.start == 0)
            try await worker.refuse(second, status)
            try await fixture.check()
            let state = try await fixture.store.task("t", of: "g").state
            #expect(state == (kind == .network ? .queued : .failed))
            guard kind == .network else { return }
            #expect(try await fixture.outcomes().last == "retry")
            // While the refusal may be a rate limit the file is requested more often, but not for ever.
            for _ in 0..<40 where try await fixture.store.task("t", of: "g").state == .queued {
                try await worker.refuse(try #require(try await claimDue(fixture, &worker)), status)
            }
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
        }
    }

    @Test func withoutAResolverTheOriginalIsResolvedOnceMore() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, 2, hasResolver: false)
            for lease in leases { try await worker.refuse(lease, 410) }
            try await fixture.check()
            #expect(
                try await fixture.chunks() == [0, 100, 200, 300, 400].map { "fetch \($0) 0 ready 0" },
                "both chunks are requested again at once, and neither failure counts")
            #expect(try await fixture.outcomes() == ["retry", "returned"])
            let first = try await worker.claim(5).first { $0.start == 0 }
            try await worker.refuse(try #require(first), 410)
            try await fixture.check()
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .notFound && task.attempts == 1)
        }
    }

    @Test func refusalWithoutSuccessIsNoExpiry() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 401)
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .failed)
        }
    }

    @Test func unansweredQuestionGivesUpItsSource() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            for source in 0..<2 as Range<Int32> {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.source == source)
                try await worker.refuse(lease, 401)
                for tries in 1...3 {
                    try await fixture.passChunkWaits(of: "resolve")
                    let question = try #require(try await worker.claim().first)
                    #expect(question.kind == .resolve && question.source == source)
                    try await worker.fail(question, .httpStatus(500), retryAfter: 1_000_000)
                    try await fixture.check()
                    let waits = try await fixture.waits(of: "resolve")
                    if tries < 3 {
                        #expect(
                            waits.allSatisfy { $0 > 3_000 } && waits.count == 1, "it waits as Retry-After says")
                    }
                }
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .authentication)
        }
    }

    @Test func questionOfALostWorkerIsAskedAgain() async throws {
        try await StoreFixture.run { fixture in
            let (worker, leases) = try await begin(fixture, 1)
            try await worker.refuse(leases[0], 403)
            var lost = try await fixture.makeWorker("lost")
            let question = try #require(try await lost.claim().first)
            #expect(question.kind == .resolve)
            try await fixture.expire(lost.session)
            try await fixture.check()
            // The lost worker's answer comes too late; it wrote nothing that would need a fence.
            try await lost.resolve(question)
            #expect(try await fixture.chunks().contains("resolve 0 0 ready 0"))
            #expect(try await !fixture.tasks()[0].fenced)
            try await fixture.check()
        }
    }

    @Test func answerIsTakenOnce() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, 1)
            try await worker.refuse(leases[0], 403)
            let question = try #require(try await worker.claim().first)
            try await worker.resolve(question, headers: #"{"Authorization": "fresh"}"#)
            let before = try await StoreText.lines(fixture)
            try await worker.resolve(question, to: "late")
            #expect(try await StoreText.lines(fixture) == before)
            let source = try await fixture.sources()[0]
            #expect(source.freshUrl == "http://fresh.test/t?signature=1")
            #expect(source.freshHeaders == ["Authorization": "fresh"])
        }
    }

    /// The number of questions that are ready, waiting or leased.
    private func questions(_ fixture: StoreFixture) async throws -> Int {
        let kinds = try await fixture.readyChunks().map(\.kind) + fixture.leases().map(\.kind)
        return kinds.count { $0 == "resolve" }
    }

    @Test(arguments: [TaskVerb.pause, .cancel]) func questionIsNotKeptWhenItsTaskStops(verb: TaskVerb) async throws {
        for isLeased in [false, true] {
            try await StoreFixture.run { fixture in
                var (worker, leases) = try await begin(fixture, 1)
                try await worker.refuse(leases[0], 403)
                if isLeased { _ = try await worker.claim() }
                _ = try await fixture.store.apply(verb, to: "g", keys: nil)
                try await fixture.check()
                #expect(try await questions(fixture) == 0)
                guard case .pause = verb else { return }
                _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
                try await worker.finishEverything(size: 500)
                try await fixture.check()
                #expect(try await fixture.store.group("g").state == .succeeded)
            }
        }
    }

    @Test func resolverIsNotAskedForATaskThatIsDone() async throws {
        for isLeased in [false, true] {
            for isWhole in [false, true] {
                try await StoreFixture.run { fixture in
                    try await fixture.makeResolvedGroup("g", [Wanted("t")], isSealed: true)
                    var worker = try await fixture.makeWorker()
                    let lease = try #require(try await worker.claim().first)
                    if !isWhole { try await worker.learn(lease, size: 100) }
                    try await worker.refuse(lease, 403)
                    if isLeased {
                        _ = try await worker.claim()
                    } else {
                        try await fixture.prolongChunkWaits(of: "resolve")
                    }
                    #expect(try await questions(fixture) == 1)
                    // The refused chunk is tried once more before the resolver answers, and it works.
                    try await fixture.passChunkWaits(of: "fetch")
                    let again = try #require(try await worker.claim().first)
                    #expect(again.kind == .fetch)
                    if isWhole { try await worker.finish(again, size: 90) } else { try await worker.done(again) }
                    try await fixture.check()
                    #expect(try await questions(fixture) == 0)
                }
            }
        }
    }
}
