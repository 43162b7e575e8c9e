import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Checks over HTTP (adr/0048): begun and read by a caller, and carried out in syncs.
@Suite("Checks over HTTP") struct CheckAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    /// Runs a test beside a coordinator that looks at no rows, and ends no check by itself.
    private static func withoutRounds(_ body: @Sendable (RunningCoordinator) async throws -> Void) async throws {
        try await RunningCoordinator.with(
            configure: { configuration in
                configuration.adjustRounds = { rounds in rounds.filter { $0.name != .checks } }
            }, body)
    }

    @Test func aCheckGoesThroughSyncs() async throws {
        try await Self.withoutRounds { coordinator in
            let client = coordinator.client
            let session = try await client.openSession(Self.opening)
            let begun = try await client.beginCheck(CheckRequest(deep: true))
            #expect(begun.state == "running" && begun.deep && begun.sinks.map(\.name) == ["default"])
            #expect(begun.sinks.map(\.workersReaching) == [1])
            #expect(try await client.beginCheck(CheckRequest(deep: true)).id == begun.id)
            let refusal = await #expect(throws: Problem.self) { try await client.beginCheck(CheckRequest()) }
            #expect(refusal?.code == .conflict)
            let detail = try #require(refusal?.detail)
            #expect(detail.hasPrefix("another check is under way: \(begun.id) (--deep --sink default), begun "))
            #expect(detail.hasSuffix(" ago; wait until it has ended, or stop it with muster fsck --stop"))
            let (listed, alone) = (try await client.checks().items, try await client.check(begun.id))
            #expect(listed == [alone])

            // A poll does not wait for work while there is a page.
            let first = try await client.sync(
                session.id,
                SyncRequest(
                    sequence: 1, settled: 0, room: 4, waitMilliseconds: 5_000, sinks: [SinkStatus(name: "default")]))
            let page = try #require(first.check)
            #expect(page.kind == .names && page.isDeep)
            let looking = try await client.sync(
                session.id,
                SyncRequest(sequence: 2, settled: 1, check: CheckReport(on: page, isUnderWay: true)))
            #expect(looking.check?.kind == .goOn)
            var report = CheckReport(on: page)
            report.installations = ["somebody's\u{0} own"]
            let last = try await client.sync(session.id, SyncRequest(sequence: 3, settled: 2, check: report))
            #expect(last.check == nil)

            let found = try await client.findings(of: begun.id)
            #expect(found.items.map(\.subject) == ["somebody's own"] && found.items.map(\.isNote) == [true])
            let check = try await client.check(begun.id)
            #expect(check.sinks.map(\.phase) == ["done"] && check.notes == 1 && check.found == 0)
            try await client.stopCheck(begun.id)
            let next = try await client.beginCheck(CheckRequest())
            let kept = try await client.checks().items
            #expect(kept.map(\.id) == [next.id, begun.id] && kept.map(\.state) == ["running", "stopped"])
        }
    }

    @Test func impossibleReportsAndRequestsAreRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let session = try await client.openSession(Self.opening)
            var report = CheckReport(on: CheckOrder(sink: "default", epoch: 1, step: 1, kind: .names))
            report.installations = Array(repeating: "x", count: Limits.checkInstallations + 1)
            let tooMany = report
            let refusal = await #expect(throws: Problem.self) {
                try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, check: tooMany))
            }
            #expect(refusal?.code == .invalidRequest && refusal?.pointer == "/check")
            // A report on a check that is over says nothing.
            report.installations = nil
            let late = try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, check: report))
            #expect(late.check == nil)
            let unknown = await #expect(throws: Problem.self) {
                try await client.beginCheck(CheckRequest(sinks: ["elsewhere"]))
            }
            #expect(unknown?.pointer == "/sinks/0")
            let missing = await #expect(throws: Problem.self) { try await client.check(77) }
            #expect(missing?.code == .notFound)
            let findings = await #expect(throws: Problem.self) { try await client.findings(of: 77) }
            #expect(findings?.code == .notFound)
        }
    }

    @Test func aRefusalThatPassesIsNotRepeated() async throws {
        try await Self.withoutRounds { coordinator in
            let other = try await coordinator.client.beginCheck(CheckRequest(deep: true))
            let begin = { @Sendable () async throws -> APIResponse in
                try await coordinator.raw("POST", "/v1/checks", body: "{}", key: "the same request")
            }
            #expect(try await begin().status == 409)
            try await coordinator.client.stopCheck(other.id)
            let begun = try await begin()
            #expect(begun.status == 201)
            // From now on it has its answer, also when its check is over.
            let check = try JSONDecoder().decode(CheckDocument.self, from: Data(begun.body))
            try await coordinator.client.stopCheck(check.id)
            let again = try await begin()
            #expect(again.status == 201 && again.body == begun.body)
        }
    }
}
