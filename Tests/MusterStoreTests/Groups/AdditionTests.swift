import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// How tasks are added to groups.
@Suite struct AdditionTests {
    @Test func existingKeysChangeNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90))
            let before = try await StoreText.lines(fixture)
            #expect(try await fixture.add(Wanted.many(2, size: 55), to: "g") == Addition(added: 0, existing: 2))
            #expect(try await StoreText.lines(fixture) == before)
            #expect(try await fixture.add(Wanted.many(3, size: 90), to: "g") == Addition(added: 1, existing: 2))
            try await fixture.check()
            _ = try await fixture.store.seal("g")
            // Known tasks are accepted in a sealed group too.
            #expect(try await fixture.add(Wanted.many(3), to: "g") == Addition(added: 0, existing: 3))
            try await fixture.check()
        }
    }

    /// Different files may have the same name in their URLs.
    @Test(arguments: [nil, "data.csv"] as [String?])
    func taskWithoutAKeyIsIdentifiedByItsPathAndURLs(key: String?) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            func add(_ urls: String...) async throws -> Addition {
                var upload = try await fixture.store.beginUpload()
                let tasks = try urls.map { try TaskSpecification(urls: ["http://\($0)"], key: key) }
                try await fixture.store.stage(
                    tasks.map { StagedTask(line: 1, task: $0, digests: nil, metadata: nil, headers: nil) },
                    upload: &upload)
                return try await fixture.store.addTasks(upload, to: "g")
            }
            #expect(try await add("a.test/2025/data.csv") == Addition(added: 1, existing: 0))
            #expect(try await add("a.test/2025/data.csv") == Addition(added: 0, existing: 1))
            guard key == nil else {
                #expect(try await add("a.test/2026/data.csv") == Addition(added: 0, existing: 1))
                return
            }
            await #expect(
                throws: Store.Refusal.otherURLs(
                    "data.csv", url: "http://a.test/2026/data.csv", existing: "http://a.test/2025/data.csv", line: 1)
            ) { try await add("a.test/2026/data.csv") }
            try await fixture.check()
        }
    }

    /// Two lines that contradict each other.
    private func lines(_ line: Int64, _ other: Int64, _ url: String, _ otherURL: String) -> Store.Collision {
        Store.Collision(line: line, otherLine: other, url: "http://\(url)", otherURL: "http://\(otherURL)")
    }

    @Test func duplicatesAreNamedByLineAndURL() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            // A repeated identical line counts once.
            #expect(try await fixture.add([Wanted("a"), Wanted("a")], to: "g") == Addition(added: 1, existing: 0))
            await #expect(throws: Store.Refusal.duplicateKey("b", lines(3, 1, "a.test/b", "a.test/b"))) {
                try await fixture.add([Wanted("b"), Wanted("c"), Wanted("b", path: "elsewhere")], to: "g")
            }
            await #expect(throws: Store.Refusal.duplicateKey("b", lines(2, 1, "z.test/b", "a.test/b"))) {
                try await fixture.add([Wanted("b"), Wanted("b", origins: ["z"])], to: "g")
            }
            await #expect(throws: Store.Refusal.duplicatePath("p", lines(3, 2, "a.test/e", "a.test/d"))) {
                try await fixture.add([Wanted("c"), Wanted("d", path: "p"), Wanted("e", path: "p")], to: "g")
            }
            try await fixture.check()
            #expect(try await fixture.store.tasks(of: "g", state: nil, after: nil, limit: 9).map(\.key) == ["a"])
        }
    }

    @Test(arguments: [1, 200])
    func aFileThatAnotherLineNeedsAsADirectoryIsRefused(others: Int) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            // Names that sort between a path and the paths below it.
            let harmless =
                Wanted.many(others, "x/") + ["a!", "a-b", "ab", "b/a"].map { Wanted($0) } + [Wanted("c", path: "a b/c")]
            await #expect(throws: Store.Refusal.nestedPath("a", lines(2, 1, "a.test/a/b/c", "a.test/a"))) {
                try await fixture.add([Wanted("a"), Wanted("a/b/c")] + harmless, to: "g")
            }
            let (first, last) = (Int64(harmless.count) + 1, Int64(harmless.count) + 3)
            await #expect(throws: Store.Refusal.nestedPath("a", lines(last, first, "a.test/a", "a.test/a/b"))) {
                try await fixture.add(harmless + [Wanted("a/b"), Wanted("a/c/d"), Wanted("a")], to: "g")
            }
            try await fixture.check()
            #expect(try await fixture.store.group("g").tasks.values.reduce(0, +) == 0, "nothing is stored")
            let count = Int64(harmless.count + 2)
            #expect(
                try await fixture.add(harmless + [Wanted("a"), Wanted("a")] + [Wanted("c/a/b")], to: "g").added == count
            )
            try await fixture.check()
        }
    }

    @Test func sealedAndFinishedGroupsRefuseNewKeys() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a")], isSealed: true)
            await #expect(throws: Store.Refusal.groupSealed(newKey: "b", line: 2)) {
                try await fixture.add([Wanted("a"), Wanted("b")], to: "g")
            }
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            await #expect(throws: Store.Refusal.groupFinished(newKey: "b", line: 1)) {
                try await fixture.add([Wanted("b")], to: "g")
            }
            await #expect(throws: Store.Refusal.noSuchGroup("h")) { try await fixture.add([Wanted("b")], to: "h") }
            try await fixture.check()
        }
    }

    @Test func destinationOfALiveTaskIsTaken() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a", size: 5, path: "file")])
            try await fixture.makeGroup("other", [Wanted("a", path: "file")], sink: "other")
            try await fixture.makeGroup("h")
            await #expect(throws: Store.Refusal.destinationTaken("file", line: 2, by: "g")) {
                try await fixture.add([Wanted("x"), Wanted("y", path: "file")], to: "h")
            }
            try await fixture.check()
            var worker = try await fixture.makeWorker()
            try await worker.finishEverything()
            #expect(try await fixture.add([Wanted("y", path: "file")], to: "h").added == 1)
            try await fixture.check()
        }
    }

    @Test func creationIsDoneOncePerRequest() async throws {
        try await StoreFixture.run { fixture in
            func create(_ key: String?, _ tasks: [Wanted]) async throws -> GroupRecord {
                try await fixture.serving(key) {
                    var creation = GroupCreation(name: "g", sink: "sink")
                    creation.metadata = "{\"a\": 1}"
                    creation.isSealed = true
                    return try await fixture.store.createGroup(creation, upload: try await fixture.stage(tasks))
                }
            }
            let first = try await create("key", Wanted.many(2))
            #expect(first.state == .sealed && first.tasks[.queued] == 2)
            #expect(try await create("key", Wanted.many(2)).id == first.id)
            await #expect(throws: Store.Refusal.groupExists("g")) { _ = try await create("other", []) }
            await #expect(throws: Store.Refusal.groupExists("g")) { _ = try await create(nil, []) }
            try await fixture.check()
        }
    }

    /// The same holds for an upload that was written as it arrived, and whatever was added meanwhile.
    @Test(arguments: [false, true])
    func repeatedAdditionGetsTheAnswerOfTheFirst(isWritten: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            func add(_ key: String?) async throws -> Addition {
                let upload = try await fixture.stage(Wanted.many(2), isWritten: isWritten)
                return try await fixture.serving(key) { try await fixture.store.addTasks(upload, to: "g") }
            }
            for _ in 1...2 { #expect(try await add("key") == Addition(added: 2, existing: 0)) }
            for key in [nil, "other"] { #expect(try await add(key) == Addition(added: 0, existing: 2)) }
            #expect(try await add("key") == Addition(added: 2, existing: 0))
            #expect(try await fixture.count(of: "staged_tasks") == 0)
            try await fixture.check()
        }
    }

    @Test func refusedCreationStoresNothing() async throws {
        try await StoreFixture.run { fixture in
            await #expect(throws: Store.Refusal.duplicatePath("p", lines(2, 1, "a.test/b", "a.test/a"))) {
                try await fixture.makeGroup("g", [Wanted("a", path: "p"), Wanted("b", path: "p")])
            }
            let groups = try await fixture.store.groups(state: nil, after: nil, limit: 9)
            #expect(groups.isEmpty)
        }
    }

    @Test func additionsAtOnceAddEveryKeyOnce() async throws {
        try await StoreFixture.run(connections: 8) { fixture in
            try await fixture.makeGroup("g")
            let added = try await withThrowingTaskGroup(of: Int64.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let tasks = (0..<40).map {
                            Wanted("t\($0 + number * 5)", origins: ["o\($0 % 5)", "o\($0 % 3)"])
                        }
                        return try await fixture.add(number % 2 == 0 ? tasks : tasks.reversed(), to: "g").added
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(added == 75)
            try await fixture.check()
            let pages = try await fixture.store.tasks(of: "g", state: .queued, after: nil, limit: 50)
            let rest = try await fixture.store.tasks(of: "g", state: nil, after: pages.last?.id, limit: 50)
            #expect(pages.count == 50 && rest.count == 25)
        }
    }

    @Test func incompleteUploadAddsNoTask() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [])
            let upload = try await fixture.stage(Wanted.many(5), isWritten: true)
            try await fixture.loseStagedTasks(before: 4)
            await #expect(throws: Store.Refusal.uploadIncomplete) {
                try await fixture.store.addTasks(upload, to: "g")
            }
            #expect(try await fixture.store.group("g").tasks.values.reduce(0, +) == 0)
            try await fixture.check()
        }
    }

    /// Neither claims nor verbs wait until the tasks of a large addition are written.
    @Test func tasksAreWrittenWithoutTheLockOfTheirGroup() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            let upload = try await fixture.stage(Wanted.many(5, "new"), isWritten: true)
            var worker = try await fixture.makeWorker()
            try await fixture.pool.withTransaction { connection in
                try await fixture.place(upload, on: connection)
                #expect(try await worker.claim(9).map(\.path) == ["t"])
                #expect(try await fixture.store.seal("g").state == .sealed)
            }
        }
    }

    /// A verb applied to a group while tasks are written for it holds for these too, as if they had been added before it.
    @Test(arguments: ["pause", "seal", "remove"])
    func verbAppliedWhileTasksAreWrittenHoldsForThem(verb: String) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            let addition = try await fixture.pool.withTransaction { connection in
                // The verb holds the group's lock, and the addition waits for it with its tasks already written.
                try await fixture.apply(verb, on: connection)
                let addition = Task { try await fixture.add(Wanted.many(3, "new"), to: "g").added }
                try await eventually("the addition waits") { try await fixture.lockWaiters() == 1 }
                return addition
            }
            switch verb {
            case "seal":
                await #expect(throws: Store.Refusal.groupSealed(newKey: "new1", line: 1)) { try await addition.value }
            case "remove": await #expect(throws: Store.Refusal.noSuchGroup("")) { try await addition.value }
            default:
                #expect(try await addition.value == 3)
                #expect(try await fixture.store.group("g").tasks[.paused] == 4)
            }
            try await fixture.check()
            // The staged rows of a small addition went with its transaction.
            #expect(try await fixture.count(of: "staged_tasks") == 0)
        }
    }

    /// The statistics know only an earlier upload, as after a large one. Reading every line for every line would be 90,000 reads.
    @Test func uploadsUnknownToTheStatisticsAreNotReadQuadratically() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            _ = try await fixture.stage(Wanted.many(300, "before"), isWritten: true)
            try await fixture.run("ANALYZE staged_tasks")
            let upload = try await fixture.stage(Wanted.many(300), isWritten: true)
            let read: Int64 = try await fixture.pool.withTransaction { connection in
                try await fixture.add(upload, to: "g", on: connection)
                return try await connection.query(
                    """
                    SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS read FROM pg_stat_xact_user_tables
                    WHERE relname = 'staged_tasks'
                    """)[0].decode("read")
            }
            #expect(read > 0 && read < 10_000)
            #expect(try await fixture.store.group("g").tasks[.queued] == 300)
        }
    }
}
