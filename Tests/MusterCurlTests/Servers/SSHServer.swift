import FoundationEssentials
import Glibc
import MusterCurl

/// A private sshd that serves files to the user of the tests, by key and by password.
final class SSHServer: Sendable {
    static let path = executable("sshd")
    /// Why sshd cannot be used here; nil if it can.
    static let obstacle: String? =
        if path == nil || executable("ssh-keygen") == nil {
            "sshd is not installed"
        } else if geteuid() != 0 {
            "sshd must be started by root"
        } else {
            nil
        }
    /// Why no password can be tried; nil if it can. The test's password file is mounted over the system's, which needs a mount namespace.
    static let passwordObstacle: String? =
        if let obstacle {
            obstacle
        } else if let unshare = executable("unshare"), let openssl = executable("openssl"),
            (try? run([unshare, "-m", openssl, "version"])) != nil
        {
            nil
        } else {
            "no name space of mounts can be made"
        }
    static let password = "open:sesame"

    private let folder: TemporaryFolder
    private let server: InetServer

    var key: String { folder.path + "/key" }
    var otherKey: String { folder.path + "/other" }
    var knownHosts: String { folder.path + "/known_hosts" }
    var root: String { folder.path + "/root" }
    var port: UInt16 { server.port }

    init(passwords: Bool = false) throws {
        guard let sshd = Self.path, let keygen = executable("ssh-keygen") else {
            throw SystemFailure(call: "sshd", code: ENOENT)
        }
        folder = try TemporaryFolder("sshd")
        let directory = folder.path
        folder.makeFolder("root")
        // sshd's privilege separation directory. The system makes it only when it starts its own sshd.
        mkdir("/run/sshd", 0o755)
        for name in ["host", "key", "other"] {
            try run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", directory + "/" + name])
        }
        try FileManager.default.copyItem(atPath: directory + "/key.pub", toPath: directory + "/authorized")
        try folder.write(Self.configuration(directory).utf8, to: "sshd_config", mode: 0o600)
        var arguments = [sshd, "-i", "-f", directory + "/sshd_config", "-E", directory + "/log"]
        if passwords { arguments = try Self.hidingPasswords(directory, folder, arguments) }
        server = try InetServer(arguments)
        try writeKnownHosts(key: "host")
    }

    /// Writes the file of known hosts, with the public half of one of the keys as the server's.
    func writeKnownHosts(key name: String) throws {
        let line = try String(decoding: Data(contentsOf: URL(filePath: "\(folder.path)/\(name).pub")), as: UTF8.self)
        let key = line.split(separator: " ").prefix(2).joined(separator: " ")
        try folder.write("[localhost]:\(server.port) \(key)\n".utf8, to: "known_hosts")
    }

    /// A request with the key and the known host that the login needs.
    func request(_ name: String, range: RangeSpec? = nil) -> TransferRequest {
        var request = TransferRequest(url: "sftp://localhost:\(server.port)\(root)/\(name)", range: range)
        request.allowedSchemes = ["sftp"]
        request.credentials = "root:"
        request.knownHostsFile = knownHosts
        request.privateKeyFile = key
        return request
    }

    /// Puts a file into place, with the modification time 1994-11-06 08:49:37 UTC.
    func write(_ bytes: [UInt8], to name: String) throws {
        try folder.write(bytes, to: "root/" + name)
        var times = [timeval(tv_sec: 784_111_777, tv_usec: 0), timeval(tv_sec: 784_111_777, tv_usec: 0)]
        utimes(root + "/" + name, &times)
    }

    /// Stops the server's processes, so that they neither send nor close.
    func suspend() { server.signal(SIGSTOP) }

    /// Kills the server's processes.
    func endConnections() { server.signal(SIGKILL) }

    func stop() {
        server.stop()
        folder.remove()
    }

    private static func configuration(_ directory: String) -> String {
        """
        HostKey \(directory)/host
        AuthorizedKeysFile \(directory)/authorized
        PidFile none
        StrictModes no
        UsePAM no
        PermitRootLogin yes
        PubkeyAuthentication yes
        PasswordAuthentication yes
        KbdInteractiveAuthentication no
        Subsystem sftp internal-sftp

        """
    }

    /// The command with another file of passwords in place of the system's, for this process alone.
    private static func hidingPasswords(
        _ directory: String,
        _ folder: TemporaryFolder,
        _ arguments: [String]
    ) throws -> [String] {
        guard let unshare = executable("unshare"), let openssl = executable("openssl") else {
            throw SystemFailure(call: "unshare", code: ENOENT)
        }
        let hash = "\"$(\(openssl) passwd -6 '\(password)')\""
        try run(["/bin/sh", "-c", "printf 'root:%s:19000:0:99999:7:::\\n' \(hash) > \(directory)/shadow"])
        chmod(directory + "/shadow", 0o600)
        return [unshare, "-m", "/bin/sh", "-c", "mount --bind \(directory)/shadow /etc/shadow && exec \"$0\" \"$@\""]
            + arguments
    }
}

/// Gives a private sshd and a loop to the body and ends both afterwards, whatever happens.
func withSSHServer<Result>(
    passwords: Bool = false,
    _ body: (CurlLoop, SSHServer) async throws -> Result
) async throws -> Result {
    let server = try SSHServer(passwords: passwords)
    defer { server.stop() }
    return try await withLoop { try await body($0, server) }
}
