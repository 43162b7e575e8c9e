import Glibc
public import SystemPackage

extension TestProcess {
    /// Starts the `muster` executable of this build.
    public static func muster(
        _ arguments: [String],
        environment: [String: String?] = [:],
        workingDirectory: FilePath? = nil,
        input: Input = .none
    ) async throws -> TestProcess {
        try await start(
            try musterExecutable(),
            arguments: arguments,
            environment: environment,
            workingDirectory: workingDirectory,
            input: input
        )
    }

    /// No `muster` executable was found.
    public struct NoExecutable: Error, Sendable, Hashable {
        /// Where it was looked for.
        public let searched: [FilePath]
    }

    /// The `muster` executable: `MUSTER_BINARY`, or the one in the build directory that the test bundle is in.
    public static func musterExecutable() throws -> FilePath {
        var candidates: [FilePath] = []
        if let named = Environs.value("MUSTER_BINARY") {
            candidates = [FilePath(named)]
        } else {
            // The bundle is run directly, or by a helper of the toolchain that gets its path as an argument.
            var starts = CommandLine.arguments.filter { $0.contains(".xctest") || $0.hasPrefix("/") }
                .map { FilePath($0) }
            if let own = ownExecutable() { starts.append(own) }
            for start in starts {
                var directory = start.removingLastComponent()
                for _ in 0..<4 where !directory.isEmpty {
                    candidates.append(directory.appending("muster"))
                    directory.removeLastComponent()
                }
            }
        }
        for candidate in candidates {
            if let status = try? candidate.stat(), status.type == .regular, access(candidate.string, X_OK) == 0 {
                return candidate
            }
        }
        throw NoExecutable(searched: candidates)
    }

    /// Runs one test of this bundle in a process of its own, which a test may then kill: this is the only way to test
    /// what the end of a process does to the processes that it started.
    ///
    /// - Parameters:
    ///   - name: The name of the test function, without parentheses. It should do nothing unless a variable of
    ///     `environment` is set, since it is run along with all others too.
    ///   - prefix: A program with arguments that runs the bundle, such as `setpriv` with another user.
    public static func rerunTest(
        named name: String,
        environment: [String: String?],
        prefix: [String] = []
    ) async throws -> TestProcess {
        guard let own = ownExecutable() else { throw NoExecutable(searched: ["/proc/self/exe"]) }
        let command = prefix + [own.string]
        return try await start(
            FilePath(command[0]),
            // The bundle's path is passed on if a helper of the toolchain was given it, and no other argument.
            arguments: Array(command.dropFirst()) + bundleArguments() + [
                "--testing-library", "swift-testing", "--filter", "\\b\(name)\\b",
            ],
            environment: environment,
            workingDirectory: "/"
        )
    }

    /// The arguments that tell a helper of the toolchain which bundle to load; none if the bundle itself is run.
    private static func bundleArguments() -> [String] {
        let arguments = CommandLine.arguments
        guard let flag = arguments.firstIndex(of: "--test-bundle-path"), arguments.indices.contains(flag + 1) else {
            return []
        }
        return [arguments[flag], arguments[flag + 1]]
    }

    private static func ownExecutable() -> FilePath? {
        guard let resolved = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(resolved) }
        return FilePath(String(cString: resolved))
    }
}
