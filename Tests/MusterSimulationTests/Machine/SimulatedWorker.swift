import Logging
import MusterAPI
import MusterSystem

@testable import MusterWorker

/// A worker of a history: the production's engine with a disk, a loop and a network of the simulation.
struct SimulatedWorker: Sendable {
    let process: SimulatedProcess
    let disk: ProcessDisk

    /// Starts a worker of this name.
    static func start(
        _ name: String, servers: [String], on disk: SimulatedDisk, in network: SimulatedNetwork,
        _ simulation: Simulation,
        atCall: @escaping @Sendable (SimulatedProcess) -> ProcessDisk.CallFault? = { _ in nil }
    ) throws -> SimulatedWorker {
        let process = simulation.process(name)
        let system = ProcessDisk(disk, of: process, atCall: atCall)
        let clock = simulation.clock
        // Whatever is made here takes its times from the simulation.
        let engine = try MonotonicClock.$current.withValue(clock) {
            let carrier = BlockingPool.Carrier.turns { process.call($0) }
            let gate = TrustGate(clock: clock.now)
            let sink = SinkConfiguration(name: "default", path: SimulatedDisk.path)
            let station = try SinkStation(sink, gate: gate, directories: 16, on: system, carrier: carrier)
            let configuration = WorkerConfiguration(
                servers: servers, name: name, sinks: [sink], slots: 4, loops: 1, version: "0")
            let logger = SimulatedLog.logger(process.name)
            return WorkerEngine(
                configuration: configuration,
                client: MusterClient(servers: servers, token: nil, send: network.send(of: process)),
                gate: gate,
                loops: LoopSet([SimulatedLoop(of: process, in: network)]),
                stations: [station],
                checker: try SinkChecker(carrier: carrier),
                logger: logger,
                seed: UInt64(bitPattern: simulation.random(0 ... .max)))
        }
        process.run { await engine.run() }
        return SimulatedWorker(process: process, disk: system)
    }
}
