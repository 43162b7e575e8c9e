import MusterCore
import MusterStore
import Testing

/// Every verb on a task in every state, by its key and for its whole group.
@Suite struct VerbTableTests {
    enum Verb: String, CaseIterable {
        case pause, resume, cancel, retry, remove, removeWithFile, seal, reopen, limit
    }

    /// The expected state of the task; `nil` if it is removed.
    static func outcome(of verb: Verb, at state: TaskState) -> TaskState? {
        switch (verb, state) {
        case (.pause, .queued), (.pause, .active), (.pause, .paused): .paused
        case (.resume, .paused), (.retry, .failed): .queued
        case (.cancel, .queued), (.cancel, .active), (.cancel, .paused), (.cancel, .finalizing): .cancelled
        case (.remove, _), (.removeWithFile, _): nil
        case (.pause, _), (.resume, _), (.cancel, _), (.retry, _), (.seal, _), (.reopen, _), (.limit, _): state
        }
    }

    @Test(arguments: TaskState.allCases)
    func everyVerbIsSafeOnATaskInState(_ state: TaskState) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            for verb in Verb.allCases {
                for isByKey in [true, false] {
                    let name = "\(verb.rawValue)-\(isByKey)"
                    try await Self.bring("\(name)/t", of: name, to: state, &worker, fixture)
                    for _ in 0..<2 {
                        try await Self.apply(verb, to: name, keys: isByKey ? ["\(name)/t"] : nil, fixture)
                        try await fixture.check("\(name) at \(state)")
                        try await Self.expect(
                            Self.outcome(of: verb, at: state), at: state, verb, name, isByKey, fixture)
                        if verb == .remove || verb == .removeWithFile { break }
                    }
                    try await Self.end(name, &worker, fixture)
                }
            }
        }
    }

    /// Makes a group of two tasks, and brings one of them into a state.
    private static func bring(
        _ key: String, of group: String, to state: TaskState, _ worker: inout TestWorker, _ fixture: StoreFixture
    ) async throws {
        try await fixture.makeGroup(group, [Wanted(key, size: 90)])
        switch state {
        case .queued: break
        case .cancelled: _ = try await fixture.store.apply(.cancel, to: group, keys: [key])
        case .active, .paused, .finalizing, .succeeded, .failed:
            let lease = try #require(try await worker.claim().first)
            try #require(lease.path == key)
            try await worker.learn(lease, size: 90)
            try await worker.progress(lease, to: 40)
            if state == .paused { _ = try await fixture.store.apply(.pause, to: group, keys: [key]) }
            if state == .finalizing { try await worker.done(lease) }
            if state == .succeeded { try await worker.finish(lease, size: 90) }
            if state == .failed { try await worker.fail(lease, .storage, at: 40) }
        }
        _ = try await fixture.add([Wanted("\(group)/other", size: 50)], to: group)
        #expect(try await fixture.store.task(key, of: group).state == state)
        try await fixture.check()
    }

    private static func apply(
        _ verb: Verb, to group: String, keys: [String]?, _ fixture: StoreFixture
    ) async throws {
        let store = fixture.store
        switch verb {
        case .pause: _ = try await store.apply(.pause, to: group, keys: keys)
        case .resume: _ = try await store.apply(.resume, to: group, keys: keys)
        case .cancel: _ = try await store.apply(.cancel, to: group, keys: keys)
        case .retry: _ = try await store.apply(.retry, to: group, keys: keys)
        case .remove: try await store.remove(group, keys: keys, deletingFiles: false)
        case .removeWithFile: try await store.remove(group, keys: keys, deletingFiles: true)
        case .seal: _ = try await store.seal(group)
        case .reopen: _ = try await store.reopen(group)
        case .limit: _ = try await store.change(group, GroupChange(priority: 3, maxConnections: .set(1)))
        }
    }

    private static func expect(
        _ wanted: TaskState?, at state: TaskState, _ verb: Verb, _ name: String, _ isByKey: Bool,
        _ fixture: StoreFixture
    ) async throws {
        let group = try await fixture.group(name)
        let tasks = try await group == nil ? [] : fixture.store.tasks(of: name, state: nil, after: nil, limit: 9)
        #expect(tasks.first { $0.key == "\(name)/t" }?.state == wanted, "\(name) at \(state)")
        switch verb {
        case .cancel where !isByKey: #expect(group?.state == .cancelled)
        case .remove where !isByKey, .removeWithFile where !isByKey: #expect(group?.state == nil)
        case .seal: #expect(group?.state == .sealed)
        case .pause, .resume, .cancel, .retry, .remove, .removeWithFile, .reopen, .limit:
            #expect(group?.state == .open)
        }
        // Durable bytes are kept, except those of cancelled or removed tasks.
        let bytes: Int64 =
            switch wanted {
            case nil, .cancelled,
                .failed where verb == .cancel, .queued where state == .queued:
                0
            case .succeeded, .finalizing: 90
            case .queued, .active, .paused, .failed: state == .queued ? 0 : 40
            }
        #expect(group == nil || group?.bytesDone == bytes, "\(name) at \(state)")
    }

    /// After any verb the group ends once it is resumed and sealed, and a worker works.
    private static func end(_ name: String, _ worker: inout TestWorker, _ fixture: StoreFixture) async throws {
        // Returns all leases that the worker still holds.
        try await worker.letGo()
        guard try await fixture.group(name) != nil else {
            return try await worker.finishEverything(size: 90)
        }
        _ = try await fixture.store.apply(.resume, to: name, keys: nil)
        _ = try await fixture.store.seal(name)
        try await worker.finishEverything(size: 90)
        let group = try await fixture.store.group(name)
        #expect(group.state.isTerminal && group.generation == 1, "\(name)")
        try await fixture.check("\(name) at its end")
        #expect(try await fixture.purgedVersions().isEmpty)
    }
}
