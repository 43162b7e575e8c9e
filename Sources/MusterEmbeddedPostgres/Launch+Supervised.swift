import Glibc
import Logging
import MusterSystem
import SystemPackage

/// A cluster that is ready for its server, under the locks.
struct Supervised: Sendable {
    let launch: Launch
    let location: ClusterLocation
    let binaries: ServerBinaries
    let account: ServerAccount
    let ownerLock: FileLock
    let mending: ClusterMending
    let deadline: ContinuousClock.Instant

    /// Takes a server over: from now on it ends with this process.
    func adopt(_ file: PostmasterFile, lock: consuming FileLock) async throws -> RunningServer {
        let supervisor = try await supervise(.adopt(processID: file.processID), lock: lock)
        return try running(file, supervisor: supervisor, provenance: .adopted)
    }

    /// Starts the server, and waits until it accepts connections.
    func start(lock: consuming FileLock, isNew: Bool) async throws -> RunningServer {
        let socketDirectory = try location.makeSocketDirectory(account: account)
        // No server of this cluster is alive, so a socket's lock file there is stale, whatever process has its id by now.
        for name in [ClusterLocation.socketName, "\(ClusterLocation.socketName).lock"] {
            try PrivateFiles.removeFile(socketDirectory.appending(name))
        }
        let arguments = launch.configuration.serverArguments(
            dataDirectory: location.dataDirectory,
            socketDirectory: socketDirectory,
            logDirectory: location.logDirectory
        )
        var next: FileLock? = consume lock
        while true {
            // The lock belongs to the supervisor: if it were kept here, `superviseNext` would wait for it.
            guard let lock = next.take() else { continue }
            let charge = Supervisor.Charge.start(program: binaries.program("postgres"), arguments: arguments)
            let supervisor = try await supervise(charge, lock: consume lock)
            do {
                if let file = try await ready(supervisor, isNew: isNew) {
                    return try running(file, supervisor: supervisor, provenance: isNew ? .created : .started)
                }
            } catch {
                supervisor.hangUp()
                await supervisor.waitUntilEnded()
                await launch.endLeftover(location, account)
                throw error
            }
            next = try await launch.superviseNext(location, account, deadline: deadline)
        }
    }

    private func supervise(_ charge: Supervisor.Charge, lock: consuming FileLock) async throws -> Supervisor {
        try await Supervisor.start(
            charge: charge,
            location: location,
            account: account,
            stopLimit: launch.configuration.stopLimit,
            lock: lock
        )
    }

    /// Waits for the server to be ready; nil if it ended because of settings that have been written again.
    private func ready(_ supervisor: Supervisor, isNew: Bool) async throws -> PostmasterFile? {
        while true {
            // Read in this order: if the server ends after its file said "ready", the next round notices it.
            let ended = supervisor.ended
            if let ended {
                if ended.isKill { throw EmbeddedPostgresError.serverKilled }
                let log = location.logTail()
                // A server that is not ready yet ends when any of its processes does.
                if log.contains("was terminated by signal \(SIGKILL)") { throw EmbeddedPostgresError.serverKilled }
                if try mending.renewSettings(refusedIn: log) { return nil }
                if let trouble = try await location.trouble(in: log, account), !isNew || !trouble.isDamage {
                    throw trouble
                }
                throw EmbeddedPostgresError.serverExited(status: ended.text, log: log)
            }
            if let file = try PostmasterFile.read(dataDirectory: location.dataDirectory),
                file.status == .ready, file.socketDirectory != nil,
                try await file.isServer(of: location.dataDirectory)
            {
                return file
            }
            guard ContinuousClock.now < deadline else {
                throw EmbeddedPostgresError.notReady(limit: launch.configuration.startLimit, log: location.logTail())
            }
            try await Task.sleep(for: Launch.pollInterval)
        }
    }

    private func running(
        _ file: PostmasterFile,
        supervisor: Supervisor,
        provenance: EmbeddedPostgres.Endpoint.Provenance
    ) throws -> RunningServer {
        RunningServer(
            endpoint: EmbeddedPostgres.Endpoint(
                socketDirectory: file.socketDirectory ?? location.root.appending("run"),
                database: ClusterCreation.database,
                user: ClusterCreation.user,
                provenance: provenance
            ),
            processID: file.processID,
            location: location,
            account: account,
            data: try DataIdentity(location.dataDirectory),
            supervisor: supervisor,
            ownerLock: ownerLock
        )
    }
}

extension Launch {
    /// Ends a server whose supervisor was killed: another supervisor takes it over, and is told to stop it. Without such a
    /// server it does nothing. A cancelled caller waits too.
    func endLeftover(_ location: ClusterLocation, _ account: ServerAccount) async {
        await Task {
            do {
                guard try PrivateFiles.status(location.dataDirectory.appending(PostmasterFile.name)) != nil else {
                    return
                }
                // A supervisor that holds the lock was told to end the server.
                let lock = try await superviseNext(location, account, deadline: .now + configuration.startLimit)
                guard let file = try PostmasterFile.read(dataDirectory: location.dataDirectory),
                    try await file.isServer(of: location.dataDirectory)
                else { return }
                let supervisor = try await Supervisor.start(
                    charge: .adopt(processID: file.processID), location: location, account: account,
                    stopLimit: configuration.stopLimit, lock: lock)
                supervisor.hangUp()
                await supervisor.waitUntilEnded()
            } catch {
                logger.warning("postgres.leftover.failed", metadata: ["error": "\(error)"])
            }
        }.value
    }
}

extension ClusterLocation {
    /// The end of what the server has printed since its last start, for an error message: older text is about earlier servers.
    func logTail() -> String {
        let limit = 4 * 1024
        do {
            let start = try PrivateFiles.tail(startLog, limitBytes: limit) ?? ""
            // Until then the server prints only here.
            guard start.contains("redirecting log output") else { return start }
            let newest = try PrivateFiles.names(in: logDirectory).map { name in
                let path = logDirectory.appending(name)
                return (path: path, time: try PrivateFiles.status(path)?.st_mtim.tv_sec ?? 0)
            }.max { $0.time < $1.time }
            guard let newest, let text = try PrivateFiles.tail(newest.path, limitBytes: limit) else { return start }
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let first = lines.lastIndex { $0.contains("LOG:  starting PostgreSQL") } ?? lines.startIndex
            return lines[first...].joined(separator: "\n")
        } catch {
            return "(the log cannot be read: \(error))"
        }
    }
}
