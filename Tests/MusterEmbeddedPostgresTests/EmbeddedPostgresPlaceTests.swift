import FoundationEssentials
import Glibc
import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

@Suite struct EmbeddedPostgresPlaceTests {
    @Test(.enabled(if: PrivateServer.isRoot))
    func unreachableStateDirectoryKeepsItsDataElsewhereAndPointsThere() async throws {
        let place = try PrivateServer(permissions: .ownerReadWriteExecute)
        let fallback = try TemporaryDirectory()
        let server = place.server { $0.fallbackDirectory = fallback.path }
        let endpoint = try await server.start()
        _ = try await query("CREATE TABLE kept (n int)", endpoint)
        let pointer = place.root.appending("location")
        let target = FilePath(String(try read(pointer).dropLast()))
        #expect(target.starts(with: fallback.path))
        #expect(await server.dataDirectory == target.appending("data"))
        await server.stop()

        // From now on the pointer counts, even if the directory could be reached.
        try #require(chmod(place.directory.path.string, 0o755) == 0)
        let again = try await server.start()
        #expect(try await query("SELECT count(*) FROM kept", again) == "0")
        await server.stop()

        // Lost data is an error, unlike a directory that never had data.
        try #require(rename(target.appending("data").string, target.appending("gone").string) == 0)
        await #expect(
            throws: EmbeddedPostgresError.dataMissing(dataDirectory: target.appending("data"), pointer: pointer)
        ) {
            _ = try await server.start()
        }
    }

    @Test func aPathThatIsTooLongForAServerKeepsItsDataElsewhere() async throws {
        let place = try PrivateServer()
        let fallback = try TemporaryDirectory(
            permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
        var long = place.directory.path
        for _ in 0..<5 { long.append(String(repeating: "d", count: 200)) }
        try FileManager.default.createDirectory(atPath: long.string, withIntermediateDirectories: true)
        let server = place.server(in: long) { $0.fallbackDirectory = fallback.path }
        #expect(try await query("SELECT 1", try await server.start()) == "1")
        #expect(await server.dataDirectory?.starts(with: fallback.path) == true)
        await server.stop()
    }

    /// Data that is kept elsewhere belongs to the state directory that points there, and to that one only.
    @Test(.enabled(if: PrivateServer.isRoot))
    func movedStateDirectoryKeepsItsDataAndACopyHasNone() async throws {
        let place = try PrivateServer(permissions: .ownerReadWriteExecute)
        let fallback = try TemporaryDirectory(
            permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
        func server(_ name: String) -> EmbeddedPostgres {
            place.server(in: place.directory.path.appending(name)) { $0.fallbackDirectory = fallback.path }
        }
        func tables(_ name: String) async throws -> String {
            let server = server(name)
            let count = try await query(
                "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'", try await server.start())
            await server.stop()
            return count
        }
        let first = server("first")
        _ = try await query("CREATE TABLE kept (n int)", try await first.start())
        let data = try #require(await first.dataDirectory)
        await first.stop()

        let (old, moved) = (place.directory.path.appending("first"), place.directory.path.appending("moved"))
        try #require(rename(old.string, moved.string) == 0)
        // A new state directory at the old path has data of its own, both before and after the moved directory is used.
        #expect(try await tables("first") == "0")
        #expect(try await tables("moved") == "1")
        #expect(try await tables("first") == "0")

        let copy = place.directory.path.appending("copy")
        let copying = try await TestProcess.start("/bin/cp", arguments: ["-a", moved.string, copy.string])
        #expect(try await copying.waitForExit() == .exited(0))
        let pointer = copy.appending("pg/location")
        await #expect(
            throws: EmbeddedPostgresError.copied(
                stateDirectory: copy, original: moved, dataDirectory: data, pointer: pointer)
        ) {
            _ = try await server("copy").start()
        }
        try #require(unlink(pointer.string) == 0)
        #expect(try await tables("copy") == "0")
        #expect(try await tables("moved") == "1")
    }

    /// The user's umask does not apply to the server's directories. Permissions that an earlier start left are corrected.
    @Test(.enabled(if: PrivateServer.isRoot), arguments: [nil, 0o700 as mode_t])
    func dataElsewhereIsReachedWhateverTheUmaskIs(left: mode_t?) async throws {
        let place = try PrivateServer(permissions: .ownerReadWriteExecute)
        let elsewhere = try TemporaryDirectory(
            permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
        let fallback = elsewhere.path.appending("fallback")
        if let left { try #require(mkdir(fallback.string, left) == 0) }
        let server = place.server { $0.fallbackDirectory = fallback }
        let before = umask(0o077)
        defer { _ = umask(before) }
        #expect(try await query("SELECT 1", try await server.start()) == "1")
        await server.stop()
    }

    @Test func longStateDirectoryGetsAShortSocketDirectory() async throws {
        let place = try PrivateServer()
        let long = place.directory.path.appending(String(repeating: "l", count: 120))
        let server = place.server(in: long)
        let endpoint = try await server.start()
        #expect(endpoint.socketDirectory.starts(with: "/tmp"))
        #expect(try endpoint.socketDirectory.stat().permissions.rawValue & 0o777 == 0o700)
        #expect(try await query("SELECT 1", endpoint) == "1")
        await server.stop()
        #expect(throws: Errno.noSuchFileOrDirectory) { try endpoint.socketDirectory.stat() }
    }

    @Test func stateDirectoryWithBlanksAndQuotesWorks() async throws {
        let place = try PrivateServer()
        let server = place.server(in: place.directory.path.appending("it's, a \\ \"place\""))
        let endpoint = try await server.start()
        #expect(try await query("SELECT 1", endpoint) == "1")
        await server.stop()
    }

    @Test func socketDirectoryThatOthersCanEnterIsRefused() async throws {
        let place = try PrivateServer()
        let long = place.directory.path.appending(String(repeating: "l", count: 120))
        let server = place.server(in: long)
        let socketDirectory = try await server.start().socketDirectory
        await server.stop()

        // Another user has made the directory first, and waits for our password-less connections.
        try #require(mkdir(socketDirectory.string, 0o777) == 0)
        try #require(chmod(socketDirectory.string, PrivateServer.isRoot ? 0o700 : 0o777) == 0)
        defer { _ = rmdir(socketDirectory.string) }
        if PrivateServer.isRoot { try #require(chown(socketDirectory.string, 12345, 12345) == 0) }
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .socketDirectoryRefused(socketDirectory, _)? = error as? EmbeddedPostgresError else {
                return false
            }
            return true
        }
    }

    @Test func relativeStateDirectoryIsTakenFromTheCurrentDirectory() async throws {
        let place = try PrivateServer()
        let up = String(repeating: "../", count: 40)
        let server = place.server(in: FilePath(up + String(place.stateDirectory.string.dropFirst())))
        #expect(try await query("SELECT 1", try await server.start()) == "1")
        await server.stop()
    }
}
