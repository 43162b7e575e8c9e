import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// The terms that leases bring and the facts that reports carry, spoken by hand over HTTP (`docs/protocol.md`).
@Suite("Leases with their terms, and answers of resolvers")
struct LeaseTermsAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    /// A worker that reports what the test tells it to, one sync after the other.
    private actor Puppet {
        private let client: MusterClient
        private let session: SessionID
        private var sequence: Int64 = 0
        private var held: [LeaseName] = []

        init(_ coordinator: RunningCoordinator) async throws {
            client = coordinator.client
            session = try await client.openSession(LeaseTermsAPITests.opening).id
        }

        /// Sends the reports, then asks until it gets a lease.
        func lease(after reports: [Report] = []) async throws -> LeaseDocument {
            try await sync(reports)
            for _ in 0..<40 {
                sequence += 1
                let answer = try await client.sync(
                    session,
                    SyncRequest(
                        sequence: sequence, settled: sequence - 1, held: held, room: 1, waitMilliseconds: 500))
                if let lease = answer.leases.first {
                    held.append(lease.name)
                    return lease
                }
            }
            throw Problem(.internal, "there was no lease")
        }

        /// Sends the reports without asking for work.
        func sync(_ reports: [Report]) async throws {
            sequence += 1
            _ = try await client.sync(
                session, SyncRequest(sequence: sequence, settled: sequence - 1, reports: reports, held: held))
            let ended = reports.filter { $0.kind != .progress }.map(\.lease)
            held.removeAll { ended.contains($0) }
        }
    }

    private static func group() -> GroupRequest {
        var task = TaskRequest(
            urls: ["https://a.example/f?old"], key: "f", path: "f",
            headers: ["Authorization": "Bearer own", "X-Own": "1"])
        task.fetch = FetchOptions()
        task.fetch?.headers = ["X-Both": Secret("task")]
        task.contentType = "application/zip"
        var group = GroupRequest(name: "g", sealed: true, tasks: [task])
        group.fetch = FetchOptions()
        group.fetch?.headers = ["x-both": Secret("group"), "X-Group": Secret("env:NAME")]
        group.policy = TransferPolicy()
        group.policy?.keepModificationTime = true
        group.resolver = Resolver(url: "https://r.example/fresh", headers: ["X-Key": Secret("file:/key")])
        return group
    }

    private static func learned(_ lease: LeaseDocument) -> Report {
        var learned = Report.Learned(
            representation: Representation(
                size: 10, etag: "\"e\"", lastModified: "Mon, 02 Feb 2026 00:00:00 GMT", isDateStrong: true,
                digests: ["md5": String(repeating: "a", count: 32), "none": "x"]), rung: .chunks,
            effectiveURL: nil, source: 0)
        learned.suggestedName = "../evil"
        return Report(
            lease: lease.name, kind: .progress, durable: DurablePrefix(offset: 4, crc: 9), learned: learned)
    }

    private static func expired(_ lease: LeaseDocument) -> Report {
        var failure = Report.Failure(kind: .httpStatus(403), detail: "the origin answered 403", source: 0)
        failure.status = 403
        failure.requestID = "req-1\n"
        failure.address = "192.0.2.7"
        return Report(lease: lease.name, kind: .failed, durable: DurablePrefix(offset: 4, crc: 9), failure: failure)
    }

    @Test func aLeaseBringsTheOptionsOfTaskAndGroup() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(Self.group())
            let lease = try await Puppet(coordinator).lease()
            #expect(lease.options?.headers == ["X-Both": Secret("task"), "X-Group": Secret("env:NAME")])
            #expect(lease.source?.headers == ["Authorization": "Bearer own", "X-Own": "1"])
            #expect(lease.policy?.keepModificationTime == true && lease.contentType == "application/zip")
            #expect(lease.resolver == nil && lease.question == nil && lease.isOtherMirror == nil)
        }
    }

    @Test func anExpiredURLIsAskedForOnceAndItsAnswerIsUsedFromThereOn() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(Self.group())
            let puppet = try await Puppet(coordinator)
            let first = try await puppet.lease()
            try await puppet.sync([Self.learned(first)])
            let question = try await puppet.lease(after: [Self.expired(first)])
            #expect(question.kind == .resolve)
            #expect(question.resolver?.url == "https://r.example/fresh")
            #expect(question.resolver?.headers == ["X-Key": Secret("file:/key")])
            #expect(
                question.question
                    == ResolverQuestion(group: "g", key: "f", url: "https://a.example/f?old", source: 0, status: 403))

            let asked = try await coordinator.client.explanation(of: "f", in: "g")
            #expect(asked.waits.first?.reason == .resolver && asked.work.map(\.kind) == [.resolve])
            let attempt = try #require(asked.attempts.last)
            #expect(attempt.kind == .httpStatus(403) && attempt.status == 403 && attempt.outcome == .resolve)
            #expect(attempt.requestID == "req-1" && attempt.address == "192.0.2.7" && attempt.worker == "w")
            #expect(attempt.source == "https://a.example/f?old")

            let answer = ResolverAnswer(url: "https://cdn.example/f?fresh-key", headers: ["X-Fresh": "1"])
            let next = try await puppet.lease(
                after: [Report(lease: question.name, kind: .resolved, resolved: answer)])
            #expect(next.kind == .fetch && next.resume == DurablePrefix(offset: 4, crc: 9))
            #expect(next.source?.url == "https://cdn.example/f?fresh-key")
            #expect(next.source?.headers == ["X-Fresh": "1"], "nothing that the caller gave crosses origins")
            #expect(next.representation.isDateStrong == true)
            #expect(next.representation.digests == ["md5": String(repeating: "a", count: 32)])
            #expect(next.path == "f", "a suggested name that leaves the directory is none")

            let explained = try await coordinator.raw("GET", "/v1/groups/g/tasks/f/explanation")
            let text = String(decoding: explained.body, as: UTF8.self)
            #expect(text.contains("resolvedAt") && !text.contains("fresh-key"), "a fresh URL is as good as a key")
        }
    }

    @Test(arguments: [
        ResolverAnswer(url: "file:///etc/passwd"), ResolverAnswer(url: "https://u:p@cdn.example/f"),
        ResolverAnswer(url: "https://cdn.example/f", headers: ["Range": "bytes=0-"]),
        ResolverAnswer(url: "https://cdn.example/f", headers: ["A": "1", "a": "hush"]),
    ])
    func anAnswerThatCanNotBeUsedIsAFailureOfTheResolver(_ answer: ResolverAnswer) async throws {
        try await RunningCoordinator.with(configure: { $0.retryBase = .milliseconds(20) }) { coordinator in
            _ = try await coordinator.client.createGroup(Self.group())
            let puppet = try await Puppet(coordinator)
            let first = try await puppet.lease()
            try await puppet.sync([Self.learned(first)])
            let question = try await puppet.lease(after: [Self.expired(first)])
            let again = try await puppet.lease(
                after: [Report(lease: question.name, kind: .resolved, resolved: answer)])
            #expect(again.kind == .resolve && again.epoch > question.epoch, "it is asked again, after a while")
            let attempt = try await coordinator.client.explanation(of: "f", in: "g").attempts.last
            #expect(attempt?.kind == .authentication && attempt?.detail.contains("can't be used") == true)
            #expect(attempt?.detail.contains("hush") == false)
        }
    }

    /// After a try that was too slow, the next try of the same source gets a longer limit, so that an origin that always needs that long is
    /// served in the end. Another mirror is tried first.
    @Test(arguments: [1, 2], [FailureKind.timeout, .tooSlow, .network])
    func aTryThatFollowsASlowOneHasMorePatience(mirrors: Int, kind: FailureKind) async throws {
        try await RunningCoordinator.with(configure: { $0.retryBase = .milliseconds(20) }) { coordinator in
            let task = TaskRequest(urls: (0..<mirrors).map { "https://a.example/f\($0)" }, key: "f")
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
            let puppet = try await Puppet(coordinator)
            var lease = try await puppet.lease()
            var limits: [Int64?] = []
            for _ in 0..<3 {
                limits.append(lease.options?.lowSpeedSeconds)
                let failure = Report.Failure(kind: kind, detail: "slow", source: lease.source?.ordinal)
                lease = try await puppet.lease(after: [Report(lease: lease.name, kind: .failed, failure: failure)])
            }
            #expect(limits == (kind == .network ? [nil, nil, nil] : mirrors == 1 ? [nil, 60, 120] : [nil, nil, 60]))
        }
    }

    /// A silent mirror does not hold a file for minutes that another may bring, and one that is slow gets more time in each round.
    @Test(arguments: [FailureKind.network, .timeout])
    func aTryBesideOtherMirrorsHasMorePatienceInEachRound(kind: FailureKind) async throws {
        try await RunningCoordinator.with(configure: { $0.retryBase = .milliseconds(20) }) { coordinator in
            let task = TaskRequest(urls: ["https://a.example/f", "https://b.example/f"], key: "f")
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
            let puppet = try await Puppet(coordinator)
            var lease = try await puppet.lease()
            var limits: [Int64?] = []
            for _ in 0..<6 {
                limits.append(lease.options?.firstByteTimeoutSeconds)
                let failure = Report.Failure(kind: kind, detail: "silent", source: lease.source?.ordinal)
                lease = try await puppet.lease(after: [Report(lease: lease.name, kind: .failed, failure: failure)])
            }
            #expect(limits == [nil, 30, 60, 60, 120, 120])
        }
    }

    @Test func aFailureNamesStatusSourceAndRequest() async throws {
        try await RunningCoordinator.with { coordinator in
            let task = TaskRequest(urls: ["https://a.example/f"])
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
            let puppet = try await Puppet(coordinator)
            let lease = try await puppet.lease()
            var failure = Report.Failure(kind: .notFound, detail: "it does not have it", source: 0)
            (failure.status, failure.requestID) = (404, "req-2")
            try await puppet.sync([Report(lease: lease.name, kind: .failed, failure: failure)])
            let shown = try #require(try await coordinator.client.task("f", of: "g").failure)
            #expect(shown.kind == .notFound && shown.status == 404)
            #expect(shown.source == "https://a.example/f" && shown.requestID == "req-2")
            let explanation = try await coordinator.client.explanation(of: "f", in: "g")
            #expect(explanation.task.state == .failed && explanation.attempts.map(\.outcome) == [.failed])
            #expect(explanation.summary.contains("404 Not Found from https://a.example/f"))
        }
    }

    @Test func aTaskWithoutAWorkerIsExplained() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(Self.group())
            let explanation = try await coordinator.client.explanation(of: "f", in: "g")
            #expect(explanation.waits.map(\.reason) == [.noWorker] && explanation.chunks.ready == 1)
            #expect(explanation.sources.map(\.url) == ["https://a.example/f?old"])
            await #expect { try await coordinator.client.explanation(of: "none", in: "g") } throws: {
                ($0 as? Problem)?.code == .taskNotFound
            }
        }
    }
}
