import Glibc
import Logging
import SystemPackage

/// A cluster that was made to be copied: `initdb` and the schema take most of the time that a first start takes, and make the
/// same files every time.
///
/// A template is a directory `pg-template-…` with the cluster, `data`, and its `manifest`. It is published whole, by a rename, and
/// never changed. It is a cache: whatever is wrong with it, a cluster is made without it, and removing it is always safe.
struct ClusterTemplate: Sendable {
    /// Where templates are kept.
    let directory: FilePath
    /// The binaries that make it, the account that owns the cluster, and what is in it.
    let binaries: ServerBinaries
    let account: ServerAccount
    let content: ClusterContent?
    /// Whether it keeps `template0` and `template1`, of which PostgreSQL makes other databases.
    let hasTemplateDatabases: Bool
    /// The environment of the server that fills it.
    let environment: [String: String]
    let logger: Logger

    private static let prefix = "pg-template-"
    private static let temporaryPrefix = "pg-template.new-"
    /// How many templates are kept in all: those of other versions of PostgreSQL and of Muster are removed, the oldest first.
    static let limit = 3
    /// The age after which an unfinished template is removed, in seconds.
    private static let leftoverAge = 3_600
    /// With less free space no template is made: a template, its copy and the server must not fill the disk.
    private static let leastFreeBytes: Int64 = 256 << 20

    /// The directory of templates: for root beside the clusters in `fallback`, for other users in their cache directory.
    /// `nil` when there is no such place.
    static func directory(environment: [String: String], fallback: FilePath, account: ServerAccount) -> FilePath? {
        if account.needsSwitch { return fallback }
        if let cache = environment["XDG_CACHE_HOME"], cache.hasPrefix("/") {
            return FilePath(cache).appending("muster")
        }
        if let home = environment["HOME"], home.hasPrefix("/") { return FilePath(home).appending(".cache/muster") }
        return nil
    }

    /// The template. Its name says everything that its content depends on.
    var path: FilePath {
        let what = [
            binaries.build, content?.digest ?? "", "\(ClusterCreation.recipe)", hasTemplateDatabases ? "" : "small",
        ].joined(separator: "\n")
        return directory.appending(
            "\(Self.prefix)\(binaries.version)-\(account.userID)-\(ClusterLocation.hash(of: what))")
    }

    private var data: FilePath { path.appending("data") }
    private var manifest: FilePath { path.appending("manifest") }

    /// Fills an empty directory with a copy, making the template if need be. Returns false, leaving the directory empty, when
    /// that is not possible.
    ///
    /// - Throws: `CancellationError`; `EmbeddedPostgresError` when the directory can't be emptied.
    func copy(into cluster: FilePath) async throws -> Bool {
        do {
            try checkDirectory()
            for _ in 0..<2 {
                if try !isSound() {
                    try discard(path)
                    try await make()
                }
                try await copyTree(into: cluster)
                if try ClusterManifest(of: cluster) == ClusterManifest(contentsOf: manifest) { return true }
                logger.warning("postgres.template.damaged", metadata: ["postgres.template": "\(path)"])
                try discard(path)
                try empty(cluster)
            }
        } catch let error as CancellationError {
            throw error
        } catch {
            // A full disk or a read-only home is no reason not to start.
            logger.info(
                "postgres.template.none", metadata: ["postgres.template": "\(path)", "error": "\(error)"])
            try empty(cluster)
        }
        return false
    }

    /// Empties a directory: half a copy must not look like a cluster to `initdb`.
    private func empty(_ cluster: FilePath) throws {
        try PrivateFiles.removeTree(cluster)
        try PrivateFiles.makePrivateDirectory(cluster, account: account)
    }

    /// Copies as the account that owns both, so that nothing is read or written that this account may not, whatever the
    /// template contains.
    private func copyTree(into cluster: FilePath) async throws {
        try await PostgresTool(
            path: "/bin/cp", arguments: ["-a", "\(data.string)/.", "\(cluster.string)/"], account: account
        ).runSuccessfully()
    }

    // MARK: Trust

    /// Makes the directory of templates if it is missing, and makes sure that no other user can put a template there.
    private func checkDirectory() throws {
        try PrivateFiles.makeDirectories(directory.removingLastComponent())
        _ = try PrivateFiles.makeDirectoryIfMissing(directory, permissions: account.needsSwitch ? 0o755 : 0o700)
        guard let status = try PrivateFiles.status(directory), Self.isOwn(status) else {
            throw EmbeddedPostgresError.templateRefused(path: directory)
        }
    }

