import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// Progress is true, and costs the same for a group of any size.
@Suite("Progress")
struct ProgressAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    /// Makes a group of three tasks; 4 MB of the 10 MB of one of them are durable.
    private static func fetchSome(_ coordinator: RunningCoordinator) async throws {
        let tasks = (1...3).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10_000_000) }
        _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
        try await fetchFirst(coordinator)
    }

    /// Fetches 4 MB of the first lease.
    private static func fetchFirst(_ coordinator: RunningCoordinator) async throws {
        let session = try await coordinator.client.openSession(opening)
        let lease = try #require(
            try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 1)).leases.first)
        let progress = Report(lease: lease.name, kind: .progress, durable: DurablePrefix(offset: 4_000_000, crc: 1))
        _ = try await coordinator.client.sync(
            session.id,
            SyncRequest(
                sequence: 2, settled: 1, reports: [progress], held: [lease.name], receivedBytes: 4_000_000))
    }

    @Test func aGroupThatIsFetchedIsExplainedWithItsNumbers() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            try await Self.fetchSome(coordinator)
            let group = try await coordinator.client.group("g")
            #expect(group.bytes == .init(done: 4_000_000, total: 30_000_000, unknownTasks: 0))
            #expect(group.bytesPerSecond > 0 && group.etaSeconds ?? 0 > 0)
            let keys = try await coordinator.client.tasks(of: "g", state: .active).items
            #expect(keys.count == 1 && keys[0].bytesPerSecond ?? 0 > 0 && keys[0].etaSeconds ?? 0 > 0)
            let worker = try #require(try await coordinator.client.workers().items.first)
            let inHand = try #require(worker.bytes)
            #expect(inHand.done == 4_000_000 && (4_000_001...10_000_000).contains(inHand.total))
            #expect(inHand.unknownLeases == 0 && worker.bytesPerSecond > 0 && worker.etaSeconds ?? 0 > 0)
            let source = try #require(try await coordinator.client.origins().items.first)
            #expect(source.connections == 1 && source.bytes == inHand)
            let explanation = try await coordinator.client.groupExplanation(of: "g")
            #expect(explanation.waits.first?.reason == .fetching && explanation.waits.first?.tasks == 1)
            #expect(explanation.summary.hasPrefix("One task is being fetched over one connection, "))
            let origin = try #require(explanation.slowestOrigin)
            #expect(origin.key == "http://127.0.0.1:1" && origin.leases == 1 && origin.bytesLeft == 26_000_000)
            #expect(try #require(explanation.eta.seconds) > 0)
            #expect(explanation.criticalPath.contains { $0.contains("by the worker w, ") })
            let paused = try await coordinator.client.apply(.pause, to: "g", keys: ["3"])
            #expect(paused.tasks.active == 1 && paused.tasks.paused == 1 && paused.etaSeconds == nil)
            #expect(paused.bytesPerSecond > 0)
            let rest = try await coordinator.client.apply(.pause, to: "g")
            #expect(rest.tasks.paused == 3 && rest.bytesPerSecond == 0, "nothing may come any more")
        }
    }

    /// Under a rate that both tasks share, the slow task gets what the other one leaves.
    @Test func noTaskTakesLongerThanItsGroup() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            let client = coordinator.client
            let tasks = (1...2).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10_000_000) }
            _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
            let session = try await client.openSession(Self.opening)
            let leases = try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 2)).leases
            try #require(leases.count == 2)
            let reports = zip(leases, [4_000_000, 1_000]).map {
                Report(lease: $0.name, kind: .progress, durable: DurablePrefix(offset: $1, crc: 1))
            }
            _ = try await client.sync(
                session.id,
                SyncRequest(
                    sequence: 2, settled: 1, reports: reports, held: leases.map(\.name), receivedBytes: 4_001_000))
            _ = try await client.change(
                group: "g", GroupPatch(limits: GroupLimitsPatch(bytesPerSecond: .set(1_000_000))))
            let shown = try await client.tasks(of: "g").items.compactMap(\.etaSeconds)
            let explained = try await client.explanation(of: "2", in: "g").task.etaSeconds
            let whole = try #require(try await client.group("g").etaSeconds)
            #expect(shown.count == 2 && (shown + [explained ?? 0]).allSatisfy { $0 <= whole }, "\(shown), \(whole)")
        }
    }

    /// One of the group's origins is paused for an hour; the group's own row doesn't show that.
    @Test func aStatusAndAnExplanationGiveTheSameEstimate() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            let client = coordinator.client
            _ = try await client.setOrigin("http://127.0.0.1:2", OriginPatch(pauseFor: "1h"))
            let tasks = (1...3).map {
                TaskRequest(urls: ["http://127.0.0.1:\($0 % 2 + 1)/\($0)"], size: 10_000_000)
            }
            let group = try await client.createGroup(GroupRequest(name: "g", tasks: tasks))
            try await Self.fetchFirst(coordinator)
            #expect(try await client.group("g").etaSeconds == nil, "it is open")
            let hour: ClosedRange<Int64> = 3_400...3_600
            #expect(hour.contains(try #require(try await client.apply(.seal, to: "g").etaSeconds)))
            #expect(hour.contains(try #require(try await client.group("g").etaSeconds)))
            #expect(hour.contains(try #require(try await client.groups(limit: 10).items.first?.etaSeconds)))
            let explanation = try await client.groupExplanation(of: "g")
            #expect(hour.contains(try #require(explanation.eta.seconds)))
            #expect(explanation.group.etaSeconds == explanation.eta.seconds)
            // A window that closes in half an hour.
            let minute = group.createdAt.microseconds / 60_000_000
            let window = TimeWindow(from: Self.clock(minute - 60), to: Self.clock(minute + 30), timeZone: "UTC")
            let patch = GroupPatch(limits: GroupLimitsPatch(between: .set(window)))
            #expect(try await client.change(group: "g", patch).etaSeconds == nil)
            #expect(try await client.groupExplanation(of: "g").eta.because.contains("its window closes before that"))
            #expect(try await client.group("g").etaSeconds == nil)
        }
    }

    /// The time of the day of a minute since 1970, in UTC.
    private static func clock(_ minute: Int64) -> String {
        func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(padded(minute / 60 % 24)):\(padded(minute % 60))"
    }

    @Test func aGroupThatNoWorkerFetchesHasNoEstimateAndSaysWhatHelps() async throws {
        try await RunningCoordinator.with { coordinator in
            let task = TaskRequest(urls: ["http://127.0.0.1:1/a"])
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", tasks: [task]))
            let explanation = try await coordinator.client.groupExplanation(of: "g")
            #expect(explanation.waits.map(\.reason) == [.noWorker, .unsealed])
            #expect(explanation.eta.seconds == nil && explanation.group.etaSeconds == nil)
            #expect(explanation.criticalPath.last == "it has to be sealed: muster seal g")
            await #expect { try await coordinator.client.groupExplanation(of: "h") } throws: {
                ($0 as? Problem)?.code == .groupNotFound
            }
        }
    }

    @Test func aGroupWhoseFailuresWereRemovedSaysWhatCompletesIt() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let task = TaskRequest(urls: ["http://127.0.0.1:1/a"])
            _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
            let session = try await client.openSession(Self.opening)
            let lease = try #require(
                try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 1)).leases.first)
            let failure = Report.Failure(kind: .storage, detail: "not stored", source: 0)
            let report = Report(lease: lease.name, kind: .failed, failure: failure)
            _ = try await client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, reports: [report], held: [lease.name]))
            let failed = try await client.group("g")
            #expect(failed.state == .failed && failed.notes.isEmpty)
            let rest = try await client.removeTasks(["a"], of: "g")
            #expect(rest.state == .failed && rest.notes.count == 1 && rest.notes[0].hasSuffix("muster retry g"))
            let done = try await client.apply(.retry, to: "g")
            #expect(done.state == .succeeded && done.generation == 2 && done.notes.isEmpty)
        }
    }

    /// A task whose last try failed and that is tried again is neither well nor failed: it is in trouble.
    @Test func tasksInTroubleAreCountedAndListed() async throws {
        try await RunningCoordinator.with(configure: { $0.retryBase = .seconds(60) }) { coordinator in
            let client = coordinator.client
            let tasks = (1...3).map { TaskRequest(urls: ["http://127.0.0.1:\($0)/\($0)"], size: 10_000_000) }
            #expect(
                try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks)).trouble == nil)
            let session = try await client.openSession(Self.opening)
            let answer = try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 3))
            var refused = Report.Failure(kind: .httpStatus(503), detail: "the origin answered 503", source: 0)
            refused.status = 503
            let cut = Report.Failure(kind: .network, detail: "reset", source: 0)
            let reports = zip(answer.leases, [refused, cut]).map { lease, failure in
                Report(lease: lease.name, kind: .failed, failure: failure)
            }
            #expect(reports.count == 2 && answer.leases.count == 3)
            _ = try await client.sync(
                session.id,
                SyncRequest(sequence: 2, settled: 1, reports: reports, held: answer.leases.map(\.name)))
            let troubles = try #require(try await client.group("g").trouble)
            #expect(Set(troubles) == [.init(kind: .httpStatus(503), tasks: 1), .init(kind: .network, tasks: 1)])
            #expect(try await client.groups().items.first?.trouble == nil)
            let listed = try await client.tasksInTrouble(of: "g")
            #expect(Set(listed.compactMap(\.failure?.kind)) == [.httpStatus(503), .network])
            for task in listed {
                let retry = try #require(task.retry)
                #expect(retry.number == 2 && retry.limit == 8 && (retry.inSeconds ?? 0) <= 60)
            }
            #expect(try await client.tasksInTrouble(of: "g", limit: 1).count == 1)
            let query = "/v1/groups/g/tasks?trouble=true"
            for filter in ["state=failed", "after=\(Int64.max)"] {
                let answer = try await coordinator.raw("GET", "\(query)&\(filter)")
                #expect(String(decoding: answer.body, as: UTF8.self).contains("\"items\":[]"), "\(filter)")
            }
            let all = try await client.tasks(of: "g").items
            #expect(all.count(where: { $0.retry == nil }) == 1)
        }
    }

    /// The test moves time by changing the stored timestamps, instead of waiting for ten minutes.
    @Test func aSpeedFadesToNothingWhenNothingComes() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            try await Self.fetchSome(coordinator)
            let before = try await coordinator.client.group("g")
            try await coordinator.age("groups", "rate_at", by: .seconds(8))
            try await coordinator.age("leases", "granted_at", by: .seconds(8))
            let lately = try await coordinator.client.group("g")
            #expect(lately.bytesPerSecond > 0 && lately.bytesPerSecond < before.bytesPerSecond * 2 / 3)
            try await coordinator.age("groups", "rate_at", by: .seconds(600))
            let moving = try await coordinator.client.tasks(of: "g", state: .active).items
            try await coordinator.age("leases", "progress_at", by: .seconds(60))
            let stalled = try await coordinator.client.tasks(of: "g", state: .active).items
            #expect(moving.map { $0.bytesPerSecond ?? 0 > 0 } == [true] && stalled.map(\.bytesPerSecond) == [0])
            #expect(moving[0].etaSeconds != nil && stalled[0].etaSeconds == nil)
            let now = try await coordinator.client.group("g")
            #expect(now.bytesPerSecond == 0 && now.etaSeconds == nil && now.tasks.active == 1)
            let explanation = try await coordinator.client.groupExplanation(of: "g")
            #expect(explanation.eta.seconds == nil && explanation.eta.because == "nothing comes now")
        }
    }

    /// Measured by the rows that PostgreSQL reads, not by a clock.
    @Test func theStateOfAGroupCostsTheSameForEverySize() async throws {
        let database = try await TestPostgres.shared().makeDatabase()
        _ = try await SchemaMigration.migrate(database: database.conninfo)
        let pool = PostgresPool(PostgresConfiguration(database.conninfo), limits: .init(maximumConnections: 1))
        let store = Store(pool: pool)
        try await Self.fill(store, "small", 10)
        try await Self.fill(store, "large", 20_000)
        try await Self.fetch(store, 8)
        _ = try await pool.query("ANALYZE")
        var costs: [String: [Int64]] = [:]
        for name in ["small", "large"] {
            costs[name] = [
                try await Self.rows(pool) { _ = try await store.group(name) },
                try await Self.rows(pool) { _ = try await store.groups(state: nil, after: nil, limit: 100) },
                try await Self.rows(pool) { _ = try await store.explanation(of: name) },
                try await Self.rows(pool) {
                    let shown = try await GroupProgress(store: store, own: OwnProcess()).document(
                        try await store.group(name))
                    #expect(shown.etaSeconds != nil && shown.tasks.active > 0, "that is what costs something")
                },
                try await Self.rows(pool) {
                    _ = try await store.tasks(of: name, state: nil, after: nil, limit: 10)
                },
            ]
        }
        let fleet = try await Self.rows(pool) {
            let workers = try await store.workers(after: nil, limit: 100)
            let origins = try await store.origins(after: nil, limit: 100)
            #expect(workers.map(\.inHand.fetching) == [8] && origins.count == 4)
        }
        await pool.shutdown()
        let small = try #require(costs["small"])
        let large = try #require(costs["large"])
        // Whether bytes come now is looked at more closely once the last ones are a second old.
        #expect(large[0] <= small[0] + 20 && large[1] <= small[1] + 20, "\(costs)")
        // Chunks are counted up to a hundred, per kind and for each of the four origins, with the task of each; leases come on top.
        #expect(large[2] <= small[2] + 1_000 && large[3] <= small[3] + 1_000, "\(costs)")
        #expect(large[4] <= small[4] + 200, "\(costs)")
        // The lanes of each origin are found by one probe each, which reads the whole of so small a table.
        #expect(fleet > 0 && fleet < 400, "\(fleet)")
        #expect(small.allSatisfy { $0 > 0 }, "what is read is counted at all")
    }

    private static func fill(_ store: Store, _ name: String, _ count: Int) async throws {
        var creation = GroupCreation(name: name, sink: "default")
        creation.isSealed = true
        var upload = try await store.beginUpload()
        let tasks = try (1...count).map { number in
            StagedTask(
                line: Int64(number),
                task: try TaskRequest(
                    urls: ["http://127.0.0.1:\(number % 4 + 1)/\(number)"], path: "\(name)/\(number)", size: 1_000_000
                ).validated(),
                digests: nil, metadata: nil, headers: nil)
        }
        for start in stride(from: 0, to: count, by: 1_000) {
            try await store.stage(Array(tasks[start..<min(start + 1_000, count)]), upload: &upload)
        }
        _ = try await store.createGroup(creation, upload: upload)
    }

    /// Leases some chunks of all groups, and fetches most of each: at a lower speed, or on a busier machine, the end of the large group
    /// would be more than a year away, and it would have no estimate.
    private static func fetch(_ store: Store, _ count: Int32) async throws {
        let session = try await store.openSession(
            SessionOpening(worker: "w", version: "test", labels: "{}", slots: count, sinks: ["default"]),
            timeToLive: .seconds(600)
        ).id
        _ = try await store.renew(
            SessionRenewal(session: session, sequence: 1, sinkStatus: "[]", receivedBytes: 0),
            settled: 0, held: [], timeToLive: .seconds(600))
        let leases = try await store.claim([ClaimRequest(session: session, sequence: 1, room: count)])
        let reports = leases.map {
            LeaseReport.Progress(session: session, lease: $0.name, durable: DurablePrefix(offset: 900_000, crc: 1))
        }
        #expect(try await store.report(progress: reports).isEmpty && reports.count == Int(count))
    }

    /// Counts the rows read from the tables that grow with a group. There is a single connection, which flushes its own counters first.
    private static func rows(_ pool: PostgresPool, _ body: () async throws -> Void) async throws -> Int64 {
        let before = try await read(pool)
        try await body()
        return try await read(pool) - before
    }

    private static func read(_ pool: PostgresPool) async throws -> Int64 {
        _ = try await pool.query("SELECT pg_stat_force_next_flush()::text")
        return try await pool.query(
            """
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS count FROM pg_stat_user_tables
            WHERE relname IN ('groups', 'tasks', 'sources', 'ready_chunks', 'leases', 'done_chunks', 'attempts', 'events')
            """)[0].decode("count")
    }
}
