import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterSystem
import Synchronization
import Testing

@testable import MusterWorker

/// Sessions that a coordinator, scripted by the test, opens only without one of the worker's sinks.
@Suite struct SessionOpenerTests {
    private struct Sent {
        var openings: [SessionRequest] = []
        var additions: [SessionSinkRequest] = []
    }

    /// A worker with the sinks `mem`, whose directory is new, and `default`.
    private struct Bench {
        let opener: SessionOpener
        let mem: SinkStation
        let paths: [String]

        init(_ send: @escaping APISend) throws {
            paths = [try ScratchSink.makeDirectory(), try ScratchSink.makeDirectory()]
            let sinks = [
                SinkConfiguration(name: "mem", path: paths[0], identity: .replaced),
                SinkConfiguration(name: "default", path: paths[1]),
            ]
            let gate = TrustGate(clock: MonotonicClock.now)
            let stations = try sinks.map { try SinkStation($0, gate: gate) }
            mem = stations[0]
            opener = SessionOpener(
                configuration: WorkerConfiguration(servers: [], name: "w", sinks: sinks, version: "0"),
                client: MusterClient(servers: ["http://127.0.0.1:1"], token: nil, send: send), stations: stations,
                late: { _, _ in })
        }

        /// Probes the sinks, as a worker does when it starts, and asks for a session.
        func open() async -> MachineInput? {
            for station in opener.stations { _ = await station.probe() }
            return await opener.open(SessionRequest(name: "w", sinks: ["mem", "default"], slots: 1, version: "0"))
        }

        func close() async {
            for station in opener.stations { await station.shutdown() }
            for path in paths { ScratchSink.remove(path) }
        }
    }

    private static func answer(_ value: some Encodable, status: Int = 200) throws -> APIResponse {
        APIResponse(status: status, body: Array(try JSONEncoder().encode(value)))
    }

    private static func refusal(_ detail: String, at place: Int? = nil) throws -> APIResponse {
        try answer(Problem(.conflict, detail, pointer: place.map { "/sinks/\($0)" }), status: 409)
    }

    private static func document<Value: Decodable>(_ type: Value.Type, of request: APIRequest) throws -> Value {
        guard case .bytes(let body) = request.body else { throw CancellationError() }
        return try JSONDecoder().decode(type, from: Data(body))
    }

    /// The directory is new to the coordinator, which learns of it without a new session: the other sink's work goes on (I19).
    @Test func aSinkThatAppearsLaterJoinsTheSession() async throws {
        let sent = Mutex(Sent())
        let bench = try Bench { request in
            if request.url.hasSuffix("/sinks") {
                let addition = try Self.document(SessionSinkRequest.self, of: request)
                sent.withLock { $0.additions.append(addition) }
                return try Self.answer(SessionSinkDocument(mark: addition.mark))
            }
            let opening = try Self.document(SessionRequest.self, of: request)
            sent.withLock { $0.openings.append(opening) }
            return try Self.answer(
                SessionDocument(
                    id: SessionID(1), ttlMilliseconds: 30_000, installation: ScratchSink.installation,
                    marks: opening.marks))
        }
        let late = bench.opener.stations[1]
        ScratchSink.remove(bench.paths[1])
        guard case .sessionOpened(_, let sinks)? = await bench.open() else {
            await bench.close()
            throw StorageError.unavailable(.init("no session was opened"))
        }
        let status = sinks.first { $0.name == "default" }
        #expect(status?.parked == .storage)
        #expect(status?.detail?.contains("make the directory") == true, "\(String(describing: status))")
        #expect(sinks.first { $0.name == "mem" }?.parked == nil && bench.mem.equipment != nil)
        if case .trouble = await bench.opener.probe(late) {} else { Issue.record("it is not there yet") }

        #expect(mkdir(bench.paths[1], 0o755) == 0)
        if case .well = await bench.opener.probe(late) {} else { Issue.record("the session did not begin there") }
        #expect(late.equipment != nil)
        let (additions, openings) = sent.withLock { ($0.additions, $0.openings.count) }
        #expect(additions.map(\.name) == ["default"] && additions.first?.mark == late.mark && late.mark != nil)
        #expect(openings == 1)
        await bench.close()
    }

