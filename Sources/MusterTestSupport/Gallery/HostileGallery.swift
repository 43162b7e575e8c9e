/// Every row of the range contract as a URL, so that a test can give the same hostile origins to several programs and
/// compare what each of them ends with.
///
/// Two rows are elsewhere: ftp and sftp (37) need servers of their own, see ``VsftpdServer`` and ``SSHServer``. The
/// refusal of private addresses (39) cannot be tested by a program that is given a loopback address.
public final class HostileGallery: Sendable {
    /// The right result of a download.
    public enum Right: Sendable, Hashable {
        /// The file; an error is a poor result.
        case bytes
        /// An error: nothing that the origin sends is the file.
        case refusal
        /// Either, depending on what the program asks for and on how careful it is.
        case either
    }

    /// The result of a download.
    public enum Outcome: Sendable, Hashable {
        /// The file is there, and it is one of the origin's versions.
        case right
        /// There was an error.
        case refused
        /// There is a file that the origin never had, or that the program should not have accepted.
        case wrong
    }

    /// One way in which an origin is hostile.
    public struct Exhibit: Sendable, Hashable {
        /// The row of the contract.
        public let row: Int
        /// A short name, unique in the gallery, fit for a path and for a table.
        public let name: String
        /// What the origin does, as a sentence without its subject: “answers 200 to a range request”.
        public let title: String
        /// Its URL.
        public let url: String
        /// The URL of the file at a mirror, if there is one (30).
        public let mirror: String?
        /// The file's size in bytes.
        public let size: Int64
        /// The SHA-256 of the file; if it has several versions, of each of them.
        public let sha256: [String]
        /// The right result.
        public let right: Right
        /// Whether a program can tell a wrong file only if it is given the digest, the first of ``sha256``.
        public let needsDigest: Bool
        /// After how many requests it behaves; 0 if an ordinary GET always gets the file, nil if none does.
        public let behavesAfter: Int?
        /// Whether a program needs its timeouts to get through.
        public let isSlow: Bool

        /// Judges the result of a program.
        ///
        /// - Parameter digest: The SHA-256 of the file that it says is complete; nil if it failed.
        public func outcome(digest: String?) -> Outcome {
            guard let digest else { return .refused }
            return sha256.contains(digest) ? .right : .wrong
        }
    }

    /// All exhibits, by row.
    public let exhibits: [Exhibit]
    /// The transport of its origins.
    public let transport: ScriptedOrigin.Transport
    /// The mirror, and one origin for each exhibit, so that what a program learns about one origin does not affect the others.
    private let origins: [ScriptedOrigin]
    /// The authority to trust, also where the gallery itself has no TLS.
    public let certificates: TestCertificates

    /// Opens a gallery. What an exhibit does depends on the requests before: every program gets a gallery of its own.
    ///
    /// - Parameters:
    ///   - transport: The transport of its origins; exhibits that do not exist there are left out.
    ///   - size: The size of each file in bytes. Programs that split files have a least size for a part, mostly 1 MiB.
    public static func start(
        transport: ScriptedOrigin.Transport = .plain,
        size: Int64 = 4 << 20
    ) async throws -> HostileGallery {
        let mirror = try await ScriptedOrigin.start(transport: transport)
        var origins = [mirror]
        var exhibits: [Exhibit] = []
        let specifications = Specification.all(size: size).filter { $0.isPlayable(over: transport) }
        for specification in specifications {
            let origin = try await ScriptedOrigin.start(transport: transport)
            origins.append(origin)
            exhibits.append(specification.fitting(transport).hang(in: origin, mirror: mirror))
        }
        for identity in TestCertificates.Identity.allCases where identity != .trusted {
            let secure = try await ScriptedOrigin.start(transport: .tls, identity: identity)
            origins.append(secure)
            exhibits.append(Specification.certificate(identity, size: size).hang(in: secure, mirror: mirror))
        }
        return HostileGallery(
            exhibits: exhibits.sorted { ($0.row, $0.name) < ($1.row, $1.name) },
            transport: transport,
            origins: origins,
            certificates: try await TestCertificates.shared()
        )
    }

    private init(
        exhibits: [Exhibit],
        transport: ScriptedOrigin.Transport,
        origins: [ScriptedOrigin],
        certificates: TestCertificates
    ) {
        self.exhibits = exhibits
        self.transport = transport
        self.origins = origins
        self.certificates = certificates
    }

    /// Stops its origins.
    public func stop() async {
        for origin in origins { await origin.stop() }
    }
}
