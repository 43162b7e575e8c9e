import FoundationEssentials
import MusterAPI
import MusterCore
import MusterSystem
import MusterTestSupport
import Synchronization
import Testing

/// One worker in the simulation, with a coordinator that the test scripts.
@Suite struct EngineTests {
    /// Grants one lease, and drains the worker when the lease is done.
    private final class ScriptedCoordinator: Sendable {
        let lease: LeaseDocument
        private let reports = Mutex<[Report]>([])
        private let isGranted = Atomic(false)

        init(_ lease: LeaseDocument) { self.lease = lease }

        var done: Report? { reports.withLock { $0.first { $0.kind == .done } } }

        func answer(_ request: APIRequest) -> APIResponse {
            guard case .bytes(let body) = request.body else { return APIResponse(status: 204, body: []) }
            do {
                guard request.url.hasSuffix("/sync") else {
                    let opening = try JSONDecoder().decode(SessionRequest.self, from: Data(body))
                    let document = SessionDocument(
                        id: SessionID(1), ttlMilliseconds: 30_000, installation: "0a1b2c3d-0000-4000-8000-000000000001",
                        marks: opening.marks)
                    return APIResponse(status: 200, body: Array(try JSONEncoder().encode(document)))
                }
                let sync = try JSONDecoder().decode(SyncRequest.self, from: Data(body))
                var answer = SyncResponse(ttlMilliseconds: 30_000)
                if sync.room > 0, sync.held.isEmpty, !isGranted.exchange(true, ordering: .relaxed) {
                    answer.leases = [lease]
                }
                answer.drain = reports.withLock { reports in
                    reports += sync.reports
                    return reports.contains { $0.kind == .done }
                }
                return APIResponse(status: 200, body: Array(try JSONEncoder().encode(answer)))
            } catch {
                return APIResponse(status: 400, body: [])
            }
        }
    }

    /// Runs a worker that fetches one file; returns what happened in the order of turns.
    private func fetch(seed: UInt64) throws -> (file: [UInt8]?, expected: [UInt8], report: Report?, turns: Int) {
        let simulation = Simulation(seed: seed)
        let network = SimulatedNetwork(simulation)
        let origin = SimulatedOrigin("o.test")
        network.add(origin)
        origin.serve("/f", .init(seed: 7, size: 30_000, validator: .strong))
        let disk = SimulatedDisk(capacity: 1 << 24)
        var lease = LeaseDocument(
            name: LeaseName(chunk: ChunkID(1), epoch: LeaseEpoch(1)), kind: .fetch, task: TaskID(1), sink: "default",
            path: "out/f")
        lease.end = 1 << 20
        lease.lane = 1
        lease.origin = "http://o.test:80"
        lease.source = LeaseSource(ordinal: 0, url: origin.url("/f"), headers: [:])
        let coordinator = ScriptedCoordinator(lease)
        network.listen(
            at: "http://c1",
            .init(process: simulation.process("c1")) { request in coordinator.answer(request) })
        let worker = try SimulatedWorker.start("w1", servers: ["http://c1"], on: disk, in: network, simulation)
        simulation.run(until: simulation.now + 60_000_000_000) { coordinator.done == nil }
        worker.process.kill()
        simulation.run(until: simulation.now + 60_000_000_000)
        return (disk.content(at: "out/f"), origin.contents(of: "/f")[0], coordinator.done, simulation.turns)
    }

    @Test func theWorkersOwnEngineFetchesAFileOnOneThread() throws {
        let (file, expected, report, _) = try fetch(seed: 1)
        let isWhole = file == expected
        #expect(isWhole)
        #expect(report?.finished?.size == 30_000)
    }
}