    @Test func aRefusedSinkStaysOutOfTheSessionUntilItsDirectoryIsTaken() async throws {
        let sent = Mutex(Sent())
        let bench = try Bench { request in
            if request.url.hasSuffix("/sinks") {
                let addition = try Self.document(SessionSinkRequest.self, of: request)
                let count = sent.withLock { sent in
                    sent.additions.append(addition)
                    return sent.additions.count
                }
                switch count {
                case 1: return try Self.refusal("a group has files there")
                case 2: return try Self.answer(Problem(.notFound, "no such path"), status: 404)
                default: return try Self.answer(SessionSinkDocument(mark: addition.mark))
                }
            }
            let opening = try Self.document(SessionRequest.self, of: request)
            sent.withLock { $0.openings.append(opening) }
            if let place = opening.sinks.firstIndex(of: "mem") {
                return try Self.refusal("another worker has it", at: place)
            }
            return try Self.answer(
                SessionDocument(
                    id: SessionID(1), ttlMilliseconds: 30_000, installation: ScratchSink.installation,
                    marks: opening.marks))
        }
        guard case .sessionOpened(let session, let sinks)? = await bench.open() else {
            await bench.close()
            throw StorageError.unavailable(.init("no session was opened"))
        }
        let openings = sent.withLock { $0.openings }
        #expect(openings.map(\.sinks) == [["mem", "default"], ["default"]])
        #expect(openings.map(\.replaced) == [["mem"], []] && openings.last?.marks?["mem"] == nil)
        #expect(session.id == SessionID(1) && Set(sinks.map(\.name)) == ["mem", "default"])
        #expect(sinks.first { $0.name == "mem" }?.detail == "another worker has it")
        #expect(sinks.first { $0.name == "default" }?.parked == nil)

        let refused = ProbeResult.trouble(SinkTrouble(kind: .storage, detail: "a group has files there"))
        #expect(await bench.opener.probe(bench.mem) == refused)
        #expect(await bench.opener.probe(bench.mem) == refused, "a call that fails says nothing new")
        #expect(bench.mem.equipment == nil)
        if case .well = await bench.opener.probe(bench.mem) {} else { Issue.record("the session did not begin") }
        let additions = sent.withLock { $0.additions }
        #expect(additions.allSatisfy { $0.isReplaced == true && $0.mark == bench.mem.mark })
        #expect(bench.mem.equipment != nil)
        #expect(try SinkDirectory.knownMark(at: bench.paths[0]) == bench.mem.mark)
        if case .well = await bench.opener.probe(bench.mem) {} else { Issue.record("the sink is not well") }
        #expect(sent.withLock { $0.additions.count } == 3, "a sink of the session is not asked for")
        await bench.close()
    }

    /// A probe asks for the sink while the session is lost, and the next session is opened without the sink, too.
    @Test func aSinkThatJoinsASessionThatIsOverIsNotWell() async throws {
        let bench = try Bench { _ in throw CancellationError() }
        let (former, next) = (try ScratchSink.session(1), try ScratchSink.session(2))
        let trouble = SinkTrouble(kind: .storage, detail: "another worker has it")
        bench.mem.stayOut(of: former, trouble)
        // Its threads are busy, so that the session begins late.
        let hold = try EventDescriptor(.semaphore)
        for _ in 0..<4 { #expect(bench.mem.pool.submit { hold.take() } == nil) }
        let mem = bench.mem
        async let joined = mem.join(former, mark: nil)
        while mem.absence != nil { try await Task.sleep(for: .milliseconds(1)) }
        mem.stayOut(of: next, trouble)
        for _ in 0..<4 { hold.raise() }
        let result = await joined
        if case .well = result { Issue.record("the next session lacks it") }
        #expect(mem.equipment == nil && mem.absence?.session == next)
        await bench.close()
    }

    @Test func aSessionIsRefusedAsAWholeIfNoSinkIsLeft() async throws {
        let sent = Mutex(Sent())
        let bench = try Bench { request in
            let opening = try Self.document(SessionRequest.self, of: request)
            sent.withLock { $0.openings.append(opening) }
            return try Self.refusal("no \(opening.sinks[0])", at: 0)
        }
        guard case .sessionRefused(.refused(let reason))? = await bench.open() else {
            await bench.close()
            throw StorageError.unavailable(.init("the session was not refused"))
        }
        #expect(reason.hasSuffix("mem: no mem; default: no default"), "\(reason)")
        #expect(sent.withLock { $0.openings.map(\.sinks) } == [["mem", "default"], ["default"]])
        await bench.close()
    }
}
