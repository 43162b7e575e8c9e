import MusterCore
import MusterStore
import Testing

/// Tasks that request the same at the same time: one is fetched, and the others wait for its file, but never for ever (I14).
@Suite struct RepeatTests {
    /// A group with tasks for `http://a.test/same`, unless `urls` has another URL for the key.
    private func makeGroup(
        _ name: String, _ keys: [String] = ["t"], on fixture: StoreFixture, priority: Int32 = 0, reuses: Bool = true,
        rate: Int64? = nil, urls: [String: String] = [:]
    ) async throws {
        var upload = try await fixture.store.beginUpload()
        let staged = try keys.enumerated().map { index, key in
            let url = urls[key] ?? "http://a.test/same"
            let task = try TaskSpecification(urls: [url], key: key, path: "\(name)/\(key)", size: nil, priority: 0)
            return StagedTask(line: Int64(index + 1), task: task, digests: nil, metadata: nil, headers: nil)
        }
        try await fixture.store.stage(staged, upload: &upload)
        var creation = GroupCreation(name: name, sink: "sink")
        creation.priority = priority
        creation.isSealed = true
        creation.bytesPerSecond = rate
        creation.reuses = reuses
        _ = try await fixture.store.createGroup(creation, upload: upload)
    }

    private func finish(_ lease: GrantedLease, _ worker: TestWorker, etag: String? = "\"1\"") async throws {
        try await worker.store.report(finished: [
            .init(
                session: worker.session, lease: lease.name, size: 80, digests: "{}",
                representation: Representation(size: 80, etag: etag), effectiveURL: nil, crc: 9)
        ])
    }

    /// The paths of the fetch leases (`group/key`), sorted.
    private func paths(_ leases: [GrantedLease]) -> [String] {
        leases.filter { $0.kind == .fetch }.map(\.path).sorted()
    }

    @Test func laterTaskWaitsAndReusesTheFile() async throws {
        try await StoreFixture.run { fixture in
            try await makeGroup("first", on: fixture)
            try await makeGroup("second", on: fixture)
            var worker = try await fixture.makeWorker()
            let first = try await worker.claim(8)
            try #require(paths(first) == ["first/t"])
            try await fixture.check()
            let record = try await fixture.store.explanation(of: "t", in: "second").situation
            #expect(record.awaited?.group == "first" && record.awaited?.key == "t")
            #expect(record.chunks.waiting == 1 && record.dueAt == nil)
            let putOff = try await fixture.store.explanation(of: "second").situation.putOff
            #expect(putOff.awaiting == 1 && putOff.fetching == 0 && putOff.awaited == record.awaited)
            // The task waits through sweeps and claims as long as the first one makes progress.
            _ = try await fixture.store.promoteDueChunks()
            #expect(try await fixture.store.releaseRepeats() == 0)
            #expect(try await worker.claim(8).isEmpty)
            try await finish(first[0], worker)
            #expect(try await fixture.store.releaseRepeats() == 1)
            let second = try await worker.claim(8)
            #expect(paths(second) == ["second/t"] && second[0].have?.path == "first/t")
            try await fixture.check()
        }
    }

    /// A file of several chunks counts as under way between its leases too, until it is in place.
    @Test func waitLastsUntilTheFileIsInPlace() async throws {
        try await StoreFixture.run { fixture in
            try await makeGroup("first", on: fixture)
            try await makeGroup("second", on: fixture)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim(1).first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            #expect(try await fixture.store.task("t", of: "first").state == .queued)
            // Now there is room for all, and the rest of the first task goes first.
            let rest = try await worker.claim(8)
            #expect(paths(rest) == ["first/t", "first/t"])
            #expect(try await fixture.store.releaseRepeats() == 0)
            for lease in rest { try await worker.done(lease) }
            #expect(try await fixture.store.task("t", of: "first").state == .finalizing)
            #expect(try await fixture.store.releaseRepeats() == 0)
            let finalize = try await worker.claim(8)
            #expect(finalize.map(\.kind) == [.finalize])
            #expect(try await fixture.store.releaseRepeats() == 0)
            try await worker.store.report(finished: [
                .init(
                    session: worker.session, lease: finalize[0].name, size: 250, digests: "{}", representation: nil,
                    effectiveURL: nil, crc: 9)
            ])
            #expect(try await fixture.store.releaseRepeats() == 1)
            #expect(try await worker.claim(8).map { $0.have != nil } == [true])
            try await fixture.check()
        }
    }

    /// The possible ends of the task that others wait for.
    enum End: CaseIterable, Sendable {
        case failed, paused, cancelled, removed, released, died, stalled, windowClosed
    }

