import SystemPackage

/// A directory with PostgreSQL's server programs of one major version.
struct ServerBinaries: Sendable, Hashable {
    /// The directory that has both `initdb` and `postgres`.
    let directory: FilePath
    /// The major version, such as `15`.
    let version: String
    /// Tells these programs from others, also from those of the same version elsewhere or for another machine.
    let build: String

    private static var architecture: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "other"
        #endif
    }

    /// Finds the programs: in `MUSTER_PG_BINDIR` alone if it is set, else by `pg_config --bindir`, else in the usual
    /// places, the newest version first.
    ///
    /// - Parameter dataVersion: The major version of the data directory that exists, if any: only binaries of that
    ///   version can read it.
    static func find(
        environment: [String: String],
        location: ClusterLocation,
        dataVersion: String?
    ) async throws -> ServerBinaries {
        if let named = environment["MUSTER_PG_BINDIR"], !named.isEmpty {
            let directory = FilePath(named)
            for program in ["initdb", "postgres"] where !PrivateFiles.isExecutable(directory.appending(program)) {
                throw EmbeddedPostgresError.binaryDirectoryUnusable(path: directory, missing: program)
            }
            let binaries = try await ServerBinaries(directory: directory)
            guard dataVersion == nil || binaries.version == dataVersion else {
                throw mismatch(location, dataVersion, found: [binaries])
            }
            return binaries
        }

        var searched: [String] = []
        var found: [ServerBinaries] = []
        for place in try await places(environment: environment) {
            searched.append(place.description)
            for directory in try place.directories() where isComplete(directory) {
                let binaries = try await ServerBinaries(directory: directory)
                if dataVersion == nil || binaries.version == dataVersion { return binaries }
                found.append(binaries)
            }
        }
        guard !found.isEmpty else { throw EmbeddedPostgresError.serverBinariesNotFound(searched: searched) }
        throw mismatch(location, dataVersion, found: found)
    }

    /// The program `name` of this directory.
    func program(_ name: String) -> FilePath { directory.appending(name) }

    private init(directory: FilePath) async throws {
        self.directory = directory
        // "postgres (PostgreSQL) 15.14 (Debian …)", or "16beta1" in place of the number.
        let output = try await PostgresTool(path: directory.appending("postgres"), arguments: ["--version"])
            .runSuccessfully()
        self.build = ClusterLocation.hash(of: "\(directory)\n\(output)\n\(Self.architecture)")
        let words = output.split(whereSeparator: \.isWhitespace)
        self.version = words.count > 2 ? String(words[2].prefix(while: \.isNumber)) : "unknown"
    }

    private static func isComplete(_ directory: FilePath) -> Bool {
        PrivateFiles.isExecutable(directory.appending("initdb"))
            && PrivateFiles.isExecutable(directory.appending("postgres"))
    }

    private static func mismatch(
        _ location: ClusterLocation,
        _ dataVersion: String?,
        found: [ServerBinaries]
    ) -> EmbeddedPostgresError {
        var texts: [String] = []
        for text in found.map({ "\($0.version) in \($0.directory)" }) where !texts.contains(text) { texts.append(text) }
        return .versionMismatch(
            dataDirectory: location.dataDirectory,
            files: location.removable,
            dataVersion: dataVersion ?? "unknown",
            found: texts
        )
    }
}

/// One place where server programs may be.
enum BinaryPlace: Sendable, Hashable {
    /// The directory that `pg_config` printed.
    case configured(FilePath)
    /// Directories named `<parent>/<prefix><version>/<rest>`, one for each version.
    case versions(parent: FilePath, prefix: String, rest: String)
    /// A single directory.
    case single(FilePath)

    /// How the place is named in an error message.
    var description: String {
        switch self {
        case .configured(let path): "pg_config --bindir (\(path))"
        case .versions(let parent, let prefix, let rest): "\(parent)/\(prefix)*/\(rest)"
        case .single(let path): path.string
        }
    }

    /// The directories of this place, the newest version first.
    func directories() throws -> [FilePath] {
        switch self {
        case .configured(let path), .single(let path):
            return [path]
        case .versions(let parent, let prefix, let rest):
            guard try PrivateFiles.status(parent) != nil else { return [] }
            return try PrivateFiles.names(in: parent)
                .filter { $0.hasPrefix(prefix) }
                .compactMap { name in Double(name.dropFirst(prefix.count)).map { (name: name, version: $0) } }
                .sorted { $0.version > $1.version }
                .map { parent.appending($0.name).appending(rest) }
        }
    }
}

extension ServerBinaries {
    private static func places(environment: [String: String]) async throws -> [BinaryPlace] {
        var places: [BinaryPlace] = []
        for directory in (environment["PATH"] ?? "").split(separator: ":") {
            let program = FilePath(String(directory)).appending("pg_config")
            guard PrivateFiles.isExecutable(program) else { continue }
            // A pg_config that fails to run only means one place less: the usual places follow.
            let outcome = try await PostgresTool(path: program, arguments: ["--bindir"]).run()
            if outcome.succeeded, let line = outcome.output.split(separator: "\n").first {
                places.append(.configured(FilePath(String(line))))
            }
            break
        }
        return places + [
            .versions(parent: "/usr/lib/postgresql", prefix: "", rest: "bin"),
            .single("/usr/local/pgsql/bin"),
            .versions(parent: "/usr", prefix: "pgsql-", rest: "bin"),
            .versions(parent: "/opt/homebrew/opt", prefix: "postgresql@", rest: "bin"),
            .versions(parent: "/usr/local/opt", prefix: "postgresql@", rest: "bin"),
            .single("/opt/homebrew/bin"),
            .single("/usr/bin"),
            .single("/usr/local/bin"),
        ]
    }
}
