import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Fetch options of groups and tasks.
@Suite struct OptionTests {
    /// Stages one task.
    private func stage(
        _ fixture: StoreFixture, contentType: String? = nil, deadline: String? = nil, options: String? = nil
    ) async throws -> Upload {
        var upload = try await fixture.store.beginUpload()
        let task = try TaskSpecification(
            urls: ["http://a.test/t", "http://b.test/t"], contentType: contentType, deadline: deadline)
        try await fixture.store.stage(
            [StagedTask(line: 1, task: task, digests: nil, metadata: nil, headers: nil, options: options)],
            upload: &upload)
        return upload
    }

    @Test func optionsAreKeptWithTheGroupAndTheTask() async throws {
        try await StoreFixture.run { fixture in
            let upload = try await stage(fixture, contentType: "application/zip", options: #"{"proxy": "direct"}"#)
            _ = try await fixture.store.createGroup(
                GroupCreation(
                    name: "g", sink: "sink", priority: 0, weight: 1, maxConnections: nil, metadata: nil, isSealed: true,
                    options: #"{"netrc": "/n"}"#, policy: #"{"ifExists": "fail"}"#,
                    resolver: #"{"url": "http://r.test/"}"#), upload: upload)
            let group: String = try await fixture.value(
                "SELECT concat_ws(' ', fetch_options, policy, resolver) FROM groups")
            #expect(group == #"{"netrc": "/n"} {"ifExists": "fail"} {"url": "http://r.test/"}"#)
            let task: String = try await fixture.value(
                "SELECT concat_ws(' ', fetch_options, content_type, mirrors, deadline_at) FROM tasks")
            #expect(task == #"{"proxy": "direct"} application/zip 2"#)
            try await fixture.check()
        }
    }

    /// Older leases have the old token; its refusal by an origin says nothing about the new one.
    @Test func refusalOfALeaseWithOldOptionsDoesNotCount() async throws {
        try await StoreFixture.run { fixture in
            let upload = try await stage(fixture)
            _ = try await fixture.store.createGroup(
                GroupCreation(
                    name: "g", sink: "sink", priority: 0, weight: 1, maxConnections: nil, metadata: nil, isSealed: true,
                    options: #"{"decode": true, "headers": {"T": "old"}}"#), upload: upload)
            var worker = try await fixture.makeWorker()
            for token in ["new", "newest"] {
                let lease = try #require(try await worker.claim(1).first)
                _ = try await fixture.store.change("g", GroupChange(options: .set(#"{"headers": {"T": "\#(token)"}}"#)))
                try await worker.refuse(lease, 401)
                try await fixture.check()
                #expect(try await fixture.store.task("t", of: "g").attempts == 0)
            }
            // A refusal with the new options counts; the `decode` option can't be changed.
            for _ in 0..<2 {
                let lease = try #require(try await worker.claim(1).first)
                #expect(lease.groupOptions == #"{"decode": true, "headers": {"T": "newest"}}"#)
                try await worker.refuse(lease, 401)
            }
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            try await fixture.check()
        }
    }

    @Test func timeLimitRunsFromTheAdditionAndAgainFromARetry() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            _ = try await fixture.store.addTasks(try await stage(fixture, deadline: "2h"), to: "g")
            func remaining() async throws -> Double {
                try await fixture.value(
                    "SELECT extract(epoch FROM deadline_at - statement_timestamp())::double precision FROM tasks")
            }
            #expect(try await (7_000...7_200).contains(remaining()))
            try await fixture.run(
                "UPDATE tasks SET deadline_at = deadline_at - interval '3 h', created_at = created_at - interval '3 h'")
            try await fixture.run("SELECT fail_task(id, 'deadline', 'too late')::text FROM tasks")
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await (7_000...7_200).contains(remaining()))
            try await fixture.check()
        }
    }
}
