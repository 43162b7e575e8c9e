import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterSystem
import MusterTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MusterWorker

/// All that a job needs except a coordinator: a sink, a loop, a gate with a manual clock, and a record of what jobs report.
final class JobBench: Sendable {
    let directory: TemporaryDirectory
    let station: SinkStation
    let gate: TrustGate
    let context: JobContext
    let clock: Clock
    /// Nanoseconds that are added to the age of everything known of origins.
    let age: Clock
    let news = Observed<[(name: LeaseName, news: JobNews)]>([])
    private let loops: LoopSet

    /// A clock that only moves when it is told to.
    final class Clock: Sendable {
        let now = Atomic<Int64>(0)
    }

    init(
        on system: any FileSystem = Kernel(),
        _ configure: (inout WorkerConfiguration) throws -> Void = { _ in }
    ) async throws {
        directory = try TemporaryDirectory()
        let clock = Clock()
        self.clock = clock
        let age = Clock()
        self.age = age
        gate = TrustGate { clock.now.load(ordering: .sequentiallyConsistent) }
        station = try SinkStation(
            SinkConfiguration(name: "default", path: directory.path.string), gate: gate, on: system)
        // A test's idle connections are not closed, even on a slow machine.
        loops = try LoopSet(count: 1, slots: 16, idlePatience: .seconds(600))
        var configuration = WorkerConfiguration(
            servers: [],
            name: "w",
            sinks: [SinkConfiguration(name: "default", path: directory.path.string)],
            version: "0"
        )
        try configure(&configuration)
        let monotonic: @Sendable () -> Int64 = {
            MonotonicClock.now() + age.now.load(ordering: .sequentiallyConsistent)
        }
        context = JobContext(
            configuration: configuration,
            gate: gate,
            loops: loops,
            stations: [station],
            logger: Logger(label: "test"),
            now: monotonic,
            // Recent answers stay recent, however slow the machine is.
            conduct: OriginConduct { age.now.load(ordering: .sequentiallyConsistent) },
            beliefs: OriginBeliefs { age.now.load(ordering: .sequentiallyConsistent) },
            // No file loses its turn, even on a slow machine.
            witnesses: OriginWitnesses(turnTime: 600_000_000_000, now: monotonic),
            tell: { [news] name, what in news.update { $0.append((name, what)) } }
        )
        let mark = try SinkDirectory.mark(at: directory.path.string)
        _ = await station.begin(try ScratchSink.session(1), mark: mark)
        _ = gate.open(until: 1_000)
    }

    func close() async {
        await loops.shutdown()
        await station.shutdown()
    }

    func run(_ lease: LeaseDocument, control: LeaseControl = LeaseControl()) async -> JobEnding {
        await LeaseJob(lease: lease, context: context, control: control).run()
    }

    /// What jobs have reported as learned, for any lease.
    var learned: [Report.Learned] {
        news.value.compactMap { if case .progress(_, let learned) = $0.news { learned } else { nil } }
    }

    /// Puts a file below the sink that Muster did not make; `modified` is in seconds since 1970.
    func put(_ path: String, _ bytes: [UInt8], modified: Int64? = nil) throws {
        let place = directory.path.appending(path).string
        try FileManager.default.createDirectory(
            at: URL(filePath: place).deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(bytes).write(to: URL(filePath: place))
        guard let modified else { return }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: Double(modified))],
            ofItemAtPath: place
        )
    }

    /// The bytes of a finished file.
    func file(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: directory.path.appending(path).string)))
    }

    /// When a file was changed last, in seconds since 1970.
    func modificationTime(_ path: String) throws -> Int64? {
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path.appending(path).string)
        return (attributes[.modificationDate] as? Date).map { Int64($0.timeIntervalSince1970) }
    }

    func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: directory.path.appending(path).string)
    }

    /// The bytes of a part; of the open part if there is one, wherever it is.
    func part(_ lease: LeaseDocument) throws -> [UInt8] {
        let name = PartName(lease.task, version: lease.version)
        if let descriptor = station.equipment?.directory.registry.open(name)?.descriptor {
            var bytes = [UInt8](repeating: 0, count: Int(try descriptor.status().size))
            let count = try bytes.withUnsafeMutableBytes { try descriptor.read(into: $0, at: 0) }
            return Array(bytes.prefix(count))
        }
        return try file("\(ScratchSink.parts)/\(lease.task).\(lease.version).part")
    }

    /// Waits until so many bytes of a part are written. There is no signal for that; an origin says only that it sent them.
    func waitForBytes(_ lease: LeaseDocument, _ count: Int64) async throws {
        while (try? Int64(part(lease).count)) ?? 0 < count { try await Task.sleep(for: .milliseconds(5)) }
    }
}

