import SystemPackage

/// The processes of a server.
enum ServerProcesses {
    /// The processes of PostgreSQL that work in a data directory: a server, and processes that have outlived a server. The
    /// query runs as their account, since root may not be able to look at them in a container.
    static func working(in dataDirectory: FilePath, as account: ServerAccount) async throws -> [Int32] {
        let script = """
            for process in /proc/[0-9]*; do
                [ "$process/cwd" -ef "$1" ] && read -r name <"$process/comm" && [ "$name" = postgres ] && echo "${process#/proc/}"
            done 2>/dev/null
            exit 0
            """
        let outcome = try await PostgresTool(
            path: "/bin/sh", arguments: ["-c", script, "sh", dataDirectory.string], account: account
        ).run()
        return outcome.output.split(whereSeparator: \.isNewline).compactMap { Int32($0) }
    }
    /// The processes of the server in a data directory, and the shells that supervise it, that are stopped; none where the
    /// system does not tell.
    static func stopped(in dataDirectory: FilePath, as account: ServerAccount) async throws -> [Int32] {
        let shells = try PrivateFiles.names(in: "/proc").compactMap { Int32($0) }.filter { id in
            Supervisor.isOne(startedBy: (try? ProcessRecord.words(of: id)) ?? [], for: dataDirectory)
        }
        return try await (shells + working(in: dataDirectory, as: account)).filter(ProcessRecord.isStopped).sorted()
    }
}
