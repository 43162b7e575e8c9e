import Glibc
import Logging
import MusterSystem
import SystemPackage

/// One attempt to get a running server for a state directory.
struct Launch: Sendable {
    let stateDirectory: FilePath
    let environment: [String: String]
    let configuration: EmbeddedPostgres.Configuration
    let content: ClusterContent?
    /// Called with what the user should know of the start.
    let onNews: @Sendable (EmbeddedPostgres.StartNews) -> Void
    let logger: Logger

    /// How often files and processes are looked at during a wait.
    static let pollInterval: Duration = .milliseconds(20)

    /// How often processes that have outlived a server are looked at.
    static let outlivingPause: Duration = .milliseconds(200)

    /// Finds or makes the cluster, and returns its server when that accepts connections.
    func run() async throws -> RunningServer {
        try PrivateFiles.makeDirectories(absolute(stateDirectory))
        let state = try PrivateFiles.realPath(stateDirectory)
        var account = try ServerAccount.forNewCluster()
        let location = try await ClusterLocation.resolve(
            stateDirectory: state,
            account: account,
            fallback: configuration.fallbackDirectory
        )
        try PrivateFiles.refuseOther(than: location.logDirectory)
        if let status = try PrivateFiles.status(location.dataDirectory) {
            account = try ServerAccount.owning(location, status: status)
        }
        let ownerLock = try await own(location, stateDirectory: state)
        do {
            try location.settle(state)
            return try await run(location: location, account: account, ownerLock: ownerLock)
        } catch {
            ownerLock.unlock()
            throw error
        }
    }

    /// Takes the owner's lock, for as long as the server is used.
    private func own(_ location: ClusterLocation, stateDirectory: FilePath) async throws -> FileLock {
        // The locks of a process that was killed a moment ago go with its last thread, and with the last child that
        // has not executed its program yet.
        let deadline = ContinuousClock.now + .seconds(1)
        while true {
            if let lock = try PrivateFiles.lock(location.ownerLock) {
                lock.sign()
                return lock
            }
            guard ContinuousClock.now < deadline else {
                let holder = FileLock.signature(location.ownerLock)
                throw EmbeddedPostgresError.inUse(stateDirectory: stateDirectory, processID: holder)
            }
            try await Task.sleep(for: Self.pollInterval)
        }
    }

    private func run(
        location: ClusterLocation,
        account: ServerAccount,
        ownerLock: FileLock
    ) async throws -> RunningServer {
        let deadline = ContinuousClock.now + configuration.startLimit
        let mending = ClusterMending(location: location, account: account, onNews: onNews)
        let supervision = try await tellingOfPredecessor(location, account) {
            try await superviseNext(location, account, deadline: deadline)
        }
        try refuseIncompleteData(location)
        let reserve = configuration.reserve(location)
        try reserve.begin(isNew: try PrivateFiles.status(location.dataDirectory) == nil)
        let (binaries, isNew) = try await cluster(at: location, account: account)
        try prepareLogDirectory(location, account: account)
        let predecessor =
            isNew
            ? nil
            : try await tellingOfPredecessor(location, account) {
                try await leftover(location, binaries: binaries, mending: mending, deadline: deadline)
            }
        let supervised = Supervised(
            launch: self,
            location: location,
            binaries: binaries,
            account: account,
            ownerLock: ownerLock,
            mending: mending,
            deadline: deadline
        )
        if let predecessor {
            return try await supervised.adopt(predecessor, lock: consume supervision)
        }
        if !isNew { try mending.prepare() }
        return try await supervised.start(lock: consume supervision, isNew: isNew)
    }

    /// Takes the supervision lock. While an earlier supervisor holds it, that supervisor's parent is dead (this process
    /// holds the owner's lock), so that it is about to stop its server: an adopted server would be lost a moment later.
    func superviseNext(
        _ location: ClusterLocation, _ account: ServerAccount, deadline: ContinuousClock.Instant
    ) async throws -> FileLock {
        while true {
            if let lock = try PrivateFiles.lock(location.supervisionLock) { return lock }
            guard ContinuousClock.now < deadline else {
                throw EmbeddedPostgresError.predecessorRunning(
                    try await predecessor(of: location, account), log: location.logTail())
            }
            try await Task.sleep(for: Self.pollInterval)
        }
    }

    /// The binaries for the cluster, which is made if there is none.
    private func cluster(
        at location: ClusterLocation,
        account: ServerAccount
    ) async throws -> (binaries: ServerBinaries, isNew: Bool) {
        let dataDirectory = location.dataDirectory
        let version = try PrivateFiles.tail(dataDirectory.appending("PG_VERSION"), limitBytes: 64)
            .map { String($0.prefix { !$0.isWhitespace }) }
        guard version?.allSatisfy(\.isNumber) != false else {
            throw location.damaged("its PG_VERSION names no version")
        }
        let binaries = try await ServerBinaries.find(environment: environment, location: location, dataVersion: version)
        guard version == nil else { return (binaries, false) }
        logger.info(
            "postgres.cluster.create",
            metadata: ["postgres.data": "\(dataDirectory)", "postgres.version": "\(binaries.version)"]
        )
        try await ClusterCreation(
            location: location, binaries: binaries, account: account, template: template(binaries, account)
        ).run()
        return (binaries, true)
    }

