import SystemPackage

/// Makes a new cluster, whole or not at all.
///
/// Everything happens under a temporary name: `initdb`, the database, and the flush to storage. The rename is what
/// makes it the data directory, so that a crash at any moment leaves either nothing or all of it.
struct ClusterCreation: Sendable {
    let location: ClusterLocation
    let binaries: ServerBinaries
    let account: ServerAccount
    /// What to copy instead of making everything anew; `nil` to make it anew.
    let template: ClusterTemplate?

    /// Raised with every change of how a cluster is made, so that templates of earlier versions are not used.
    static let recipe = 1

    /// The superuser of the cluster, and the role that everything of Muster's connects as.
    static let user = "muster"
    /// The database that is made along with the cluster.
    static let database = "muster"

    private static let temporaryPrefix = "data.new-"

    /// Makes the cluster. The caller holds the owner's lock, so nobody else is at it.
    func run() async throws {
        try removeLeftovers()
        let suffix = UInt64.random(in: .min ... .max)
        let temporary = location.root.appending("\(Self.temporaryPrefix)\(String(suffix, radix: 16))")
        _ = try PrivateFiles.makeDirectory(temporary, permissions: 0o700)
        if account.needsSwitch { try PrivateFiles.give(temporary, to: account) }

        if try await template?.copy(into: temporary) != true {
            try await initdb([
                "-D", temporary.string, "-U", Self.user, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync",
            ])
            try await makeDatabase(in: temporary)
            // A full disk or a read-only home is no reason not to start.
            try? await template?.keep(temporary)
        }
        // Flushed once, at the end: until the rename nothing of it can be lost, since nothing of it counts.
        try await initdb(["--sync-only", "-D", temporary.string])
        try PrivateFiles.rename(temporary, to: location.dataDirectory)
        if let pointer = location.pointer {
            try PrivateFiles.write("\(location.root.string)\n", to: pointer)
        }
    }

    private func initdb(_ arguments: [String]) async throws {
        try await PostgresTool(path: binaries.program("initdb"), arguments: arguments, account: account)
            .runSuccessfully()
    }

    /// In single-user mode: no socket, no client program, no server that would have to be stopped again.
    private func makeDatabase(in directory: FilePath) async throws {
        let tool = PostgresTool(
            path: binaries.program("postgres"),
            arguments: [
                "--single", "-F", "-D", directory.string, "-c", "exit_on_error=on", "-c", "shared_buffers=16MB",
                "template1",
            ],
            account: account,
            input: "CREATE DATABASE \(Self.database);\n"
        )
        try await tool.runSuccessfully()
    }

    private func removeLeftovers() throws {
        for name in try PrivateFiles.names(in: location.root) where name.hasPrefix(Self.temporaryPrefix) {
            try PrivateFiles.removeTree(location.root.appending(name))
        }
    }
}
