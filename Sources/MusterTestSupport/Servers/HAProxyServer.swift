import SystemPackage

/// A real HAProxy before the coordinators of a fleet: one address for workers and for the command line. It passes bytes on (TCP), and asks each
/// coordinator four times a second whether it lives.
public enum HAProxyServer {
    /// Starts it.
    ///
    /// - Parameter ports: Where the coordinators listen on 127.0.0.1.
    public static func start(before ports: [Int]) async throws -> RealServer {
        let program = try RealServer.program("haproxy")
        return try await RealServer.start("haproxy") { place in
            let configuration = place.directory.appending("haproxy.cfg")
            let servers = ports.map { "    server c\($0) 127.0.0.1:\($0)" }.joined(separator: "\n")
            try RealServer.write(
                """
                global
                    nbthread 1
                    maxconn 1000
                defaults
                    mode tcp
                    retries 3
                    option redispatch
                    timeout connect 2s
                    timeout client 2m
                    timeout server 2m
                    timeout check 1s
                frontend front
                    bind 127.0.0.1:\(place.port)
                    default_backend coordinators
                backend coordinators
                    balance roundrobin
                    option httpchk
                    http-check send meth GET uri /healthz ver HTTP/1.1 hdr Host 127.0.0.1
                    http-check expect status 200
                    default-server check inter 250ms fall 2 rise 1 on-marked-down shutdown-sessions
                \(servers)

                """, to: configuration)
            return .init(program: program, arguments: ["-db", "-f", configuration.string])
        }
    }
}
