import Glibc
import Subprocess
public import SystemPackage

/// A real sshd that does nothing but SFTP (row 37). The user that runs the tests logs in by a key.
///
/// There is no login by password: the passwords are those of the machine's accounts, which no test knows.
public final class SSHServer: Sendable {
    /// Whether this machine has it, and `ssh-keygen`.
    public static var isInstalled: Bool {
        InstalledProgram.find("sshd") != nil && InstalledProgram.find("ssh-keygen") != nil
    }

    /// The server.
    public let server: RealServer
    /// The user that logs in.
    public let user: String
    private let root: FilePath

    /// The URL of a file below the root, with the user's name in it; a path begins with a slash.
    public func url(_ path: String) -> String { "sftp://\(user)@127.0.0.1:\(server.port)\(root)\(path)" }
    /// A known-hosts file with the server's key in it.
    public var knownHostsFile: FilePath { server.directory.path.appending("known_hosts") }
    /// A known-hosts file with another key for the same server.
    public var wrongKnownHostsFile: FilePath { server.directory.path.appending("wrong_known_hosts") }
    /// The private key that the server accepts.
    public var keyFile: FilePath { server.directory.path.appending("client") }
    /// A private key that the server rejects.
    public var strangeKeyFile: FilePath { server.directory.path.appending("stranger") }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - root: The directory that the paths of ``url(_:)`` are below. Other files can be reached as well.
    ///   - directives: Further lines of its configuration.
    public static func start(root: FilePath, directives: String = "") async throws -> SSHServer {
        let program = try RealServer.program("sshd")
        let generator = try RealServer.program("ssh-keygen")
        // sshd confines its unprivileged part to this directory; that of the system's service is made at boot.
        if RealServer.isRoot { try RealServer.makeDirectory("/run/sshd") }
        let server = try await RealServer.start("sshd") { place in
            let directory = place.directory
            for name in ["host", "other-host", "client", "stranger"] {
                try await generateKey(directory.appending(name), with: generator)
            }
            for (name, key) in [("known_hosts", "host"), ("wrong_known_hosts", "other-host")] {
                let line = "[127.0.0.1]:\(place.port) " + (try RealServer.read(directory.appending("\(key).pub")))
                try RealServer.write(line, to: directory.appending(name))
            }
            let file = directory.appending("sshd_config")
            try RealServer.write(
                """
                ListenAddress 127.0.0.1:\(place.port)
                HostKey \(directory)/host
                PidFile none
                AuthorizedKeysFile \(directory)/client.pub
                StrictModes no
                UsePAM no
                PermitRootLogin prohibit-password
                PasswordAuthentication no
                KbdInteractiveAuthentication no
                Subsystem sftp internal-sftp
                ForceCommand internal-sftp
                LogLevel VERBOSE
                \(directives)

                """,
                to: file
            )
            return RealServer.Launch(program: program, arguments: ["-D", "-e", "-f", file.string])
        }
        let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "root"
        return SSHServer(server: server, user: user, root: root)
    }

    private init(server: RealServer, user: String, root: FilePath) {
        self.server = server
        self.user = user
        self.root = root
    }

    /// Stops it, and waits for its end.
    public func stop() async throws { try await server.stop() }

    /// Makes a key pair, unless it is there: the ports may have to be chosen again, and then this is called again.
    private static func generateKey(_ path: FilePath, with generator: FilePath) async throws {
        guard (try? path.stat()) == nil else { return }
        let result = try await Subprocess.run(
            .path(generator),
            arguments: ["-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-C", "muster-test", "-f", path.string],
            output: .string(limit: 1 << 16),
            error: .combinedWithOutput
        )
        guard result.terminationStatus.isSuccess else {
            throw RealServer.Failure.notStarted("ssh-keygen", log: result.standardOutput)
        }
    }
}
