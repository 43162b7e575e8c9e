import FoundationEssentials
import Glibc
import Logging
import MusterAPI
import MusterCore
import MusterSystem
import MusterTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MusterWorker

/// The engine with its loops, a sink and an origin; the coordinator is scripted by the test.
@Suite struct WorkerEngineTests {
    private struct Heard {
        var reports: [Report] = []
        /// The most reports that one sync brought for the lease.
        var mostAtOnce = 0
        var usedBytes: Int64 = 0
        var isGranted = false
    }

    /// Grants one lease with a share of a budget, asks for its tail once `isReady`, and drains the worker when the lease is done.
    private func answer(
        _ request: SyncRequest,
        _ heard: borrowing Mutex<Heard>,
        _ lease: LeaseDocument,
        _ wish: Shrink,
        _ isReady: Bool
    ) -> SyncResponse {
        var answer = SyncResponse(ttlMilliseconds: 30_000)
        answer.budgets = [BudgetShare(name: BudgetShare.fleet, bytesPerSecond: 1 << 40)]
        heard.withLock { heard in
            heard.reports += request.reports
            heard.mostAtOnce = max(heard.mostAtOnce, request.reports.count)
            heard.usedBytes += (request.traffic ?? []).reduce(0) { $0 + $1.bytes }
            if !heard.isGranted { answer.leases = [lease] }
            heard.isGranted = true
            answer.drain = heard.reports.contains { $0.kind == .done }
            let isAnswered = heard.reports.contains { $0.kind == .shrunk }
            if isReady, !isAnswered, request.held == [lease.name] { answer.shrink = [wish] }
        }
        return answer
    }

    @Test func aRefusalForTheTokenSaysWhatToStartTheWorkerWith() {
        let failure = CallFailure(Problem(.unauthorized, "a valid token is needed"))
        guard case .refused(let reason) = failure else { return #expect(Bool(false), "\(String(describing: failure))") }
        #expect(reason.contains("a valid token is needed") && reason.contains("MUSTER_WORKER_TOKEN"))
    }

    @Test func engineGivesATailAwayAndTellsSoBeforeItIsDone() async throws {
        let directory = try TemporaryDirectory()
        let origin = try await ScriptedOrigin.start()
        var file = ScriptedOrigin.File(.seeded(seed: 21, size: 4 * mebibyte))
        file.etag = "\"one\""
        origin.serve("/f", file)
        origin.hold("/f", afterBytes: mebibyte)
        let known = Representation(size: 4 * mebibyte, etag: "\"one\"")
        let lease = LeaseDocument.chunk(origin.url("/f"), 0, 4 * mebibyte, of: known)
        let part = directory.path.appending("\(ScratchSink.parts)/\(lease.task).\(lease.version).part").string
        let ownDirectory = directory.path.appending(".muster/\(ScratchSink.installation)/1").string

        let heard = Mutex(Heard())
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { request in
            let encoder = JSONEncoder()
            guard request.url.hasSuffix("/sync"), case .bytes(let body) = request.body else {
                guard case .bytes(let body) = request.body else { throw CancellationError() }
                let opening = try JSONDecoder().decode(SessionRequest.self, from: Data(body))
                let document = SessionDocument(
                    id: SessionID(1), ttlMilliseconds: 30_000, installation: ScratchSink.installation,
                    marks: opening.marks)
                return APIResponse(status: 200, body: Array(try encoder.encode(document)))
            }
            let sync = try JSONDecoder().decode(SyncRequest.self, from: Data(body))
            let size = (try? FileManager.default.attributesOfItem(atPath: part)[.size] as? UInt64) ?? 0
            let answer = answer(sync, heard, lease, Shrink(lease: lease.name, end: 1_000), size == UInt64(mebibyte))
            return APIResponse(status: 200, body: Array(try encoder.encode(answer)))
        }
        let gate = TrustGate(clock: MonotonicClock.now)
        let sink = SinkConfiguration(name: "default", path: directory.path.string)
        let station = try SinkStation(sink, gate: gate)
        let loops = try LoopSet(count: 1, slots: 1)
        let checker = try SinkChecker()
        let configuration = WorkerConfiguration(servers: [], name: "w", sinks: [sink], slots: 1, version: "0")
        await WorkerEngine(
            configuration: configuration,
            client: client,
            gate: gate,
            loops: loops,
            stations: [station],
            checker: checker,
            logger: Logger(label: "test")
        ).run()
        await checker.shutdown()
        await loops.shutdown()
        await station.shutdown()
        await origin.stop()

        let reports = heard.withLock { $0.reports.filter { $0.kind != .progress } }
        // The worker may be asked twice.
        #expect(reports.count >= 2)
        #expect(reports.dropLast().allSatisfy { $0.kind == .shrunk && $0.end == mebibyte })
        #expect(reports.last?.kind == .done)
        #expect(
            reports.last?.durable == DurablePrefix(offset: mebibyte, crc: crc(file.content.bytes(in: 0..<mebibyte))))
        #expect(heard.withLock { $0.mostAtOnce } == 1)
        #expect(heard.withLock { $0.usedBytes } == mebibyte)
        #expect(!FileManager.default.fileExists(atPath: ownDirectory), "a session that ends leaves nothing to revoke")
    }

