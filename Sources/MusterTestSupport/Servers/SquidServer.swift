import SystemPackage

/// A real squid, a cache between clients and an origin (row 29), or a proxy (row 38). What it keeps is in memory.
public enum SquidServer {
    /// Whether this machine has it.
    public static var isInstalled: Bool { InstalledProgram.find("squid") != nil }

    /// Starts it in front of an origin: a reverse proxy.
    ///
    /// - Parameters:
    ///   - port: The port of the origin on 127.0.0.1, which is asked without TLS.
    ///   - directives: Further lines of its configuration.
    public static func start(inFrontOf port: Int, directives: String = "") async throws -> RealServer {
        try await start { place in
            """
            http_port 127.0.0.1:\(place.port) accel defaultsite=127.0.0.1:\(port)
            cache_peer 127.0.0.1 parent \(port) 0 no-query no-digest originserver name=origin
            never_direct allow all
            \(directives)
            """
        }
    }

    /// Starts it as a forward proxy, which clients have to name, and which connects to any destination.
    public static func startForward(directives: String = "") async throws -> RealServer {
        try await start { place in
            """
            http_port 127.0.0.1:\(place.port)
            \(directives)
            """
        }
    }

    private static func start(_ ports: (RealServer.Place) -> String) async throws -> RealServer {
        let program = try RealServer.program("squid")
        // If root starts it, it becomes another user, which has to write the logs.
        return try await RealServer.start("squid", permissions: FilePermissions(rawValue: 0o777)) { place in
            let file = place.directory.appending("squid.conf")
            let identity = RealServer.isRoot ? "cache_effective_user \(RealServer.user("proxy", "squid"))" : ""
            try RealServer.write(
                """
                \(ports(place))
                \(identity)
                http_access allow all
                cache_mem 64 MB
                maximum_object_size_in_memory 32 MB
                max_filedescriptors 1024
                access_log stdio:\(place.directory)/access.log
                cache_log \(place.directory)/cache.log
                cache_store_log none
                coredump_dir \(place.directory)
                pid_filename none
                pinger_enable off
                shutdown_lifetime 0 seconds
                visible_hostname localhost

                """,
                to: file
            )
            return RealServer.Launch(
                program: program,
                arguments: ["-N", "-f", file.string],
                logs: ["access.log", "cache.log"]
            )
        }
    }
}
