import SystemPackage

/// A real PgBouncer before a PostgreSQL that is reached through a Unix socket. Any user may log in without a password.
public enum PgBouncerServer {
    /// Whether this machine has it.
    public static var isAvailable: Bool { InstalledProgram.find("pgbouncer") != nil }

    /// Which clients share a session of PostgreSQL.
    public enum PoolMode: String, Sendable, CaseIterable {
        /// None: a session belongs to one client until that leaves.
        case session
        /// All: each transaction gets whichever session is free.
        case transaction
    }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - host: The directory of the socket.
    ///   - user: The user of PostgreSQL for all clients.
    public static func start(before host: String, user: String, poolMode: PoolMode) async throws -> RealServer {
        let program = try RealServer.program("pgbouncer")
        return try await RealServer.start("pgbouncer") { place in
            let settings = place.directory.appending("pgbouncer.ini")
            try RealServer.write(
                """
                [databases]
                postgres = host=\(host) user=\(user)
                [pgbouncer]
                listen_addr = 127.0.0.1
                listen_port = \(place.port)
                unix_socket_dir =
                auth_type = any
                pool_mode = \(poolMode.rawValue)
                ignore_startup_parameters = options
                """, to: settings)
            guard RealServer.isRoot else { return .init(program: program, arguments: [settings.string]) }
            // It does not run as root.
            return .init(
                program: try RealServer.program("setpriv"),
                arguments: [
                    "--reuid=postgres", "--regid=postgres", "--clear-groups", program.string, settings.string,
                ])
        }
    }
}
