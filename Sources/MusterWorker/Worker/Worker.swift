import Glibc
public import Logging
import MusterAPI
import MusterCore
import MusterSystem
public import ServiceLifecycle

/// A worker: leases chunks from coordinators, fetches them into its sinks, and puts finished files in place.
///
/// `run` continues until graceful shutdown, which drains the worker: running chunks are made durable and given back,
/// complete files are put in place, and the session is closed; all within 10 s. It also returns when the coordinator
/// drains the worker.
public struct Worker: Service {
    private let configuration: WorkerConfiguration
    private let logger: Logger

    /// Checks the configuration.
    public init(configuration: WorkerConfiguration, logger: Logger) throws(WorkerRefusal) {
        guard !configuration.servers.isEmpty else { throw .noServer }
        guard !configuration.sinks.isEmpty else { throw .noSink }
        guard configuration.sinks.count <= Limits.sinksPerWorker else { throw .tooManySinks }
        var names: Set<String> = []
        for sink in configuration.sinks {
            guard NameRule.accepts(sink.name) else { throw .badName(sink.name) }
            guard names.insert(sink.name).inserted else { throw .duplicateSink(sink.name) }
        }
        guard NameRule.accepts(configuration.name) else { throw .badName(configuration.name) }
        guard Limits.slots.contains(configuration.slots) else { throw .badSlots(configuration.slots) }
        if let rate = configuration.bytesPerSecond, !Limits.bytesPerSecond.contains(rate) { throw .badRate(rate) }
        self.configuration = configuration
        self.logger = logger
    }

    /// Works until it is drained. Throws `WorkerRefusal.outOfResources` when its threads can't be started, or too
    /// few files may be open.
    public func run() async throws {
        DescriptorLimit.raise()
        var configuration = configuration
        var logger = logger
        logger[metadataKey: WorkerMetadataKey.worker.rawValue] = .string(configuration.name)
        let (limit, sinks) = (DescriptorLimit.current, configuration.sinks.count)
        let workers = configuration.workersInProcess
        try DescriptorLimit.check(limit, sinks: sinks, workers: workers)
        let transfers = DescriptorLimit.transfers(of: limit, sinks: sinks, workers: workers)
        if transfers < configuration.slots {
            logger.warning(
                "The process may not open enough files for all its slots",
                metadata: .init([
                    .slots: "\(configuration.slots)", .used: "\(transfers)", .limit: "\(limit)",
                ])
            )
            configuration.slots = transfers
        }
        let gate = TrustGate(clock: MonotonicClock.now)
        var stations: [SinkStation] = []
        let loops: LoopSet
        let transport: CurlTransport
        let checker: SinkChecker
        do {
            loops = try LoopSet(count: loopCount, slots: configuration.slots)
            transport = try CurlTransport()
            let directories = DescriptorLimit.directories(of: limit, sinks: sinks, workers: workers)
            checker = try SinkChecker()
            for sink in configuration.sinks {
                stations.append(try SinkStation(sink, gate: gate, directories: directories))
            }
        } catch {
            for station in stations { await station.shutdown() }
            throw WorkerRefusal.outOfResources("\(error)")
        }
        let client = MusterClient(servers: configuration.servers, tokens: configuration.tokens, send: transport.send)
        let engine = WorkerEngine(
            configuration: configuration,
            client: client,
            gate: gate,
            loops: loops,
            stations: stations,
            checker: checker,
            logger: logger
        )
        await engine.run()
        await loops.shutdown()
        await transport.shutdown()
        // Last, with the sinks: a call to a sink may hang.
        await checker.shutdown()
        for station in stations { await station.shutdown() }
    }

    private var loopCount: Int {
        configuration.loops > 0 ? min(configuration.loops, 64) : min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }
}