    @Test(arguments: End.allCases)
    func anotherTaskIsFetchedIfTheFirstMakesNoProgress(end: End) async throws {
        try await StoreFixture.run { fixture in
            for name in ["first", "second", "third"] { try await makeGroup(name, on: fixture) }
            var worker = try await fixture.makeWorker()
            let first = try await worker.claim(8)
            try #require(paths(first) == ["first/t"])
            switch end {
            case .failed: try await worker.fail(first[0], .notFound, source: 0, status: 404)
            case .paused: _ = try await fixture.store.apply(.pause, to: "first", keys: nil)
            case .cancelled: _ = try await fixture.store.apply(.cancel, to: "first", keys: nil)
            case .removed: _ = try await fixture.store.remove("first", keys: nil, deletingFiles: false)
            case .released: try await worker.release(first[0])
            case .died: try await fixture.expire(worker.session)
            case .stalled: try await fixture.age(.progress, by: .seconds(60))
            case .windowClosed: try await fixture.setWindow(of: "first", isOpen: false)
            }
            if end == .died { worker = try await fixture.makeWorker("other") }
            if end == .failed {
                // A 404 may pass: the task is not under way, and no task waits for its next try.
                let state = try await fixture.store.task("t", of: "first").state
                #expect(state == .failed || state == .queued)
            }
            #expect(try await fixture.store.releaseRepeats() == 2)
            let next = try await worker.claim(8).filter { $0.kind == .fetch }
            // One of the other tasks is fetched, without a file to revalidate; the rest wait for it.
            #expect(next.count == 1 && next[0].have == nil, "\(next.map(\.path))")
            try await fixture.check()
            try await finish(next[0], worker)
            #expect(try await fixture.store.releaseRepeats() >= 1)
            // A task whose session died fetches without reuse: the file may have caused the death.
            let rest = try await worker.claim(8).filter { $0.kind == .fetch }
            #expect(rest.allSatisfy { $0.have != nil || end == .died && $0.path == "first/t" })
            try await fixture.check()
        }
    }

    /// Files of an origin that states no validator can't be revalidated: the other tasks must not wait for each other in turn.
    @Test func taskThatWaitedForAnUnusableFileDoesNotWaitAgain() async throws {
        try await StoreFixture.run { fixture in
            for name in ["first", "second", "third"] { try await makeGroup(name, on: fixture) }
            var worker = try await fixture.makeWorker()
            let first = try await worker.claim(8)
            try #require(paths(first) == ["first/t"])
            try await finish(first[0], worker, etag: nil)
            #expect(try await fixture.store.releaseRepeats() == 2)
            #expect(try await paths(worker.claim(8)) == ["second/t", "third/t"])
            try await fixture.check()
        }
    }

    @Test func repeatsDoNotBlockTasksBehindThem() async throws {
        try await StoreFixture.run { fixture in
            try await makeGroup("g", ["a", "b", "c", "d"], on: fixture, urls: ["d": "http://a.test/other"])
            var worker = try await fixture.makeWorker()
            #expect(try await paths(worker.claim(2)) == ["g/a", "g/d"])
            try await fixture.check()
        }
    }

    @Test func noTaskWaitsIfThatCouldTakeLonger() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("idle", on: fixture, priority: -1)
            #expect(try await worker.claim(1).count == 1)
            try await makeGroup("urgent", on: fixture)
            #expect(try await paths(worker.claim(8)) == ["urgent/t"])
            try await makeGroup("own", on: fixture, reuses: false)
            #expect(try await paths(worker.claim(8)) == ["own/t"])
            try await makeGroup("later", on: fixture)
            #expect(try await paths(worker.claim(8)) == [])
            try await fixture.limitGroups("urgent", to: 1_000)
            #expect(try await fixture.store.releaseRepeats() == 0)
            try await makeGroup("last", on: fixture)
            #expect(try await paths(worker.claim(8)) == ["last/t"])
            try await fixture.check()
        }
    }

    @Test func waitingTaskCanBePausedAndCancelled() async throws {
        try await StoreFixture.run { fixture in
            for name in ["first", "second", "third"] { try await makeGroup(name, on: fixture) }
            var worker = try await fixture.makeWorker()
            let first = try await worker.claim(8)
            _ = try await fixture.store.apply(.pause, to: "second", keys: nil)
            _ = try await fixture.store.apply(.cancel, to: "third", keys: nil)
            #expect(try await fixture.store.group("third").state == .cancelled)
            try await fixture.check()
            _ = try await fixture.store.apply(.resume, to: "second", keys: nil)
            try await fixture.check()
            #expect(try await worker.claim(8).filter { $0.kind == .fetch }.isEmpty)
            try await finish(first[0], worker)
            #expect(try await fixture.store.releaseRepeats() == 1)
            #expect(try await paths(worker.claim(8)) == ["second/t"])
            try await fixture.check()
        }
    }
}
