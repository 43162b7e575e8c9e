import FoundationEssentials
import SystemPackage

/// Exhibits of third-party servers, set up in ways that occur in practice and that clients fail on.
public final class RealGallery: Sendable {
    /// All exhibits whose server is installed on this machine.
    public let exhibits: [HostileGallery.Exhibit]
    private let nginx: [NginxServer]
    private let others: [RealServer]
    /// The directory that they serve.
    private let files: TemporaryDirectory

    /// Directives of nginx for requests for a range.
    private static let refusals: [(name: String, title: String, directive: String)] = [
        ("if-403", "is an nginx that answers 403 to any Range", "if ($http_range) { return 403; }"),
        ("if-416", "is an nginx that answers 416 to any Range", "if ($http_range) { return 416; }"),
        ("if-501", "is an nginx that answers 501 to any Range", "if ($http_range) { return 501; }"),
        ("if-444", "is an nginx that closes the connection on any Range", "if ($http_range) { return 444; }"),
    ]

    /// Opens it. Each exhibit has a server of its own.
    public static func start(size: Int64 = 4 << 20) async throws -> RealGallery {
        let files = try TemporaryDirectory()
        let content = ScriptedOrigin.Content.seeded(seed: 7, size: size)
        let plain = files.path.appending("file")
        try Data(content.allBytes).write(to: URL(filePath: plain.string))
        let gzip = try await TestProcess.start("/usr/bin/gzip", arguments: ["-k", plain.string])
        try await gzip.waitForExit()
        let coded = try FileDigest.sha256(files.path.appending("file.gz"))
        let exhibit = { (row: Int, name: String, title: String, url: String, isCoded: Bool) in
            HostileGallery.Exhibit(
                row: row, name: name, title: title, url: url, mirror: nil, size: size,
                // Stored as it was sent, or decoded: a program may do either.
                sha256: isCoded ? [coded, content.sha256()] : [content.sha256()],
                right: .bytes, needsDigest: false, behavesAfter: 0, isSlow: false)
        }
        var exhibits: [HostileGallery.Exhibit] = []
        var nginx: [NginxServer] = []
        var others: [RealServer] = []
        if NginxServer.isInstalled {
            for refusal in refusals {
                let server = try await NginxServer.start(
                    documentRoot: files.path, serverDirectives: "location / { \(refusal.directive) }")
                nginx.append(server)
                exhibits.append(exhibit(22, refusal.name, refusal.title, "\(server.url)/file", false))
            }
            let title = "is an nginx with an object of Content-Encoding: gzip, ranges included"
            let server = try await NginxServer.start(
                documentRoot: files.path, serverDirectives: "add_header Content-Encoding gzip;")
            nginx.append(server)
            exhibits.append(exhibit(13, "gzip-object", title, "\(server.url)/file.gz", true))
        }
        let python = try await RealServer.startPython(root: files.path)
        others.append(python)
        exhibits.append(
            exhibit(1, "http-1.0", "is Python's http.server: HTTP/1.0, without ranges", "\(python.url)/file", false))
        if SeaweedServer.isInstalled {
            let store = try await SeaweedServer.start(bucket: "shelf")
            others.append(store)
            try await put(plain, to: "\(store.url)/shelf/file", coding: nil)
            try await put(files.path.appending("file.gz"), to: "\(store.url)/shelf/file.gz", coding: "gzip")
            exhibits.append(exhibit(8, "s3", "is an S3 store (SeaweedFS)", "\(store.url)/shelf/file", false))
            let title = "is an S3 store (SeaweedFS) with an object of Content-Encoding: gzip"
            exhibits.append(exhibit(13, "s3-gzip", title, "\(store.url)/shelf/file.gz", true))
        }
        return RealGallery(exhibits: exhibits, nginx: nginx, others: others, files: files)
    }

    private init(
        exhibits: [HostileGallery.Exhibit], nginx: [NginxServer], others: [RealServer], files: TemporaryDirectory
    ) {
        self.exhibits = exhibits
        self.nginx = nginx
        self.others = others
        self.files = files
    }

    /// Stops its servers.
    public func stop() async throws {
        for server in nginx { try await server.stop() }
        for server in others { try await server.stop() }
    }

    /// Puts an object into a bucket. A store makes its buckets some time after it listens.
    private static func put(_ file: FilePath, to url: String, coding: String?) async throws {
        let fields = coding.map { ["-H", "Content-Encoding: \($0)"] } ?? []
        try await eventually("the object \(url)") {
            let curl = try await TestProcess.start(
                "/usr/bin/curl", arguments: ["-sf", "-o", "/dev/null", "--upload-file", file.string, url] + fields)
            return try await curl.waitForExit() == .exited(0)
        }
    }
}

extension RealServer {
    /// Starts Python's own `http.server`, which answers in HTTP/1.0 and knows no ranges.
    static func startPython(root: FilePath) async throws -> RealServer {
        let program = try RealServer.program("python3")
        return try await RealServer.start("python3") { place in
            RealServer.Launch(
                program: program,
                arguments: ["-m", "http.server", "-b", "127.0.0.1", "-d", root.string, "\(place.port)"])
        }
    }
}
