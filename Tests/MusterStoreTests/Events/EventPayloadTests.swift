import FoundationEssentials
import MusterCore
import MusterStore
import Testing

/// Real verbs produce every type of event, and its payload is decoded strictly.
@Suite("Facts of events") struct EventPayloadTests {
    private func payloads(_ fixture: StoreFixture) async throws -> [EventPayload] {
        try await fixture.events().map { event in
            let text = #"{"type": "\#(event.type)", "data": \#(event.data)}"#
            return try JSONDecoder().decode(EventPayload.self, from: Data(text.utf8))
        }
    }

    private func group(
        _ name: String, _ tasks: [Wanted] = [], metadata: String? = nil, isSealed: Bool = true,
        on fixture: StoreFixture
    ) async throws {
        var creation = GroupCreation(name: name, sink: "sink")
        creation.metadata = metadata
        creation.isSealed = isSealed
        creation.deadline = .seconds(60)
        creation.reuses = false
        _ = try await fixture.store.createGroup(creation, upload: try await fixture.stage(tasks))
    }

    @Test func everyEventHasThePayloadOfItsType() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            // Two tasks succeed, and with them their group.
            try await group("good", [Wanted("a"), Wanted("b")], metadata: #"{"n": [1, null]}"#, on: fixture)
            for lease in try await worker.claim(2) {
                let isReused = lease.key == "b"
                try await worker.store.report(finished: [
                    .init(
                        session: worker.session, lease: lease.name, size: 80, digests: #"{"md5": "00"}"#,
                        representation: nil, effectiveURL: nil, crc: 9, reusedFrom: isReused ? "x/a" : nil)
                ])
            }
            // The content changes, and is then missing.
            try await group("bad", [Wanted("c")], on: fixture)
            let old = try #require(try await worker.claimWork().first)
            try await worker.learn(old, size: 250)
            try await worker.fail(old, .changed)
            try await fixture.passBackoffs()
            try await worker.refuse(try #require(try await worker.claimWork().first), 410)
            // A failure without an answer of an origin; the group is removed later.
            try await group("poor", [Wanted("d")], on: fixture)
            try await worker.fail(try #require(try await worker.claimWork().first), .storage)
            try await group("unwanted", [Wanted("e")], on: fixture)
            _ = try await fixture.store.apply(.cancel, to: "unwanted", keys: nil)
            try await fixture.store.remove("poor", keys: nil, deletingFiles: false)
            try await group("late", [Wanted("f")], isSealed: false, on: fixture)
            try await fixture.passDeadline(of: "late", .continue)
            _ = try await fixture.store.sweepGroups()

            let payloads = try await payloads(fixture)
            #expect(try await Set(fixture.events().map(\.type)) == Set(EventType.allCases.map(\.rawValue)))

            let successes = payloads.compactMap { if case .taskSucceeded(let facts) = $0 { facts } else { nil } }
            #expect(successes.map(\.key) == ["a", "b"] && successes.map(\.reusedFrom) == [nil, "x/a"])
            #expect(successes.allSatisfy { $0.size == 80 && $0.digests == ["md5": "00"] && $0.metadata == .null })
            let ends = payloads.compactMap { if case .groupEnded(let facts) = $0 { facts } else { nil } }
            #expect(ends.map(\.group) == ["good", "bad", "poor", "unwanted"])
            #expect(ends.map(\.state) == [.succeeded, .failed, .failed, .cancelled])
            #expect(ends.first?.metadata == .object(["n": .array([.integer(1), .null])]))
            #expect(ends.first?.tasks.succeeded == 2 && ends.first?.bytes.done == 160 && ends.first?.sink == "sink")
            #expect(ends.last?.tasks.cancelled == 1 && ends.last?.tasks.total == 0)
            let restarts = payloads.compactMap { if case .taskChanged(let facts) = $0 { facts } else { nil } }
            #expect(restarts.map(\.contentVersion) == [2] && restarts.first?.reason.kind == .changed)
            let failures = payloads.compactMap { if case .taskFailed(let facts) = $0 { facts.failure } else { nil } }
            #expect(failures.map(\.kind) == [.notFound, .storage] && failures.map(\.status) == [410, nil])
            #expect(failures[0].source == "http://a.test/c" && failures[0].requestID?.hasPrefix("request-") == true)
            let delays = payloads.compactMap { if case .groupOverdue(let facts) = $0 { facts } else { nil } }
            #expect(delays.map(\.remaining) == [1] && delays.first?.state == .open)
            let removals = payloads.compactMap { if case .groupRemoved(let facts) = $0 { facts } else { nil } }
            #expect(removals.map(\.group) == ["poor"] && removals.first?.state == .failed)
            #expect(payloads.compactMap(\.key) == ["a", "b", "c", "c", "d", "e"])
        }
    }
}
