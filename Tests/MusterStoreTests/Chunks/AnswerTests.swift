import MusterCore
import MusterStore
import Testing

/// What first responses state besides size and validators, and the paths that files get (range contract, rows 9, 34 and 35).
@Suite struct AnswerTests {
    @Test func statedDigestsAreDroppedWithTheVersion() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.answer(lease, size: 250, digests: ["md5": "0123"])
            var task = try await fixture.tasks()[0]
            #expect(task.statedDigests == ["md5": "0123"] && task.dateStrong && task.source == 0)
            try await worker.fail(lease, .changed)
            task = try await fixture.tasks()[0]
            #expect(task.statedDigests == nil && !task.dateStrong && task.source == nil)
        }
    }

    @Test func suggestedNameReplacesTheLastPartOfThePath() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", path: "folder/given"), Wanted("u", path: "top")])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await worker.answer(leases[0], size: 250, name: "paper.pdf")
            try await worker.answer(leases[1], size: 250, name: "paper.pdf")
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").path == "folder/paper.pdf")
            #expect(try await fixture.store.task("u", of: "g").path == "paper.pdf")
        }
    }

    @Test func suggestedNamesAreUnique() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("taken", [Wanted("x", path: "a.tar (2).gz")])
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(9).filter { $0.path != "a.tar (2).gz" }
            for (index, lease) in leases.enumerated() {
                try await worker.answer(lease, size: 100, name: "a.tar.gz")
                // A finished file still occupies its name.
                if index == 0 { try await worker.finish(lease, size: 100) }
            }
            try await fixture.check()
            let paths = try await fixture.store.tasks(of: "g", state: nil, after: nil, limit: 9).map(\.path)
            #expect(paths == ["a.tar.gz", "a.tar (3).gz", "a.tar (4).gz", "a.tar (5).gz"])
            // The next version of a task may keep the task's name.
            try await worker.fail(leases[1], .changed)
            let again = try #require(try await worker.claim(9).first { $0.path == "a.tar (3).gz" })
            try await worker.answer(again, size: 100, name: "a.tar.gz")
            #expect(try await fixture.store.task("t2", of: "g").path == "a.tar (3).gz")
        }
    }

    @Test func longNamesAreCutWithoutTheirExtension() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            let name = String(repeating: "ä", count: 125) + ".tar"
            for lease in try await worker.claim(2) { try await worker.answer(lease, size: 250, name: name) }
            let paths = try await fixture.store.tasks(of: "g", state: nil, after: nil, limit: 9).map(\.path)
            #expect(paths == [name, String(repeating: "ä", count: 123) + " (2).tar"])
        }
    }

    @Test func pathOfAFileThatWasPutElsewhereIsStored() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", path: "a/b.txt")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await fixture.store.report(finished: [
                .init(
                    session: worker.session, lease: lease.name, size: 5, digests: "{}",
                    representation: Representation(size: 5, digests: ["md5": "0123"]), effectiveURL: nil,
                    path: "a/b (2).txt")
            ])
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").path == "a/b (2).txt")
            #expect(try await fixture.told("task.succeeded", "path") == ["a/b (2).txt"])
            #expect(try await fixture.tasks()[0].statedDigests == ["md5": "0123"])
        }
    }
}
