import SystemPackage

/// The processes of a server.
enum ServerProcesses {
    /// The processes of PostgreSQL that work in a data directory: a server, and what has outlived one. They are asked for as the account that they run
    /// as, which root may not be able to do in a container.
    static func working(in dataDirectory: FilePath, as account: ServerAccount) async throws -> [Int32] {
        #if os(Linux)
        let script = """
            for process in /proc/[0-9]*; do
                [ "$process/cwd" -ef "$1" ] && read -r name <"$process/comm" && [ "$name" = postgres ] && echo "${process#/proc/}"
            done 2>/dev/null
            exit 0
            """
        #else
        let script = "/usr/sbin/lsof -a -t -c postgres -d cwd -- \"$1\" 2>/dev/null; exit 0"
        #endif
        let outcome = try await PostgresTool(
            path: "/bin/sh", arguments: ["-c", script, "sh", dataDirectory.string], account: account
        ).run()
        return outcome.output.split(whereSeparator: \.isNewline).compactMap { Int32($0) }
    }
}
