import MusterCore
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
            var creation = GroupCreation(name: "g", sink: "sink")
            creation.isSealed = true
            creation.options = #"{"netrc": "/n"}"#
            creation.policy = #"{"ifExists": "fail"}"#
            creation.resolver = #"{"url": "http://r.test/"}"#
            let group = try await fixture.store.createGroup(creation, upload: upload)
            #expect(group.policy == #"{"ifExists": "fail"}"# && group.resolver == #"{"url": "http://r.test/"}"#)
            let (task, situation) = try await fixture.store.explanation(of: "t", in: "g")
            #expect(situation.sources.count == 2 && task.deadlineAt == nil)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(lease.groupOptions == #"{"netrc": "/n"}"# && lease.taskOptions == #"{"proxy": "direct"}"#)
            #expect(lease.contentType == "application/zip")
            try await fixture.check()
        }
    }

    /// Older leases have the old token; its refusal by an origin says nothing about the new one.
    @Test func refusalOfALeaseWithOldOptionsDoesNotCount() async throws {
        try await StoreFixture.run { fixture in
            let upload = try await stage(fixture)
            var creation = GroupCreation(name: "g", sink: "sink")
            creation.isSealed = true
            creation.options = #"{"decode": true, "headers": {"T": "old"}}"#
            _ = try await fixture.store.createGroup(creation, upload: upload)
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
            func remaining() async throws -> Duration {
                let task = try await fixture.store.task("t", of: "g")
                return try #require(task.deadlineAt).since(try await fixture.store.now())
            }
            let whole = Duration.seconds(7_000)...Duration.seconds(7_200)
            #expect(try await whole.contains(remaining()))
            try await fixture.age(.addition, .deadline, by: .seconds(10_800))
            #expect(try await fixture.store.failOverdue() == 1)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await whole.contains(remaining()))
            try await fixture.check()
        }
    }
}
