import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

@Suite("Origins and the address guard")
struct FleetAPITests {
    private static let key = "https://example.org:443"
    private static let path = "/v1/origins/https%3A%2F%2Fexample.org%3A443"

    @Test func anUnknownOriginCanBeSetAndIsListed() async throws {
        try await RunningCoordinator.with { coordinator in
            let set = try await coordinator.client.setOrigin(
                "https://Example.org", OriginPatch(maxConnections: .set(3)))
            #expect(set.key == Self.key && set.maxConnections == 3 && set.allowedConnections == 3)
            #expect(set.pausedUntil == nil && set.limitedAt == nil && set.bytesPerSecond == 0)
            #expect(try await coordinator.client.origins().items == [set])
            let cleared = try await coordinator.client.setOrigin(Self.key, OriginPatch(maxConnections: .clear))
            #expect(cleared.maxConnections == 8 && cleared.allowedConnections == 8)
        }
    }

    @Test func aPauseIsAMomentOrADurationAndEndsWithNull() async throws {
        try await RunningCoordinator.with { coordinator in
            let far = Timestamp(microseconds: 4_102_444_800_000_000)
            let until = try await coordinator.client.setOrigin(Self.key, OriginPatch(pausedUntil: .set(far)))
            #expect(until.pausedUntil == far)
            let duration = try await coordinator.client.setOrigin(Self.key, OriginPatch(pauseFor: "30m"))
            let moment = try #require(duration.pausedUntil)
            #expect(moment < far && duration.maxConnections == 8)
            let kept = try await coordinator.client.setOrigin(Self.key, OriginPatch(maxConnections: .set(2)))
            #expect(kept.pausedUntil == moment, "what is not named stays")
            let ended = try await coordinator.client.setOrigin(Self.key, OriginPatch(pausedUntil: .clear))
            #expect(ended.pausedUntil == nil && ended.maxConnections == 2)
        }
    }

    @Test(arguments: [
        (#"{"bytesPerHour":1000}"#, "unknown field", "/bytesPerHour"),
        (#"{"bytesPerSecond":0}"#, "within 1...", "/bytesPerSecond"),
        (#"{"maxConnections":0}"#, "within 1...100000", "/maxConnections"),
        (#"{"pausedUntil":"tomorrow"}"#, "RFC 3339", "/pausedUntil"),
        (#"{"pauseFor":"soon"}"#, "duration", "/pauseFor"),
    ])
    func impossibleSettingsAreRefused(_ body: String, _ reason: String, _ pointer: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await coordinator.raw("PATCH", Self.path, body: body)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 400 && text.contains(reason) && text.contains(pointer), "\(text)")
            #expect(try await coordinator.client.origins().items.isEmpty)
        }
    }

    @Test func invalidOriginIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            for key in ["example.org", "https://example.org/a", "https://example.org?a", "gopher://example.org"] {
                await #expect {
                    try await coordinator.client.setOrigin(key, OriginPatch(maxConnections: .set(1)))
                } throws: { ($0 as? Problem)?.code == .invalidRequest }
            }
        }
    }

    @Test func originsAndWorkersAreListedPageByPage() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            for host in ["c", "a", "b"] { _ = try await client.setOrigin("https://\(host).example", OriginPatch()) }
            let first = try await client.origins(limit: 2)
            #expect(first.items.map(\.key) == ["https://a.example:443", "https://b.example:443"])
            let rest = try await client.origins(after: first.next, limit: 2)
            #expect(rest.items.map(\.key) == ["https://c.example:443"] && rest.next == nil)

            // A worker that was started again has two sessions for a while: a page may end between them.
            for name in ["v", "w", "u", "v"] { _ = try await Self.open(client, name) }
            let workers = try await client.workers(limit: 2)
            #expect(workers.items.map(\.name) == ["u", "v"])
            let others = try await client.workers(after: workers.next, limit: 2)
            #expect(others.items.map(\.name) == ["v", "w"] && others.items[0].session != workers.items[1].session)
            #expect(try await client.workers(after: others.next, limit: 2).items.isEmpty)
            // A name alone stands before the worker's sessions.
            #expect(try await client.workers(after: "v", limit: 9).items.map(\.name) == ["v", "v", "w"])
            for query in ["workers?limit=0", "origins?limit=1001"] {
                #expect(try await coordinator.raw("GET", "/v1/\(query)").status == 400, "\(query)")
            }
        }
    }

    @Test func theRateThatAWorkerKeepsToIsShown() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await Self.open(coordinator.client, "fast")
            _ = try await Self.open(coordinator.client, "slow", bytesPerSecond: 9)
            #expect(try await coordinator.client.workers().items.map(\.bytesPerSecondLimit) == [nil, 9])
            await #expect { try await Self.open(coordinator.client, "none", bytesPerSecond: 0) } throws: {
                ($0 as? Problem)?.pointer == "/bytesPerSecond"
            }
        }
    }

    private static func open(
        _ client: MusterClient, _ name: String, bytesPerSecond: Int64? = nil
    ) async throws -> SessionDocument {
        try await client.openSession(
            SessionRequest(
                name: name, sinks: ["default"], slots: 4, version: "test", bytesPerSecond: bytesPerSecond))
    }

    @Test func aPausedOriginIsLeasedNothingUntilThePauseEnds() async throws {
        try await RunningCoordinator.with { coordinator in
            let session = try await coordinator.client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
            _ = try await coordinator.client.setOrigin(Self.key, OriginPatch(pauseFor: "1h"))
            _ = try await coordinator.client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [TaskRequest(urls: ["https://example.org/a"])]))
            let none = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 4))
            #expect(none.leases.isEmpty)
            let explanation = try await coordinator.client.explanation(of: "a", in: "g")
            #expect(explanation.waits.map(\.reason) == [.originPaused] && explanation.waits[0].until != nil)
            let command = "sooner with: muster origins set \(Self.key) --pause-until none"
            #expect(explanation.next?.hasSuffix(command) == true)
            let ofGroup = try await coordinator.client.groupExplanation(of: "g")
            #expect(ofGroup.next?.hasSuffix(command) == true)
            let notes = try await coordinator.client.group("g").notes
            #expect(notes.contains { $0.hasSuffix(command) }, "\(notes)")
            async let polled = coordinator.client.sync(
                session.id, SyncRequest(sequence: 2, settled: 1, room: 4, waitMilliseconds: 5_000))
            _ = try await coordinator.client.setOrigin(Self.key, OriginPatch(pausedUntil: .clear))
            #expect(try await polled.leases.count == 1)
        }
    }

    @Test func onLoopbackNoAddressIsRefusedAndBeyondItPrivateOnesAre() async throws {
        var configuration = CoordinatorConfiguration(database: "")
        #expect(configuration.addressGuard.allows("127.0.0.1") && configuration.addressGuard.allows("10.0.0.1"))
        configuration.listenHost = "192.0.2.1"
        #expect(!configuration.addressGuard.allows("127.0.0.1") && !configuration.addressGuard.allows("10.0.0.1"))
        #expect(configuration.addressGuard.allows("93.184.216.34"))
        configuration.allowedAddresses = [try #require(AddressRange("10.0.0.0/8"))]
        #expect(configuration.addressGuard.allows("10.0.0.1") && !configuration.addressGuard.allows("192.168.0.1"))
        try await RunningCoordinator.with { coordinator in
            let session = try await coordinator.client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
            let answer = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 0))
            #expect(answer.addresses == nil)
        }
    }
}