    /// Whether there is a template, and it belongs to this user. Its content is checked after it was copied.
    private func isSound() throws -> Bool {
        guard let status = try PrivateFiles.status(path), Self.isOwn(status),
            let cluster = try PrivateFiles.status(data), cluster.type == .directory,
            cluster.userID.rawValue == account.userID, cluster.permissions.rawValue & 0o077 == 0,
            let listed = try PrivateFiles.status(manifest), listed.type == .regular
        else { return false }
        return true
    }

    /// Whether it is a directory of this user, not a link to one, that no other user can write to.
    private static func isOwn(_ status: Stat) -> Bool {
        status.type == .directory && status.userID.rawValue == geteuid() && status.permissions.rawValue & 0o022 == 0
    }

    // MARK: Making

    /// Makes the template. If two processes do so at once, the first one publishes its template, and the other one uses that.
    private func make() async throws {
        let free = try SpaceReserve.freeBytes(in: directory)
        guard free >= Self.leastFreeBytes else {
            throw EmbeddedPostgresError.diskFull(
                directory: directory, neededBytes: Self.leastFreeBytes, freeBytes: free)
        }
        logger.info("postgres.template.make", metadata: ["postgres.template": "\(path)"])
        let work = temporary()
        let permissions: mode_t = account.needsSwitch ? 0o755 : 0o700
        _ = try PrivateFiles.makeDirectory(work, permissions: permissions)
        do {
            let cluster = try await makeCluster(in: work)
            let whole = work.appending("template")
            _ = try PrivateFiles.makeDirectory(whole, permissions: permissions)
            try PrivateFiles.rename(cluster, to: whole.appending("data"))
            try ClusterManifest(of: whole.appending("data")).write(to: whole.appending("manifest"))
            try await binaries.makeDurable(whole, account: account)
            try publish(whole)
        } catch {
            try PrivateFiles.removeTree(work)
            throw error
        }
        try PrivateFiles.removeTree(work)
        try prune()
    }

    /// Gives a template its name, unless another process was first.
    private func publish(_ whole: FilePath) throws {
        do {
            try PrivateFiles.rename(whole, to: path)
        } catch let EmbeddedPostgresError.fileOperation(_, _, error)
            where [.directoryNotEmpty, .fileExists].contains(error)
        {
            return
        }
    }

    /// Makes a cluster in its own directory, fills it by its own server, and returns its path.
    private func makeCluster(in work: FilePath) async throws -> FilePath {
        var configuration = EmbeddedPostgres.Configuration()
        configuration.usesTemplate = false
        // All of it is flushed at the end; before that, nothing of it is used.
        configuration.durability = .none
        configuration.settings = ClusterCreation.shortLog
        let server = EmbeddedPostgres(
            stateDirectory: work, environment: environment, configuration: configuration, logger: logger)
        let endpoint = try await server.start()
        guard let cluster = await server.dataDirectory else { throw EmbeddedPostgresError.templateRefused(path: work) }
        do {
            try await content?.fill(endpoint)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        if !hasTemplateDatabases { try await ClusterCreation.dropTemplateDatabases(of: cluster, binaries, account) }
        try await ClusterCreation.shortenLog(of: cluster, binaries, account)
        return cluster
    }

    private func temporary() -> FilePath {
        directory.appending("\(Self.temporaryPrefix)\(String(UInt64.random(in: .min ... .max), radix: 16))")
    }

    // MARK: Removing

    /// Removes a template. Its name is free at once, even if its files belong to another user and can't be removed.
    private func discard(_ template: FilePath) throws {
        guard try PrivateFiles.status(template) != nil else { return }
        let aside = temporary()
        try PrivateFiles.rename(template, to: aside)
        try? PrivateFiles.removeTree(aside)
    }

    private func prune() throws {
        let found = try PrivateFiles.names(in: directory).map { name in
            (name: name, time: try PrivateFiles.status(directory.appending(name))?.st_mtim.tv_sec ?? 0)
        }
        let others = found.filter { $0.name.hasPrefix(Self.prefix) && $0.name != path.lastComponent?.string }
        for (name, _) in others.sorted(by: { $0.time > $1.time }).dropFirst(Self.limit - 1) {
            try discard(directory.appending(name))
        }
        let now = found.map(\.time).max() ?? 0
        for (name, time) in found where name.hasPrefix(Self.temporaryPrefix) && time < now - Self.leftoverAge {
            try? PrivateFiles.removeTree(directory.appending(name))
        }
    }
}
