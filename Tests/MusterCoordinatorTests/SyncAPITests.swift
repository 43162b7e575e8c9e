import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// The lease protocol, spoken by hand (`docs/protocol.md`).
@Suite("Syncs over HTTP")
struct SyncAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    private static func fill(_ coordinator: RunningCoordinator, _ count: Int = 1, size: Int64? = 10) async throws {
        let tasks = (1...count).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: size) }
        _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
    }

    private static func finished(_ lease: LeaseDocument) -> Report {
        Report(
            lease: lease.name, kind: .done, durable: DurablePrefix(offset: 10, crc: 7),
            finished: .init(size: 10, digests: [:]))
    }

    @Test func aWaitingSyncIsAnsweredWhenWorkComes() async throws {
        try await RunningCoordinator.with { coordinator in
            let session = try await coordinator.client.openSession(Self.opening)
            async let polled = coordinator.client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, waitMilliseconds: 5_000))
            try await Self.fill(coordinator)
            let leases = try await polled.leases
            #expect(
                leases.map(\.kind) == [.fetch] && leases[0].path == "1" && leases[0].start == 0 && leases[0].end == 10)
        }
    }

    /// Otherwise the files of one group would end up in two places (I8).
    @Test func aSinkKeepsItsDirectoryUntilItsOperatorReplacesItAndNoWorkerUsesIt() async throws {
        @Sendable func opening(_ name: String, _ mark: String?, replaced: [String]? = nil) -> SessionRequest {
            var request = SessionRequest(name: name, sinks: ["other", "default"], slots: 4, version: "test")
            request.marks = mark.map { ["default": $0, "other": "the same"] }
            request.replaced = replaced
            return request
        }
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let silent = try await client.openSession(opening("c", nil))
            #expect(silent.marks == [:], "no worker has reached the sinks yet")
            let first = try await client.openSession(opening("a", "one"))
            #expect(first.marks == ["default": "one", "other": "the same"])
            // No group uses the sink, so its directory may be replaced, but not while workers have the old one.
            let problem = await #expect(throws: Problem.self) { try await client.openSession(opening("b", "two")) }
            #expect(problem?.code == .conflict && problem?.detail.contains("worker \"c\"") == true, "\(problem as Any)")
            #expect(problem?.pointer == "/sinks/1", "a worker goes on without this one")
            for session in [first, silent] { try await client.closeSession(session.id) }
            let second = try await client.openSession(opening("b", "two"))
            #expect(second.marks?["default"] == "two")

            try await Self.fill(coordinator)
            let stranger = try await client.openSession(opening("d", "three"))
            #expect(stranger.marks?["default"] == "two", "its session begins in no other directory")
            try await client.closeSession(stranger.id)
            let replaced = opening("d", "three", replaced: ["default"])
            await #expect(throws: Problem.self) { try await client.openSession(replaced) }
            try await client.closeSession(second.id)
            let name = try await client.groups().items[0].name
            try await coordinator.set("groups", "succeeded", to: "1")
            let begun = await #expect(throws: Problem.self) { try await client.openSession(replaced) }
            #expect(begun?.code == .conflict && begun?.detail.contains("group \"\(name)\"") == true, "\(begun as Any)")
            try await coordinator.set("groups", "succeeded", to: "0")
            #expect(try await client.openSession(replaced).marks?["default"] == "three")
            #expect(try await client.openSession(opening("b", "two")).marks?["default"] == "three")
            let unknown = await #expect(throws: Problem.self) {
                try await client.openSession(opening("e", "one", replaced: ["nowhere"]))
            }
            #expect(unknown?.code == .invalidRequest)
        }
    }

    @Test func newsSupersedeAPollWithoutWaitingForIt() async throws {
        try await RunningCoordinator.with { coordinator in
            let session = try await coordinator.client.openSession(Self.opening)
            async let polled = coordinator.client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, waitMilliseconds: 5_000))
            let second = try await coordinator.client.sync(session.id, SyncRequest(sequence: 2, settled: 0, room: 0))
            #expect(second.leases.isEmpty)
            // Work that comes now goes to a newer sync, never to the superseded one.
            try await Self.fill(coordinator)
            let third = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: 3, settled: 0, room: 4, waitMilliseconds: 5_000))
            #expect(third.leases.count == 1)
            #expect(try await polled.leases.isEmpty)
        }
    }

    @Test func aFinishedFileCompletesItsGroupWithExactlyOneEventHoweverOftenItIsReported() async throws {
        try await RunningCoordinator.with { coordinator in
            try await Self.fill(coordinator)
            let session = try await coordinator.client.openSession(Self.opening)
            let lease = try #require(
                try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4)).leases
                    .first)
            for sequence in Int64(2)...4 {
                let answer = try await coordinator.client.sync(
                    session.id,
                    SyncRequest(
                        sequence: sequence, settled: sequence - 1, reports: [Self.finished(lease)], held: [lease.name]))
                #expect(answer.lost == (sequence == 2 ? [] : [lease.name]))
            }
            let group = try await coordinator.client.group("g")
            #expect(group.state == .succeeded && group.tasks.succeeded == 1 && group.bytes.done == 10)
            let events = try await coordinator.client.events(after: 0, wait: .seconds(5)).items
            #expect(events.filter { $0.type == "dev.muster.group.succeeded.v1" }.count == 1)
            #expect(events.map(\.position) == Array(1...Int64(events.count)))
        }
    }

    @Test func aLeaseWhoseAnswerWasLostGoesBackUnfenced() async throws {
        try await RunningCoordinator.with { coordinator in
            try await Self.fill(coordinator)
            let session = try await coordinator.client.openSession(Self.opening)
            let lost = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4))
                .leases[0]
            // Not settled yet: the answer may still be under way.
            let early = try await coordinator.client.sync(session.id, SyncRequest(sequence: 2, settled: 0, room: 4))
            #expect(early.leases.isEmpty)
            let repaired = try await coordinator.client.sync(session.id, SyncRequest(sequence: 3, settled: 2, room: 4))
            let lease = try #require(repaired.leases.first)
            #expect(lease.chunk == lost.chunk && lease.epoch > lost.epoch && !lease.fenced)
        }
    }

    @Test func aSilentSessionLosesItsLeaseAndTheSuccessorGoesOnFromTheDurableOffset() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(2) }) { coordinator in
            try await Self.fill(coordinator)
            let dead = try await coordinator.client.openSession(Self.opening)
            let lease = try await coordinator.client.sync(dead.id, SyncRequest(sequence: 1, settled: 0, room: 1))
                .leases[0]
            let progress = Report(lease: lease.name, kind: .progress, durable: DurablePrefix(offset: 4, crc: 99))
            _ = try await coordinator.client.sync(
                dead.id, SyncRequest(sequence: 2, settled: 1, reports: [progress], held: [lease.name]))
            let successor = try await coordinator.client.openSession(Self.opening)
            var sequence: Int64 = 0
            var taken: [LeaseDocument] = []
            while taken.isEmpty, sequence < 20 {
                sequence += 1
                taken = try await coordinator.client.sync(
                    successor.id,
                    SyncRequest(sequence: sequence, settled: sequence - 1, room: 1, waitMilliseconds: 1_000)
                ).leases
            }
            let next = try #require(taken.first)
            #expect(next.chunk == lease.chunk && next.epoch > lease.epoch)
            #expect(next.resume == DurablePrefix(offset: 4, crc: 99))
            #expect(next.fenced, "the dead one may still be writing")
            await #expect {
                try await coordinator.client.sync(
                    dead.id, SyncRequest(sequence: 3, settled: 2, reports: [Self.finished(lease)], held: [lease.name]))
            } throws: { ($0 as? Problem)?.code == .sessionNotFound }
            #expect(try await coordinator.client.group("g").tasks.active == 1)
        }
    }

    @Test func sizeLearnedFromTheFirstAnswerPlansTheRestInTiles() async throws {
        // Room for all of the chunks at once.
        try await RunningCoordinator.with(configure: { $0.maxConnectionsPerOrigin = 64 }) { coordinator in
            try await Self.fill(coordinator, size: nil)
            let session = try await coordinator.client.openSession(Self.opening)
            let first = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 1))
                .leases[0]
            #expect(!first.planned && first.end == 8 << 20)
            let size: Int64 = 100 << 20
            let learned = Report(
                lease: first.name, kind: .progress, durable: DurablePrefix(offset: 0, crc: 0),
                learned: .init(
                    representation: Representation(size: size, etag: "\"e\""), rung: .chunks, effectiveURL: nil,
                    source: 0))
            var ranges = [try #require(ByteRange(start: first.start, end: first.end ?? 0))]
            let answer = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, reports: [learned], held: [first.name], room: 256))
            for lease in answer.leases {
                #expect(lease.planned && lease.representation.etag == "\"e\"")
                ranges.append(try #require(ByteRange(start: lease.start, end: lease.end ?? 0)))
            }
            #expect(ranges.count > 1 && ByteRange.tile(ranges, size: size))
            #expect(try await coordinator.client.group("g").bytes == .init(done: 0, total: size, unknownTasks: 0))
        }
    }

    @Test func aParkedSinkIsLeasedNothingAndShowsInTheStatus() async throws {
        try await RunningCoordinator.with { coordinator in
            try await Self.fill(coordinator)
            let session = try await coordinator.client.openSession(Self.opening)
            let parked = SinkStatus(name: "default", parked: .storageFull, detail: "no room")
            let answer = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, sinks: [parked]))
            #expect(answer.leases.isEmpty)
            #expect(try await coordinator.client.group("g").notes.contains { $0.contains("no room") })
            #expect(try await coordinator.client.workers().items.first?.sinks == [parked])
            let well = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, room: 4, sinks: [SinkStatus(name: "default")]))
            #expect(well.leases.count == 1)
        }
    }

    @Test func aDrainingWorkerIsToldSoAndGetsNothing() async throws {
        try await RunningCoordinator.with { coordinator in
            try await Self.fill(coordinator)
            let session = try await coordinator.client.openSession(Self.opening)
            try await coordinator.client.drain(worker: "w")
            let answer = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4))
            #expect(answer.drain && answer.leases.isEmpty)
            try await coordinator.client.closeSession(session.id)
            #expect(try await coordinator.client.workers().items.isEmpty)
        }
    }
}