    /// What a coordinator hears of a worker with a sink that hangs from the start.
    private struct HangTale {
        var isOver = false
        var openings: [SessionRequest] = []
        var additions: [SessionSinkRequest] = []
    }

    /// A sink that hangs while the worker starts delays neither the session nor the other sinks, and joins when it answers (I19).
    @Test func aSinkThatHangsAtTheStartDelaysNothingElse() async throws {
        let tale = Mutex(HangTale())
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { request in
            guard case .bytes(let body) = request.body else { throw CancellationError() }
            func document<Value: Decodable>(_ type: Value.Type) throws -> Value {
                try JSONDecoder().decode(type, from: Data(body))
            }
            let answer: any Encodable
            if request.url.hasSuffix("/sync") {
                var sync = SyncResponse(ttlMilliseconds: 30_000)
                // A sink of the opening is not added.
                sync.drain = tale.withLock { tale in
                    !tale.additions.isEmpty || tale.openings.contains { $0.marks?["slow"] != nil }
                }
                answer = sync
            } else if request.url.hasSuffix("/sinks") {
                let addition = try document(SessionSinkRequest.self)
                tale.withLock { $0.additions.append(addition) }
                answer = SessionSinkDocument(mark: addition.mark)
            } else {
                let opening = try document(SessionRequest.self)
                tale.withLock { tale in
                    tale.openings.append(opening)
                    tale.isOver = true
                }
                answer = SessionDocument(
                    id: SessionID(1), ttlMilliseconds: 30_000, installation: ScratchSink.installation,
                    marks: opening.marks)
            }
            return APIResponse(status: 200, body: Array(try JSONEncoder().encode(answer)))
        }
        // If the session waits for the sink, the sink comes back by itself, so that the test ends.
        let patience = MonotonicClock.now() + Duration.seconds(30).wholeNanoseconds
        let hanging = FaultyKernel { (_, _) throws(SystemError) in
            while !tale.withLock({ $0.isOver }), MonotonicClock.now() < patience { usleep(1_000) }
        }
        let directories = [try TemporaryDirectory(), try TemporaryDirectory()]
        let sinks = zip(["slow", "quick"], directories).map { SinkConfiguration(name: $0, path: $1.path.string) }
        let gate = TrustGate(clock: MonotonicClock.now)
        let stations = [
            try SinkStation(sinks[0], gate: gate, on: hanging), try SinkStation(sinks[1], gate: gate),
        ]
        let (loops, checker) = (try LoopSet(count: 1, slots: 1), try SinkChecker())
        await WorkerEngine(
            configuration: WorkerConfiguration(servers: [], name: "w", sinks: sinks, slots: 1, version: "0"),
            client: client, gate: gate, loops: loops, stations: stations, checker: checker,
            logger: Logger(label: "test")
        ).run()
        await checker.shutdown()
        await loops.shutdown()
        for station in stations { await station.shutdown() }
        let (openings, additions) = tale.withLock { ($0.openings, $0.additions) }
        #expect(openings.count == 1 && openings.first?.sinks == ["slow", "quick"])
        #expect(openings.first?.marks.map { $0.keys.sorted() } == ["quick"])
        #expect(additions.map(\.name) == ["slow"])
    }
}
