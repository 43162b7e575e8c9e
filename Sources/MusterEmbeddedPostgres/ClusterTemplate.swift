import SystemPackage

/// A new cluster that was kept to be copied: `initdb` takes most of the time that a first start takes, and makes the same
/// files every time.
///
/// It is a cache. Whatever is wrong with it, a cluster is made without it; removing it is always safe.
struct ClusterTemplate: Sendable {
    /// Where templates are kept.
    let directory: FilePath
    /// The version of the binaries that made it, and the account that owns it.
    let binaries: ServerBinaries
    let account: ServerAccount

    /// Where templates are kept: for root beside the clusters that it keeps elsewhere, for others in their cache directory.
    /// `nil` when there is no such place.
    static func directory(environment: [String: String], fallback: FilePath, account: ServerAccount) -> FilePath? {
        if account.needsSwitch { return fallback }
        if let cache = environment["XDG_CACHE_HOME"], cache.hasPrefix("/") {
            return FilePath(cache).appending("muster")
        }
        if let home = environment["HOME"], home.hasPrefix("/") { return FilePath(home).appending(".cache/muster") }
        return nil
    }

    /// The template itself. Its name says everything that its content depends on.
    var path: FilePath {
        directory.appending("pg-template-\(binaries.version)-\(account.userID)-\(ClusterCreation.recipe)")
    }

    /// Fills an empty directory with a copy. Returns false, leaving the directory empty, when there is no template.
    func copy(into cluster: FilePath) async throws -> Bool {
        guard let status = try PrivateFiles.status(path), status.type == .directory,
            status.userID.rawValue == account.userID
        else { return false }
        do {
            try await copy(path, into: cluster)
            if try PrivateFiles.isCluster(cluster) { return true }
        } catch EmbeddedPostgresError.toolFailed {
            // The template is useless, for whatever reason; the next lines make room for a cluster without it.
        }
        // Half a copy must not look like a cluster to `initdb`.
        try PrivateFiles.removeTree(cluster)
        _ = try PrivateFiles.makeDirectory(cluster, permissions: 0o700)
        if account.needsSwitch { try PrivateFiles.give(cluster, to: account) }
        return false
    }

    /// Keeps a copy of a cluster that was never started.
    func keep(_ cluster: FilePath) async throws {
        try PrivateFiles.makeDirectories(directory)
        let temporary = directory.appending("pg-template.new-\(String(UInt64.random(in: .min ... .max), radix: 16))")
        _ = try PrivateFiles.makeDirectory(temporary, permissions: 0o700)
        do {
            if account.needsSwitch { try PrivateFiles.give(temporary, to: account) }
            try await copy(cluster, into: temporary)
            // On storage before it has its name, so that a crash leaves a whole template or none.
            try await PostgresTool(
                path: binaries.program("initdb"), arguments: ["--sync-only", "-D", temporary.string], account: account
            ).runSuccessfully()
            try PrivateFiles.rename(temporary, to: path)
        } catch {
            try PrivateFiles.removeTree(temporary)
            throw error
        }
    }

    private func copy(_ source: FilePath, into destination: FilePath) async throws {
        try await PostgresTool(
            path: "/bin/cp", arguments: ["-a", "\(source.string)/.", "\(destination.string)/"], account: account
        ).runSuccessfully()
    }
}
