import SystemPackage

/// Makes a new cluster, whole or not at all.
///
/// Everything happens under a temporary name: `initdb`, the database, and the flush to storage. The rename is what
/// makes it the data directory, so that a crash at any moment leaves either nothing or all of it.
struct ClusterCreation: Sendable {
    let location: ClusterLocation
    let binaries: ServerBinaries
    let account: ServerAccount
    /// The template to copy; `nil` to make everything anew.
    let template: ClusterTemplate?

    /// Raised with every change of how a cluster is made, so that templates of earlier versions are not used.
    static let recipe = 3

    /// The superuser of the cluster, and the role as which all parts of Muster connect.
    static let user = "muster"
    /// The database that is made along with the cluster.
    static let database = "muster"

    /// The settings without which no server starts. All other settings are given at each start.
    static let settings = [
        ("postgresql.conf", "# Muster gives the settings at each start of the server.\n"),
        // A process that reaches the socket is trusted, as `initdb` writes it here.
        ("pg_hba.conf", "local all all trust\n"),
    ]

    private static let temporaryPrefix = "data.new-"
    /// Settings under which a template is made: its log leaves no old segments behind, and a segment takes no more room
    /// than its content.
    static let shortLog = ["autovacuum": "off", "wal_init_zero": "off", "wal_recycle": "off"]

    /// Makes the cluster. The caller holds the owner's lock, so no other process works on it.
    func run() async throws {
        removeLeftovers()
        let suffix = UInt64.random(in: .min ... .max)
        let temporary = location.root.appending("\(Self.temporaryPrefix)\(String(suffix, radix: 16))")
        try PrivateFiles.makePrivateDirectory(temporary, account: account)

        if try await template?.copy(into: temporary) != true { try await makeFiles(in: temporary) }
        // Flushed once, at the end: before the rename the files don't count, so nothing can be lost.
        try await binaries.makeDurable(temporary, account: account)
        try PrivateFiles.rename(temporary, to: location.dataDirectory)
        if let pointer = location.pointer {
            try PrivateFiles.write("\(location.root.string)\n", to: pointer)
        }
    }

    private func makeFiles(in directory: FilePath) async throws {
        let arguments = [
            "-D", directory.string, "-U", Self.user, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync",
            // With checksums, data that a disk returns changed is an error, and never a row.
            "--data-checksums",
        ]
        try await PostgresTool(path: binaries.program("initdb"), arguments: arguments, account: account)
            .runSuccessfully()
        // Rename the existing database: a further database would add several hundred files to each cluster.
        try await Self.execute(
            "ALTER DATABASE postgres RENAME TO \(Self.database);\n", in: directory, database: "template1", binaries,
            account)
    }

    /// Drops all databases but Muster's from a cluster whose server has stopped.
    static func dropTemplateDatabases(
        of directory: FilePath, _ binaries: ServerBinaries, _ account: ServerAccount
    ) async throws {
        let sql = ["template0", "template1"].map { "ALTER DATABASE \($0) IS_TEMPLATE false;\nDROP DATABASE \($0);\n" }
        try await execute(sql.joined(), in: directory, binaries, account, settings: shortLog)
    }

    /// Leaves only an empty segment of the log in a cluster whose server has stopped.
    static func shortenLog(of directory: FilePath, _ binaries: ServerBinaries, _ account: ServerAccount) async throws {
        let sql = "SELECT pg_switch_wal();\nCHECKPOINT;\n"
        try await execute(sql, in: directory, binaries, account, settings: shortLog)
    }

    /// Runs SQL, a statement on each line, in single-user mode: no socket, no client program, no server that would have to be
    /// stopped again.
    private static func execute(
        _ sql: String, in directory: FilePath, database: String = database, _ binaries: ServerBinaries,
        _ account: ServerAccount, settings: [String: String] = [:]
    ) async throws {
        let settings = settings.merging(["exit_on_error": "on", "shared_buffers": "16MB"]) { $1 }
        try await PostgresTool(
            path: binaries.program("postgres"),
            arguments: ["--single", "-F", "-D", directory.string]
                + settings.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] } + [database],
            account: account,
            input: sql
        ).runSuccessfully()
    }

    /// Removes the unfinished clusters of earlier runs, as far as possible: a program of a run that was killed a moment ago
    /// may still write there. The next cluster has its own name, and the next run that makes a cluster removes the rest.
    private func removeLeftovers() {
        for name in (try? PrivateFiles.names(in: location.root)) ?? [] where name.hasPrefix(Self.temporaryPrefix) {
            try? PrivateFiles.removeTree(location.root.appending(name))
        }
    }
}
