import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Checks over HTTP (adr/0048): begun and read by a caller, and carried out in syncs.
@Suite("Checks over HTTP") struct CheckAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    @Test func aCheckGoesThroughSyncs() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let session = try await client.openSession(Self.opening)
            let begun = try await client.beginCheck(CheckRequest(deep: true))
            #expect(begun.state == "running" && begun.deep && begun.sinks.map(\.name) == ["default"])
            #expect(begun.sinks.map(\.workersReaching) == [1])
            #expect(try await client.beginCheck(CheckRequest(deep: true)).id == begun.id)
            let refusal = await #expect(throws: Problem.self) { try await client.beginCheck(CheckRequest()) }
            #expect(refusal?.code == .conflict)

            // A poll does not wait for work while there is a page.
            let first = try await client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, waitMilliseconds: 5_000))
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
            #expect(try await client.check(begun.id).state == "stopped")
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
        }
    }
}
