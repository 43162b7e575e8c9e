import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// Reports that can't be stored, beside others that can (I19).
@Suite("A report that can't be stored fails alone")
struct RefusedReportTests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    /// A report that no correct worker makes.
    enum Nasty: String, CaseIterable, CustomTestStringConvertible {
        case hugeSize, negativeSize, sizeBeyondAnyFile, hugeOffset, negativeOffset, hugeFile, negativeFile
        case offsetOfGivenBack, offsetOfFailed, failedWithoutReason, shrunkWithoutEnd, sumOfSizes,
            sumOfBytes, sumOfFiles

        var testDescription: String { rawValue }

        func report(_ lease: LeaseName) -> Report {
            switch self {
            case .hugeSize: Self.learned(lease, .max)
            case .negativeSize: Self.learned(lease, -1)
            case .sizeBeyondAnyFile: Self.learned(lease, Limits.fileSize.bytes + 1)
            case .hugeOffset: Report(lease: lease, kind: .progress, durable: Self.durable(.max))
            case .negativeOffset: Report(lease: lease, kind: .progress, durable: Self.durable(.min))
            case .hugeFile: Report(lease: lease, kind: .done, finished: .init(size: .max, digests: [:]))
            case .negativeFile: Report(lease: lease, kind: .done, finished: .init(size: -1, digests: [:]))
            case .offsetOfGivenBack: Report(lease: lease, kind: .released, durable: Self.durable(.max))
            case .offsetOfFailed:
                Report(
                    lease: lease, kind: .failed, durable: Self.durable(.max),
                    failure: .init(kind: .network, detail: "reset"))
            case .failedWithoutReason: Report(lease: lease, kind: .failed)
            case .shrunkWithoutEnd: Report(lease: lease, kind: .shrunk)
            case .sumOfSizes: Self.learned(lease, 1 << 49)
            case .sumOfBytes: Report(lease: lease, kind: .progress, durable: Self.durable(1 << 40))
            case .sumOfFiles:
                Report(lease: lease, kind: .done, finished: .init(size: 1 << 40, digests: [:]))
            }
        }

        /// Whether the group's counts are set so high beforehand that another file doesn't fit.
        var fillsGroup: Bool {
            switch self {
            case .sumOfSizes, .sumOfBytes, .sumOfFiles: true
            case .hugeSize, .negativeSize, .sizeBeyondAnyFile, .hugeOffset, .negativeOffset, .hugeFile, .negativeFile,
                .offsetOfGivenBack, .offsetOfFailed, .failedWithoutReason, .shrunkWithoutEnd:
                false
            }
        }

        private static func learned(_ lease: LeaseName, _ size: Int64) -> Report {
            Report(
                lease: lease, kind: .progress, durable: durable(0),
                learned: .init(
                    representation: Representation(size: size), rung: .stream, effectiveURL: nil, source: 0))
        }

        private static func durable(_ offset: Int64) -> DurablePrefix { DurablePrefix(offset: offset, crc: 7) }
    }

    private static func finished(_ lease: LeaseDocument) -> Report {
        Report(
            lease: lease.name, kind: .done, durable: DurablePrefix(offset: 10, crc: 7),
            finished: .init(size: 10, digests: [:]))
    }

    @Test(arguments: Nasty.allCases)
    func theGoodOnesAreStoredAndTheLeaseOfTheBadOneEnds(_ nasty: Nasty) async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let tasks = (1...4).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10) }
            _ = try await client.createGroup(GroupRequest(name: "good", sealed: true, tasks: tasks))
            _ = try await client.createGroup(
                GroupRequest(name: "bad", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:2/f"])]))
            let session = try await client.openSession(Self.opening).id
            // A claim leaves out what a round has locked at that moment.
            var leases: [LeaseDocument] = []
            var sequence: Int64 = 0
            while leases.count < 5 {
                sequence += 1
                leases += try await client.sync(
                    session,
                    SyncRequest(
                        sequence: sequence, settled: sequence - 1, held: leases.map(\.name), room: 8,
                        waitMilliseconds: 1_000)
                ).leases
            }
            let bad = try #require(leases.first { $0.group == "bad" })
            try await coordinator.unbind(chunk: bad.chunk)
            if nasty.fillsGroup {
                for column in ["bytes_total", "bytes_done"] {
                    try await coordinator.set("groups", column, to: "\(Int64.max - 5)", of: "bad")
                }
            }
            var reports = leases.filter { $0.group == "good" }.map(Self.finished)
            try #require(reports.count == 4)
            reports.insert(nasty.report(bad.name), at: 2)
            let answer = try await client.sync(
                session,
                SyncRequest(
                    sequence: sequence + 1, settled: sequence, reports: reports, held: leases.map(\.name)))
            #expect(answer.refused.map(\.lease) == [bad.name])
            #expect(answer.refused.first?.reason.isEmpty == false)
            let good = try await client.group("good")
            #expect(good.state == .succeeded && good.tasks.succeeded == 4)
            let task = try #require(try await client.tasks(of: "bad").items.first)
            #expect(task.state == .failed && task.failure?.kind == .badRange)
            #expect(task.failure?.detail == answer.refused.first?.reason)
            // The session still works.
            let next = try await client.sync(
                session, SyncRequest(sequence: sequence + 2, settled: sequence + 1, held: [bad.name]))
            #expect(next.lost == [bad.name] && next.refused.isEmpty)
            let metrics = String(decoding: try await coordinator.raw("GET", "/metrics").body, as: UTF8.self)
            #expect(metrics.contains("muster_reports_refused_total 1\n"))
            #expect(metrics.contains("muster_http_failures_total 0\n"))
        }
    }

    /// The report of a purge has neither bytes nor a file.
    @Test func purgeThatIsDoneIsOver() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:1/f"], size: 10)]))
            let session = try await client.openSession(Self.opening).id
            var sequence: Int64 = 0
            func nextLease() async throws -> LeaseDocument {
                while true {
                    sequence += 1
                    let request = SyncRequest(
                        sequence: sequence, settled: sequence - 1, room: 1, waitMilliseconds: 1_000)
                    if let lease = try await client.sync(session, request).leases.first { return lease }
                }
            }
            let fetch = try await nextLease()
            let progress = Report(lease: fetch.name, kind: .progress, durable: DurablePrefix(offset: 5, crc: 7))
            sequence += 1
            _ = try await client.sync(
                session,
                SyncRequest(sequence: sequence, settled: sequence - 1, reports: [progress], held: [fetch.name]))
            _ = try await client.apply(.cancel, to: "g")
            let purge = try await nextLease()
            try #require(purge.kind == .purge)
            sequence += 1
            let answer = try await client.sync(
                session,
                SyncRequest(
                    sequence: sequence, settled: sequence - 1, reports: [Report(lease: purge.name, kind: .done)],
                    held: [purge.name]))
            #expect(answer.refused.isEmpty && answer.lost.isEmpty)
            let metrics = String(decoding: try await coordinator.raw("GET", "/metrics").body, as: UTF8.self)
            #expect(metrics.contains("muster_reports_refused_total 0\n"))
        }
    }

    /// An overlong value from an origin, or one with a forbidden character, is dropped or cut; the rest of the report is stored.
    @Test func reportThatCanBeCleanedIsStored() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:1/f"])]))
            let session = try await client.openSession(Self.opening).id
            let lease = try #require(
                try await client.sync(session, SyncRequest(sequence: 1, settled: 0, room: 1)).leases.first)
            var learned = Report.Learned(
                representation: Representation(
                    size: 100 << 20, etag: "\"" + String(repeating: "e", count: 2 << 20) + "\"", lastModified: "\u{0}",
                    digests: ["\u{0}": "\u{0}"]), rung: .chunks,
                effectiveURL: "http://" + String(repeating: "h", count: 4_000) + "/\u{0}", source: .max)
            learned.suggestedName = "a\u{0}"
            let report = Report(
                lease: lease.name, kind: .progress, durable: DurablePrefix(offset: 0, crc: .max), learned: learned)
            let sink = SinkStatus(
                name: "default", parked: .storage, detail: "\u{0}" + String(repeating: "x", count: 9_000),
                freeBytes: .min)
            let nobody = SinkStatus(name: "no\u{0} sink", detail: "\u{0}")
            let traffic = [
                Traffic(budget: "\u{0}", bytes: .max, bytesPerSecond: .max),
                Traffic(budget: String(repeating: "b", count: 9_000), bytes: .min, bytesPerSecond: .min),
                Traffic(budget: "fleet", bytes: .max, bytesPerSecond: .max, isShort: true),
                Traffic(budget: "fleet", bytes: .max, bytesPerSecond: .max, isShort: true),
            ]
            let strange = LeaseName(chunk: ChunkID(.min), epoch: LeaseEpoch(.max))
            for sequence in Int64(2)...40 {
                let answer = try await client.sync(
                    session,
                    SyncRequest(
                        sequence: sequence, settled: sequence - 1, reports: [report],
                        held: [lease.name, strange, strange], room: .min, waitMilliseconds: .max,
                        sinks: [sink, nobody],
                        receivedBytes: .max, traffic: traffic))
                #expect(answer.refused.isEmpty && !answer.lost.contains(lease.name) && answer.lost.contains(strange))
            }
            let task = try #require(try await client.tasks(of: "g").items.first)
            #expect(task.bytes.total == 100 << 20 && task.etag == nil && task.lastModified == nil)
            #expect(try await client.workers().items.first?.sinks.map(\.detail?.utf8.count) == [2_000])
        }
    }

    @Test func aResolverWithAHostOfFourThousandBytesFailsItsQuestionAlone() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            var group = GroupRequest(
                name: "g", sealed: true, tasks: [TaskRequest(urls: ["https://a.example/f"], key: "f")])
            group.resolver = Resolver(url: "https://r.example/fresh")
            _ = try await client.createGroup(group)
            let session = try await client.openSession(Self.opening).id
            let first = try #require(
                try await client.sync(session, SyncRequest(sequence: 1, settled: 0, room: 1)).leases.first)
            let learned = Report(
                lease: first.name, kind: .progress, durable: DurablePrefix(offset: 4, crc: 9),
                learned: .init(
                    representation: Representation(size: 10, etag: "\"e\""), rung: .chunks, effectiveURL: nil,
                    source: 0))
            _ = try await client.sync(
                session, SyncRequest(sequence: 2, settled: 1, reports: [learned], held: [first.name]))
            var failure = Report.Failure(kind: .httpStatus(403), detail: "the origin answered 403", source: 0)
            failure.status = 403
            _ = try await client.sync(
                session,
                SyncRequest(
                    sequence: 3, settled: 2,
                    reports: [
                        Report(
                            lease: first.name, kind: .failed, durable: DurablePrefix(offset: 4, crc: 9),
                            failure: failure)
                    ], held: [first.name]))
            let question = try #require(
                try await client.sync(
                    session, SyncRequest(sequence: 4, settled: 3, room: 1, waitMilliseconds: 5_000)
                ).leases.first)
            #expect(question.kind == .resolve)
            for host in [String(repeating: "h", count: 4_000), "h%00h"] {
                let answer = ResolverAnswer(url: "https://\(host)/f", headers: nil)
                let told = try await client.sync(
                    session,
                    SyncRequest(
                        sequence: host.hasPrefix("h%") ? 6 : 5, settled: 4,
                        reports: [Report(lease: question.name, kind: .resolved, resolved: answer)],
                        held: [question.name]))
                #expect(told.refused.isEmpty)
            }
            let explained = try await client.explanation(of: "f", in: "g")
            let detail = explained.attempts.map(\.detail).joined(separator: "\n")
            #expect(detail.contains("the resolver's answer can't be used"))
            #expect(try await client.group("g").tasks.failed == 0)
        }
    }
}