/// Runs a test on a bench and ends its threads.
func withBench(
    _ transport: ScriptedOrigin.Transport = .plain,
    configure: (inout WorkerConfiguration) throws -> Void = { _ in },
    _ body: (JobBench, ScriptedOrigin) async throws -> Void
) async throws {
    let origin = try await ScriptedOrigin.start(transport: transport)
    let bench = try await JobBench { configuration in
        configuration.caFile = origin.caFile?.string
        try configure(&configuration)
    }
    do {
        try await body(bench, origin)
    } catch {
        await bench.close()
        await origin.stop()
        throw error
    }
    await bench.close()
    await origin.stop()
}

let mebibyte: Int64 = 1 << 20

extension LeaseDocument {
    /// An unplanned fetch of the first 8 MiB of a file.
    static func first(_ url: String, task: Int64 = 1, path: String = "out/file.bin") -> LeaseDocument {
        var lease = LeaseDocument(
            name: LeaseName(chunk: ChunkID(task * 100), epoch: LeaseEpoch(1)), kind: .fetch, task: TaskID(task),
            sink: "default", path: path)
        lease.end = 8 * mebibyte
        lease.source = LeaseSource(ordinal: 0, url: url, headers: [:])
        return lease
    }

    /// A planned chunk of a file that is known.
    static func chunk(_ url: String, _ start: Int64, _ end: Int64, of representation: Representation) -> LeaseDocument {
        var lease = LeaseDocument.first(url)
        lease.start = start
        lease.end = end
        lease.planned = true
        lease.resume = DurablePrefix(offset: start, crc: 0)
        lease.representation = representation
        return lease
    }
}

extension JobEnding {
    var failure: Report.Failure? {
        if case .failed(let failure, _, _) = self { failure } else { nil }
    }
    var durable: DurablePrefix? {
        switch self {
        case .done(let durable, _, _), .failed(_, let durable, _), .released(let durable, _),
            .sinkTrouble(_, let durable, _):
            durable
        case .purged, .restart, .aborted, .resolved, .servedAgain, .unsettled: nil
        }
    }
    var finished: Report.Finished? {
        if case .done(_, _, let finished) = self { finished } else { nil }
    }
    var learned: Report.Learned? {
        switch self {
        case .done(_, let learned, _), .failed(_, _, let learned): learned
        default: nil
        }
    }
    var resolved: ResolverAnswer? {
        if case .resolved(let answer) = self { answer } else { nil }
    }
    var isRestart: Bool { if case .restart = self { true } else { false } }
    var isAborted: Bool { if case .aborted = self { true } else { false } }
}

func crc(_ bytes: [UInt8]) -> UInt32 { CRC32C.extend(CRC32C.empty, bytes) }

extension JobBench {
    /// Runs `body` while the origin sends a file.
    func serving(_ origin: ScriptedOrigin, _ body: () async throws -> Void) async throws {
        origin.serve("/slow.iso", ScriptedOrigin.File(.seeded(seed: 60, size: 4 * mebibyte)))
        origin.hold("/slow.iso", afterBytes: 2 * mebibyte)
        var lease = LeaseDocument.first(origin.url("/slow.iso"), task: 9, path: "slow.iso")
        lease.asksForAll = true
        async let slow = run(lease)
        try await waitForBytes(lease, 1)
        try await body()
        origin.release("/slow.iso")
        #expect(await slow.finished?.size == 4 * mebibyte)
    }
}
