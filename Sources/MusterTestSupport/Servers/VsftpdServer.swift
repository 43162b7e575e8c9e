public import SystemPackage

/// A real vsftpd (row 37): one account that reads files, by FTP, or by FTP within TLS from the first byte.
///
/// Only root can start it, since it changes its root to the directory that it serves.
public enum VsftpdServer {
    /// Whether this machine has it, and this process may start it.
    public static var isAvailable: Bool {
        RealServer.isRoot && InstalledProgram.find("vsftpd") != nil && RealServer.exists(user: "ftp")
    }

    /// How its connections are encrypted.
    public enum Encryption: Sendable, Hashable {
        /// `ftp`.
        case none
        /// `ftps`.
        case implicit
    }

    /// Starts it. Its user is `anonymous`.
    ///
    /// - Parameters:
    ///   - root: The directory that it serves: only its owner may be able to write there, and all users must be able to read.
    ///   - password: The password that the user has to give; nil lets every user in.
    ///   - directives: Further lines of its configuration.
    public static func start(
        root: FilePath,
        encryption: Encryption = .none,
        password: String? = nil,
        directives: String = ""
    ) async throws -> RealServer {
        let program = try RealServer.program("vsftpd")
        let certificates = try await TestCertificates.shared()
        return try await RealServer.start("vsftpd") { place in
            let file = place.directory.appending("vsftpd.conf")
            let passwords = place.directory.appending("passwords")
            let jail = place.directory.appending("empty")
            try RealServer.makeDirectory(jail)
            try RealServer.write((password ?? "") + "\n", to: passwords)
            try RealServer.write(
                """
                listen=YES
                listen_address=127.0.0.1
                listen_port=\(place.port)
                background=NO
                connect_from_port_20=NO
                port_enable=NO
                pasv_address=127.0.0.1
                anonymous_enable=YES
                local_enable=NO
                anon_root=\(root)
                nopriv_user=nobody
                secure_chroot_dir=\(jail)
                seccomp_sandbox=NO
                vsftpd_log_file=\(place.directory)/vsftpd.log
                xferlog_enable=YES
                xferlog_std_format=NO
                log_ftp_protocol=YES
                \(password == nil ? "no_anon_password=YES" : "secure_email_list_enable=YES")
                email_password_file=\(passwords)
                \(encryption == .implicit ? secure(certificates) : "")
                \(directives)

                """,
                to: file
            )
            return RealServer.Launch(program: program, arguments: [file.string], logs: ["vsftpd.log"])
        }
    }

    private static func secure(_ certificates: TestCertificates) -> String {
        """
        ssl_enable=YES
        implicit_ssl=YES
        allow_anon_ssl=YES
        force_anon_logins_ssl=YES
        force_anon_data_ssl=YES
        require_ssl_reuse=NO
        ssl_ciphers=HIGH
        rsa_cert_file=\(certificates.certificateFile(.trusted))
        rsa_private_key_file=\(certificates.keyFile(.trusted))
        """
    }
}
