import Glibc
import SystemPackage

extension ServerBinaries {
    /// Makes everything durable that was written below a directory.
    ///
    /// One call for the whole file system takes a fifth of the time that a call for each of a thousand files takes. Where there is no such
    /// call, or it does not report failures, `initdb` syncs each file.
    func makeDurable(_ directory: FilePath, account: ServerAccount) async throws {
        if Self.wholeSyncReportsErrors {
            let sync = PostgresTool(path: "/bin/sync", arguments: ["-f", directory.string])
            if PrivateFiles.isExecutable(sync.path), try await sync.run().succeeded { return }
        }
        let data = try PrivateFiles.missing(inCluster: directory) == nil ? directory : directory.appending("data")
        try await PostgresTool(
            path: program("initdb"), arguments: ["--sync-only", "-D", data.string], account: account
        ).runSuccessfully()
    }

    /// Since Linux 5.8 a sync of a whole file system says when something could not be written.
    private static let wholeSyncReportsErrors: Bool = {
        var system = utsname()
        guard uname(&system) == 0 else { return false }
        let release = withUnsafeBytes(of: &system.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 8)
    }()
}
