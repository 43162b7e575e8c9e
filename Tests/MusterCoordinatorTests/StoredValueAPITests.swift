import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import Testing

@testable import MusterCoordinator

/// A stored value that can't be read is an error that names the place but not the value. No answer simply leaves it out.
@Suite("Stored values that can't be read") struct StoredValueAPITests {
    private static let secret = "correct horse"

    private static func request(_ name: String) -> GroupRequest {
        var group = GroupRequest(
            name: name, sealed: true,
            tasks: [TaskRequest(urls: ["https://a.example/\(name)"], key: "f", path: "\(name)/f")])
        group.fetch = FetchOptions()
        group.fetch?.headers = ["X-Key": Secret(secret)]
        return group
    }

    /// A column, a value that is invalid there, and the place that the error names.
    struct Breakage: Sendable, CustomTestStringConvertible {
        var table: String
        var column: String
        var value: String
        var place: String

        var testDescription: String { "\(table).\(column)" }
    }

    static let terms = [
        Breakage(
            table: "groups", column: "fetch_options",
            value: #"{"headers": {"X-Key": 17}, "cookies": {"a": "\#(secret)"}}"#,
            place: "/headers/X-Key"),
        Breakage(
            table: "tasks", column: "fetch_options", value: #"{"unheardOf": "\#(secret)"}"#, place: "/unheardOf"),
        Breakage(table: "tasks", column: "expected_digests", value: #"{"md5": 5}"#, place: "/md5"),
        Breakage(table: "sources", column: "headers", value: #"["\#(secret)"]"#, place: "all of it"),
        Breakage(table: "sources", column: "fresh_headers", value: #"{"A": ["\#(secret)"]}"#, place: "/A"),
        Breakage(table: "groups", column: "policy", value: #"{"names": "\#(secret)"}"#, place: "/names"),
        Breakage(table: "sources", column: "fresh_url", value: "\(secret)", place: "it is no URL"),
    ]

    @Test(arguments: terms) func leaseWhoseTermsCannotBeReadFailsAlone(_ breakage: Breakage) async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(Self.request("bad"))
            try await coordinator.set(breakage.table, breakage.column, to: breakage.value)
            _ = try await coordinator.client.createGroup(Self.request("good"))
            try await coordinator.withDatabase(connections: 2) { pool in
                let handed = try await Self.handOut(pool)
                #expect(handed.map(\.group) == ["good"])
                #expect(handed.first?.options?.headers == ["X-Key": Secret(Self.secret)])
            }
            // Reading the task's document needs its digests too, so they are made valid again.
            try await coordinator.set("tasks", "expected_digests", to: nil)
            let group = try await coordinator.raw("GET", "/v1/groups/bad/tasks/f")
            let text = String(decoding: group.body, as: UTF8.self)
            #expect(!text.contains(Self.secret))
            let failure = try #require(try await coordinator.client.task("f", of: "bad").failure)
            #expect(failure.kind == .unreadable)
            #expect(failure.detail.hasPrefix("\(breakage.table).\(breakage.column) of "), "\(failure.detail)")
            #expect(failure.detail.contains(breakage.place), "\(failure.detail)")
            #expect(!failure.detail.contains(Self.secret))
        }
    }

    /// Claims everything, and hands it out as a sync does.
    private static func handOut(_ pool: PostgresPool) async throws -> [LeaseDocument] {
        let store = Store(pool: pool)
        let session = try await store.openSession(
            SessionOpening(worker: "w", version: "1", labels: "{}", slots: 8, sinks: ["default"]),
            timeToLive: .seconds(60)
        ).id
        _ = try await store.renew(
            SessionRenewal(session: session, sequence: 1, sinkStatus: "[]", receivedBytes: 0),
            settled: 0, held: [], timeToLive: .seconds(60))
        let leases = try await store.claim([ClaimRequest(session: session, sequence: 1, room: 8)])
        #expect(leases.count == 2)
        let handout = LeaseHandout(
            store: store, metrics: CoordinatorMetrics(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return await handout.documents(of: leases)
    }

    static let shown: [(table: String, column: String, value: String, path: String)] = [
        ("groups", "policy", #"{"names": "\#(secret)"}"#, "/v1/groups/g"),
        ("groups", "policy", #"{"names": "\#(secret)"}"#, "/v1/groups"),
        ("groups", "resolver", #"{"url": 5}"#, "/v1/groups/g/explanation"),
        ("tasks", "digests", #"{"md5": ["\#(secret)"]}"#, "/v1/groups/g/tasks"),
        ("tasks", "digests", #"{"md5": ["\#(secret)"]}"#, "/v1/groups/g/tasks/f/explanation"),
        ("sessions", "labels", #"{"a": 5}"#, "/v1/workers"),
        ("sessions", "sink_status", #"[{"name": "default", "parked": "\#(secret)"}]"#, "/v1/workers"),
    ]

    @Test(arguments: [#"["\#(secret)"]"#, #"[{"from": "\#(secret)", "to": "06:00", "bytesPerSecond": 1}]"#])
    func hoursThatCannotBeReadKeepNoGroupFromBeingShown(_ timetable: String) async throws {
        try await RunningCoordinator.with { coordinator in
            for name in ["bad", "good"] { _ = try await coordinator.client.createGroup(Self.request(name)) }
            try await coordinator.set("groups", "timetable", to: timetable, of: "bad")
            let page = try await coordinator.client.groups()
            #expect(page.items.map(\.name).sorted() == ["bad", "good"])
            let bad = try await coordinator.client.group("bad")
            #expect(bad.limits.timetable == nil && !bad.notes.joined().contains(Self.secret))
            #expect(bad.notes.contains { $0.contains("its hours can't be") })
            #expect(try await coordinator.raw("GET", "/v1/groups/bad/explanation").status == 200)
        }
    }

    @Test(arguments: shown.indices) func documentThatCannotBeReadIsNoAnswer(_ index: Int) async throws {
        let one = Self.shown[index]
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(Self.request("g"))
            _ = try await coordinator.client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
            #expect(try await coordinator.raw("GET", one.path).status == 200)
            try await coordinator.set(one.table, one.column, to: one.value)
            let answer = try await coordinator.raw("GET", one.path)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 500 && text.contains("internal") && !text.contains(Self.secret), "\(text)")
        }
    }
}
