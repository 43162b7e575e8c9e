import Glibc
import MusterCurl

/// A private vsftpd over a temporary directory. The password is all that a login needs.
final class FTPServer: Sendable {
    static let path = executable("vsftpd")
    /// Why vsftpd cannot be used here; nil if it can.
    static let obstacle: String? =
        if path == nil {
            "vsftpd is not installed"
        } else if geteuid() != 0 {
            "vsftpd must be started by root"
        } else if executable("openssl") == nil {
            "openssl is not installed"
        } else {
            nil
        }
    static let password = "open:sesame"

    private let folder: TemporaryFolder
    private let server: InetServer
    private let scheme: String

    var certificate: String { folder.path + "/cert.pem" }
    var acceptedConnections: Int { server.acceptedConnections }

    /// `settings` are further lines of its configuration.
    init(tls: Bool = false, settings: String = "") throws {
        guard let vsftpd = Self.path else { throw SystemFailure(call: "vsftpd", code: ENOENT) }
        folder = try TemporaryFolder("vsftpd")
        scheme = tls ? "ftps" : "ftp"
        for name in ["root", "root/sub", "empty"] { folder.makeFolder(name) }
        if tls { try makeCertificate(in: folder.path) }
        try folder.write("\(Self.password)\n".utf8, to: "passwords", mode: 0o600)
        try folder.write(Self.configuration(folder.path, tls: tls, settings).utf8, to: "vsftpd.conf", mode: 0o600)
        server = try InetServer([vsftpd, folder.path + "/vsftpd.conf"])
    }

    /// Puts a file into place, with the modification time 1994-11-06 08:49:37 UTC.
    func write(_ bytes: [UInt8], to name: String, mode: mode_t = 0o644) throws {
        try folder.write(bytes, to: "root/" + name, mode: mode)
        var times = [timeval(tv_sec: 784_111_777, tv_usec: 0), timeval(tv_sec: 784_111_777, tv_usec: 0)]
        utimes(folder.path + "/root/" + name, &times)
    }

    /// A request with the password and the certificate authority that the server needs.
    func request(_ path: String, range: RangeSpec? = nil) -> TransferRequest {
        var request = TransferRequest(url: "\(scheme)://localhost:\(server.port)\(path)", range: range)
        request.allowedSchemes = ["ftp", "ftps", "http"]
        request.credentials = "ftp:\(Self.password)"
        request.caFile = scheme == "ftps" ? certificate : nil
        return request
    }

    func stop() {
        server.stop()
        folder.remove()
    }

    private static func configuration(_ directory: String, tls: Bool, _ settings: String) -> String {
        """
        listen=NO
        anonymous_enable=YES
        local_enable=NO
        secure_email_list_enable=YES
        email_password_file=\(directory)/passwords
        anon_root=\(directory)/root
        secure_chroot_dir=\(directory)/empty
        port_enable=NO
        xferlog_enable=NO
        delay_failed_login=0
        \(tls ? "ssl_enable=YES\nimplicit_ssl=YES\nallow_anon_ssl=YES" : "")
        \(tls ? "force_anon_logins_ssl=YES\nforce_anon_data_ssl=YES\nssl_ciphers=HIGH" : "")
        \(tls ? "rsa_cert_file=\(directory)/cert.pem\nrsa_private_key_file=\(directory)/key.pem" : "")
        \(settings)

        """
    }
}

/// Gives a private vsftpd and a loop to the body and ends both afterwards, whatever happens.
func withFTPServer<Result>(
    tls: Bool = false,
    settings: String = "",
    _ body: (CurlLoop, FTPServer) async throws -> Result
) async throws -> Result {
    let server = try FTPServer(tls: tls, settings: settings)
    defer { server.stop() }
    return try await withLoop { try await body($0, server) }
}
