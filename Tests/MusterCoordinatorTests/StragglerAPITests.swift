import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Chunks that idle workers help with, spoken by hand (`docs/protocol.md`, `docs/adr/0012`).
@Suite("Stragglers over HTTP")
struct StragglerAPITests {
    private static let size: Int64 = 8 << 20

    private static func opening(_ name: String) -> SessionRequest {
        SessionRequest(name: name, sinks: ["default"], slots: 4, version: "test")
    }

    /// Makes a file of two chunks. `holder` holds the second one and has no bytes of it; the leases seem to have begun a minute ago.
    private static func straggle(
        _ coordinator: RunningCoordinator, _ holder: SessionDocument
    ) async throws -> LeaseDocument {
        let task = TaskRequest(urls: ["http://127.0.0.1:1/f"], size: 2 * size)
        _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
        let first = try #require(
            try await coordinator.client.sync(holder.id, SyncRequest(sequence: 1, settled: 0, room: 1)).leases.first)
        let learned = Report(
            lease: first.name, kind: .progress, durable: DurablePrefix(offset: 0, crc: 0),
            learned: .init(
                representation: Representation(size: 2 * size, etag: "\"e\""), rung: .chunks, effectiveURL: nil,
                source: 0))
        let done = Report(lease: first.name, kind: .done, durable: DurablePrefix(offset: size, crc: 7))
        let second = try #require(
            try await coordinator.client.sync(
                holder.id, SyncRequest(sequence: 2, settled: 1, reports: [learned, done], held: [first.name], room: 1)
            ).leases.first)
        #expect(second.start == size && second.end == 2 * size)
        try await coordinator.age("leases", "granted_at", by: .seconds(60))
        return second
    }

    /// A session may sync with any coordinator: here the one that looks for stragglers is not the one that the holder syncs with.
    @Test func aHolderThatSyncsElsewhereIsAskedAndItsTailGoesToTheIdleSession() async throws {
        try await RunningCoordinator.with { here in
            try await here.withAnother { there in
                let holder = try await there.client.openSession(Self.opening("slow"))
                let idle = try await here.client.openSession(Self.opening("idle"))
                let lease = try await Self.straggle(there, holder)
                async let helped = Self.leases(here, idle)
                // The holder's sink is parked, so it takes no work: its own coordinator doesn't look for stragglers on its behalf.
                let parked = SinkStatus(name: "default", parked: .storageFull, detail: "no room")
                var wish: Shrink?
                var sequence: Int64 = 2
                while wish == nil, sequence < 20 {
                    sequence += 1
                    wish = try await there.client.sync(
                        holder.id,
                        SyncRequest(
                            sequence: sequence, settled: sequence - 1, held: [lease.name], room: 1,
                            waitMilliseconds: 5_000, sinks: [parked])
                    ).shrink.first
                }
                let asked = try #require(wish)
                #expect(asked.lease == lease.name && asked.end > Self.size && asked.end < 2 * Self.size)
                let answer = Report(lease: lease.name, kind: .shrunk, end: asked.end)
                let response = try await there.client.sync(
                    holder.id,
                    SyncRequest(sequence: sequence + 1, settled: sequence, reports: [answer], held: [lease.name]))
                #expect(response.lost.isEmpty && response.shrink.isEmpty)
                let tail = try #require(try await helped.first)
                #expect(tail.start == asked.end && tail.end == 2 * Self.size && !tail.fenced)
            }
        }
    }

    /// Asks for work for a session until there are leases, and returns them.
    private static func leases(
        _ coordinator: RunningCoordinator, _ session: SessionDocument
    ) async throws -> [LeaseDocument] {
        for sequence in Int64(1)..<20 {
            let answer = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: sequence, settled: sequence - 1, room: 1, waitMilliseconds: 5_000))
            if !answer.leases.isEmpty { return answer.leases }
        }
        return []
    }
}
