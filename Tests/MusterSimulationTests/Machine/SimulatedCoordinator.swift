import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterSystem

@testable import MusterCoordinator
@testable import MusterStoreModel

/// A coordinator of a history: the production's services of leases over a simulated database and network.
struct SimulatedCoordinator: Sendable {
    let process: SimulatedProcess
    let store: SimulatedStore

    /// Starts a coordinator that answers at `url`.
    static func start(
        _ url: String, over database: SimulatedDatabase, in network: SimulatedNetwork, _ simulation: Simulation,
        timeToLive: Duration, sabotage: Plan.Sabotage? = nil
    ) -> SimulatedCoordinator {
        let process = simulation.process(url)
        let signal = Signal()
        let store = SimulatedStore(database, of: process) { signal.raiseNews() }
        let logger = SimulatedLog.logger(process.name)
        var configuration = CoordinatorConfiguration(database: "")
        configuration.sessionTimeToLive = timeToLive
        let (metrics, asked) = (CoordinatorMetrics(), AskedSessions())
        let dispatcher = ClaimDispatcher(
            store: store, signal: signal, metrics: metrics, logger: logger, clock: simulation.clock, asked: asked)
        // The simulated database cuts files into smaller chunks than any planner.
        let writer = ReportWriter(
            store: store, planner: ChunkPlanner(), metrics: metrics, logger: logger, random: { 0.5 })
        let reports = ReportBatcher(writer: writer)
        let syncs = SyncService(
            store: store, dispatcher: dispatcher, reports: reports, configuration: configuration, metrics: metrics,
            asked: asked, logger: logger)
        process.run { await dispatcher.run() }
        process.run { await reports.run() }
        process.run { await sweep(database, dispatcher, signal, process, sabotage) }
        network.listen(at: url, .init(process: process) { await answer($0, syncs, sabotage) })
        return SimulatedCoordinator(process: process, store: store)
    }

    /// What the table of rounds does in production (`Sweeps`).
    private static func sweep(
        _ database: SimulatedDatabase, _ dispatcher: ClaimDispatcher, _ signal: Signal, _ process: SimulatedProcess,
        _ sabotage: Plan.Sabotage?
    ) async {
        let simulation = process.simulation
        var round = 0
        while (try? await MonotonicClock.sleep(for: .milliseconds(250))) != nil {
            round += 1
            await dispatcher.expire()
            database.transaction { state in
                guard !process.isDead else { return }
                state.sweep(now: simulation.now)
                if sabotage == .holdouts { state.model.holdouts = [:] }
                state.model.releasePurges()
                state.model.sweepGroups()
                // Backoffs end at some time; so do the rests of origins.
                if simulation.chance(150) { state.model.promote() }
                if simulation.chance(50) { state.endRests() }
            }
            // A claim finds nothing where there is no work; an addition wakes the coordinators.
            guard round % 4 == 0, database.read({ $0.hasWork }) else { continue }
            signal.raiseNews()
            try? await dispatcher.findAsked()
        }
    }

    private static func answer(
        _ request: APIRequest, _ syncs: SyncService, _ sabotage: Plan.Sabotage?
    ) async -> APIResponse {
        do {
            let path = request.url.split(separator: "/").dropFirst(2)
            let session = path.dropFirst(2).first.flatMap { Int64($0.prefix { $0 != "?" }) }.map { SessionID($0) }
            switch (request.method, session, path.last) {
            case ("POST", nil, _):
                return try json(try await syncs.open(try document(request)))
            case ("POST", let session?, "sync"):
                var answer = try await syncs.sync(session, try document(request))
                if let sabotage { for index in answer.leases.indices { answer.leases[index].lack(sabotage) } }
                return try json(answer)
            case ("POST", let session?, _):
                return try json(try await syncs.add(try document(request), to: session))
            case ("DELETE", let session?, _):
                try await syncs.close(session, isLost: request.url.hasSuffix("lost=true"))
                return APIResponse(status: 204, body: [])
            case _: throw Problem(.notFound, "no such path")
            }
        } catch {
            let problem = error as? Problem ?? Problem(error)
            let body = (try? JSONEncoder().encode(problem)).map { Array($0) } ?? []
            return APIResponse(status: problem.code.status, body: body)
        }
    }

    private static func document<Document: Decodable>(_ request: APIRequest) throws -> Document {
        guard case .bytes(let body) = request.body else { throw Problem(.invalidRequest, "no body") }
        return try JSONDecoder().decode(Document.self, from: Data(body))
    }

    private static func json(_ document: some Encodable) throws -> APIResponse {
        APIResponse(status: 200, body: Array(try JSONEncoder().encode(document)))
    }
}

extension LeaseDocument {
    /// Leaves out what a broken rule would have told the worker.
    fileprivate mutating func lack(_ sabotage: Plan.Sabotage) {
        switch sabotage {
        case .revocations: revoke = nil
        case .fences: fenced = false
        case .validators: representation = Representation(size: representation.size)
        case .syncs, .earlySyncs, .holdouts, .epochs, .chunks, .purges, .zeroTests: break
        }
    }
}