    private func template(_ binaries: ServerBinaries, _ account: ServerAccount) -> ClusterTemplate? {
        let directory = ClusterTemplate.directory(
            environment: environment, fallback: configuration.fallbackDirectory, account: account)
        guard configuration.usesTemplate, let directory else { return nil }
        return ClusterTemplate(
            directory: directory, binaries: binaries, account: account, content: content,
            hasTemplateDatabases: configuration.hasTemplateDatabases, environment: environment, logger: logger)
    }

    /// Refuses a cluster that lacks what every server needs. A cluster is made whole or not at all, so it was damaged since.
    private func refuseIncompleteData(_ location: ClusterLocation) throws {
        let data = location.dataDirectory
        guard try PrivateFiles.status(data) != nil, let missing = try PrivateFiles.missing(inCluster: data) else {
            return
        }
        throw location.damaged("\(missing) is missing or empty, or no file")
    }

    private func prepareLogDirectory(_ location: ClusterLocation, account: ServerAccount) throws {
        let isNew = try PrivateFiles.makeDirectoryIfMissing(location.logDirectory, permissions: 0o700)
        if isNew, account.needsSwitch { try PrivateFiles.give(location.logDirectory, to: account) }
    }

    /// The server that an earlier process left over, if there is a usable one; if not, no process works in the data directory.
    private func leftover(
        _ location: ClusterLocation,
        binaries: ServerBinaries,
        mending: ClusterMending,
        deadline: ContinuousClock.Instant
    ) async throws -> PostmasterFile? {
        let path = location.dataDirectory.appending(PostmasterFile.name)
        var silences = 0
        let beganAt = ContinuousClock.now
        var isToldToQuit = false
        while try PrivateFiles.status(path) != nil {
            let file = try PostmasterFile.read(dataDirectory: location.dataDirectory)
            var pause = Self.pollInterval
            if let file, try await file.isServer(of: location.dataDirectory) {
                switch file.status {
                case .ready:
                    if try await answers(file, binaries: binaries) { return file }
                    silences += 1
                    // Its socket may have been cleaned away; a server that can't be reached is of no use.
                    if silences == 10, kill(file.processID, SIGINT) != 0 {
                        throw EmbeddedPostgresError.fileOperation("signal", path: path, errno: Errno(rawValue: errno))
                    }
                case .starting: break
                case .stopping:
                    // A fast shutdown may wait for one of the server's processes in vain. An immediate shutdown kills the
                    // processes that don't end; the next start recovers from the log (F5).
                    guard !isToldToQuit, ContinuousClock.now - beganAt > configuration.stopLimit else { break }
                    isToldToQuit = true
                    logger.warning("postgres.predecessor.stuck", metadata: ["postgres.pid": "\(file.processID)"])
                    _ = kill(file.processID, SIGQUIT)
                }
            } else if try await ServerProcesses.working(in: location.dataDirectory, as: mending.account).isEmpty {
                guard let file else {
                    // The server may have ended, and removed its file, since the file was seen. No process is left that
                    // could remove it from now on.
                    if try PrivateFiles.status(path) != nil { try mending.setServerFileAside() }
                    return nil
                }
                if kill(file.processID, 0) == 0 || errno == EPERM {
                    try file.disown(dataDirectory: location.dataDirectory)
                }
                return nil
            } else {
                // Processes that outlived a killed server end by themselves as soon as they notice.
                pause = Self.outlivingPause
            }
            guard ContinuousClock.now < deadline else {
                throw EmbeddedPostgresError.predecessorRunning(
                    try await predecessor(of: location, mending.account), log: location.logTail())
            }
            try await Task.sleep(for: pause)
        }
        return nil
    }

    /// Whether a server answers on its socket. Without `pg_isready`, which distributions pack with the client, the status
    /// in the server's file is trusted.
    private func answers(_ file: PostmasterFile, binaries: ServerBinaries) async throws -> Bool {
        guard let socketDirectory = file.socketDirectory else { return false }
        let program = binaries.program("pg_isready")
        guard PrivateFiles.isExecutable(program) else { return true }
        let arguments = ["-h", socketDirectory.string, "-p", "5432", "-t", "5", "-q"]
        return try await PostgresTool(path: program, arguments: arguments).run().succeeded
    }

    private func absolute(_ path: FilePath) throws -> FilePath {
        path.isAbsolute ? path : try PrivateFiles.realPath(".").pushing(path)
    }
}
