import MusterCore
import MusterStore
import Testing

/// The facts that explain why a task is not done.
@Suite struct ExplanationTests {
    @Test func explanationOfAnActiveTaskShowsItsLeases() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], maxConnections: 3)
            var worker = try await fixture.makeWorker("w1")
            let first = try #require(try await worker.claim().first)
            try await worker.answer(first, size: 450, etag: "\"1\"")
            try await worker.progress(first, to: 60)
            let second = try #require(try await worker.claim().first)
            try await worker.done(first)
            let (task, facts) = try await fixture.store.explanation(of: "t", in: "g")
            #expect(task.state == .active && task.bytesDone == 100)
            #expect(
                [facts.chunks.done, facts.chunks.leased, facts.chunks.ready, facts.chunks.waiting, facts.chunks.parked]
                    == [1, 1, 3, 0, 0])
            #expect(facts.groupConnections == 1)
            #expect(Self.counts(facts.workers) == [1, 0, 7])
            let work = try #require(facts.work.first)
            #expect(facts.work.count == 1 && work.worker == "w1" && work.kind == .fetch)
            #expect(work.start == second.start && work.source == second.url && work.since <= facts.at)
            #expect(facts.sources.map(\.url) == ["http://a.test/t", "http://b.test/t"])
            #expect(facts.sources[0].bytes == 100)
            #expect(facts.attempts.isEmpty && facts.question == nil)
        }
    }

    @Test func originsAreThoseThatChunksAreReadyToBeFetchedFrom() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker()
            func origins() async throws -> [String] {
                try await fixture.store.explanation(of: "t", in: "g").situation.origins.map(\.key)
            }
            #expect(try await origins() == ["http://a.test:80"])
            try await worker.refuse(try #require(try await worker.claim().first), 451)
            #expect(try await origins() == ["http://b.test:80"])
            try await worker.refuse(try #require(try await worker.claim().first), 500)
            #expect(try await origins().isEmpty)
        }
    }

    @Test func explanationListsAttemptsWithTheirOutcomes() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker("w1")
            try await worker.refuse(try #require(try await worker.claim().first), 451)
            try await worker.refuse(try #require(try await worker.claim().first), 500)
            let (task, facts) = try await fixture.store.explanation(of: "t", in: "g")
            #expect(
                facts.attempts.map(\.status) == [451, 500] && facts.attempts.map(\.outcome) == [.nextSource, .retry])
            #expect(facts.attempts.map(\.kind) == [.notFound, .httpStatus(500)])
            #expect(facts.attempts.map(\.source) == ["http://a.test/t", "http://b.test/t"])
            #expect(facts.attempts.allSatisfy { $0.worker == "w1" && $0.requestID != nil && $0.address == "192.0.2.1" })
            #expect(facts.sources.map(\.state) == [.failed, .usable] && facts.sources.map(\.failures) == [1, 1])
            #expect(facts.chunks.waiting == 1)
            let due = try #require(facts.dueAt)
            #expect(due > task.createdAt)
        }
    }

    /// An earlier error page in place of the file is compared with the file: if they are alike, the file may be such a page too.
    @Test func fileLikeAnEarlierErrorPageIsDoubtful() async throws {
        try await StoreFixture.run { fixture in
            let keys = ["page", "larger", "tagged", "once"]
            try await fixture.makeGroup("g", keys.map { Wanted($0) }, isSealed: true)
            var worker = try await fixture.makeWorker()
            let detail = "41 bytes of \"text/html\" in the place of the file"
            for _ in 0..<7 {
                try await fixture.passBackoffs()
                let lease = try #require(try await worker.claim().first)
                let attempts = try await fixture.store.explanation(of: lease.key, in: "g").situation.attempts
                if attempts.isEmpty, lease.key != "once" {
                    try await worker.fail(lease, .httpStatus(200), status: 200, detail: detail)
                } else {
                    if lease.key == "tagged" { try await worker.answer(lease, size: 42, etag: "\"1\"") }
                    try await worker.finish(lease, size: lease.key == "larger" ? 400 : 42)
                }
            }
            for key in keys {
                let (task, facts) = try await fixture.store.explanation(of: key, in: "g")
                try #require(task.state == .succeeded)
                #expect(facts.isDoubtful == (key == "page"), "\(key)")
            }
            let doubtful = try await fixture.store.explanation(of: "g").situation.doubtful
            #expect(doubtful == DoubtfulFiles(tasks: 1, keys: ["page"]))
        }
    }

    /// Every failure that is listed is counted too, whatever follows from it, and even if it says nothing about the source.
    @Test func everyFailureThatIsListedIsCounted() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker("w1")
            try await worker.fail(try #require(try await worker.claim().first), .storageFull)
            try await worker.restart(try #require(try await worker.claim().first))
            try await worker.refuse(try #require(try await worker.claimWork().first), 500)
            let facts = try await fixture.store.explanation(of: "t", in: "g").situation
            #expect(facts.attempts.map(\.outcome) == [.returned, .startOver, .retry])
            #expect(facts.sources.map(\.failures) == [3])
        }
    }

    @Test func aMirrorThatDiffersIsNotAFailedSource() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            try await fixture.setDiffering(source: 1)
            #expect(
                try await fixture.store.explanation(of: "t", in: "g").situation.sources.map(\.state) == [
                    .usable, .differs,
                ])
            try await fixture.set("tasks", "version", to: 2)
            #expect(
                try await fixture.store.explanation(of: "t", in: "g").situation.sources.map(\.state) == [
                    .usable, .usable,
                ])
        }
    }

    @Test func explanationShowsTheQuestionToTheResolver() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 403)
            #expect(try await fixture.store.explanation(of: "t", in: "g").situation.question == .due(nil))
            let question = try #require(try await worker.claim().first)
            let (task, asking) = try await fixture.store.explanation(of: "t", in: "g")
            let work = try #require(asking.work.first)
            #expect(asking.work.map(\.kind) == [.resolve])
            #expect(asking.question == .asked(worker: work.worker, since: work.since))
            try await worker.fail(question, .timeout)
            guard case .due(let until?) = try await fixture.store.explanation(of: "t", in: "g").situation.question
            else {
                Issue.record("nobody waits to ask again")
                return
            }
            #expect(until > task.createdAt)
            try await fixture.passBackoffs()
            try await worker.resolve(try #require(try await worker.claim().first { $0.kind == .resolve }))
            let fresh = try await fixture.store.explanation(of: "t", in: "g").situation
            #expect(fresh.question == nil && fresh.sources[0].resolvedAt != nil)
            #expect(fresh.sources[0].url == "http://a.test/t" && fresh.sources[0].origin == "http://fresh.test:80")
        }
    }

    @Test func drainingAndParkedWorkersOfferNoFreeSlots() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            let nobody = try await fixture.store.explanation(of: "t", in: "g").situation.workers
            #expect(Self.counts(nobody) == [0, 0, 0])
            _ = try await fixture.makeWorker("leaving")
            try await fixture.store.drain(worker: "leaving")
            var troubled = try await fixture.makeWorker("troubled")
            try await troubled.sync(parked: ["sink"])
            _ = try await fixture.makeWorker("elsewhere", sinks: ["other"])
            let useless = try await fixture.store.explanation(of: "t", in: "g").situation.workers
            #expect(Self.counts(useless) == [2, 1, 0])
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            #expect(try await fixture.store.explanation(of: "t", in: "g").situation.chunks.parked == 1)
            await #expect(throws: Store.Refusal.noSuchTask("u")) {
                try await fixture.store.explanation(of: "u", in: "g")
            }
        }
    }

    /// The number of workers that reach the sink, of those draining, and of free slots at workers without trouble in the sink.
    private static func counts(_ workers: WorkerCounts) -> [Int64] {
        [workers.reaching, workers.draining, workers.freeSlots]
    }
}
