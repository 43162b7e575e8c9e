import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage

/// Everything of the storm that faults act on: two coordinators behind a balancer, four workers on one sink, a primary and its standby, origins, a
/// receiver, another installation on the same sink, and a path between any two of them.
struct StormScene: Sendable {
    let fleet: Fleet
    let database: StormDatabase
    let links: StormLinks
    let origins: StormOrigins
    let receiver: StormReceiver
    let strangers: StormStrangers
    let canary: StormCanary
    let ledger: StormLedger
    let report: StormReport
    /// The small file system of ``diskWorker``; nil where this process may not mount.
    let disk: SmallDisk?
    /// What makes the calls of ``disturbedWorker`` fail; nil where it is not installed.
    let disturber: StormDisturber?
    /// The port of the balancer.
    let balancerPort: Int
    /// Whether it lasts for ten minutes or longer.
    let isLong: Bool

    /// The worker that also has the sink `small`.
    static let diskWorker = "w1"
    /// The worker whose calls fail.
    static let disturbedWorker = "w3"

    /// Starts all of it but the other installation, in a fleet without a coordinator.
    static func start(
        _ fleet: Fleet, _ database: StormDatabase, _ origins: StormOrigins, _ receiver: StormReceiver,
        _ strangers: StormStrangers, _ report: StormReport, isLong: Bool
    ) async throws -> (scene: StormScene, balancer: RealServer) {
        await database.use(fleet.conninfo)
        var paths: [StormLinks.Kind: [DistantPath]] = [.origin: origins.paths]
        for _ in 0..<2 {
            let way = try await database.openPaths()
            paths[.database, default: []] += way.paths
            let coordinator = try await fleet.startCoordinator(database: way.conninfo)
            let path = try await DistantPath.open(to: .port(coordinator.port))
            paths[.coordinator, default: []].append(path)
        }
        let ways = paths[.coordinator] ?? []
        let balancer = try await HAProxyServer.start(before: ways.map(\.port))
        await fleet.use(balancer: balancer.url)

        let disk = try await SmallDisk.mount(at: fleet.scratch.appending("disk"), mebibytes: 64)
        let disturber = try await StormDisturber.find(below: fleet.scratch)
        for name in StormClient.workers {
            var setup = Fleet.WorkerSetup(slots: 8)
            let path = try await DistantPath.open(to: .port(balancer.port))
            paths[.worker, default: []].append(path)
            setup.servers = path.url
            if let disk, name == diskWorker {
                setup.prefix = disk.prefix
                setup.options = ["--sink", "small=\(disk.path)"]
            }
            if let disturber, name == disturbedWorker { setup.prefix = disturber.prefix }
            try await fleet.startWorker(name, setup)
        }
        let links = StormLinks(paths: paths)
        let scene = StormScene(
            fleet: fleet, database: database, links: links, origins: origins, receiver: receiver, strangers: strangers,
            canary: StormCanary(fleet: fleet, origin: origins.steady), ledger: StormLedger(), report: report,
            disk: disk, disturber: disturber, balancerPort: balancer.port, isLong: isLong)
        return (scene, balancer)
    }

    /// Ends all faults of the surroundings.
    func calm() async {
        await links.calm()
        origins.calm()
        receiver.calm()
    }
}

/// Small files that are fetched one after the other, to see how soon the installation works again after a fault.
struct StormCanary: Sendable {
    /// The group of the files, and their folder.
    static let group = "canary"

    let fleet: Fleet
    let origin: ScriptedOrigin
    private let count = Observed(0)

    init(fleet: Fleet, origin: ScriptedOrigin) {
        self.fleet = fleet
        self.origin = origin
    }

    /// Makes the group, which comes before all others.
    func begin() async throws {
        _ = origin.serveFile(Self.group, size: 2_000, seed: 99)
        try await fleet.persistently { client in
            do {
                _ = try await client.createGroup(GroupRequest(name: Self.group, priority: 100))
            } catch let problem as Problem where problem.code == .groupExists {
                // The answer to an earlier request was lost.
            }
        }
    }

    /// Has one more file fetched, and returns how long that took.
    ///
    /// - Parameter whileWaiting: called before each look.
    func sing(
        after what: String, limit: Duration, whileWaiting: @Sendable () async throws -> Void = {}
    ) async throws -> Duration {
        let start = ContinuousClock.now
        let number = count.update { count in
            count += 1
            return count
        }
        let key = "\(Self.group)/\(number)"
        let task = TaskRequest(urls: ["\(origin.url)/\(Self.group)?n=\(number)"], path: key)
        try await eventually("a new file after this: \(what)", limit: limit) {
            do {
                _ = try await fleet.client().addTasks([task], to: Self.group, reopen: true)
                return true
            } catch is Unreachable {
                return false
            } catch let problem as Problem where problem.status == 503 || problem.code == .busy {
                return false
            }
        }
        let rest = max(.seconds(1), limit - (ContinuousClock.now - start))
        try await eventually("a new file in place after this: \(what)", limit: rest) {
            try await whileWaiting()
            return try await fleet.persistently { try await $0.task(key, of: Self.group) }.state == .succeeded
        }
        return ContinuousClock.now - start
    }

    /// Seals the group: it ends as all others do.
    func end() async throws {
        _ = try await fleet.persistently { try await $0.apply(.seal, to: Self.group) }
    }
}
