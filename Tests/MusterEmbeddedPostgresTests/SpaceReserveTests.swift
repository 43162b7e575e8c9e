import Glibc
import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

/// A disk that runs full under a server.
@Suite("Room for the server", .enabled(if: TemporaryMount.isPermitted))
struct SpaceReserveTests {
    private func server(_ disk: TemporaryMount) throws -> EmbeddedPostgres {
        try PrivateServer().server(in: disk.path.appending("state")) { $0.reserveMiB = 64 }
    }

    private func exists(_ disk: TemporaryMount, _ name: String) -> Bool {
        access(disk.path.appending("state/pg").appending(name).string, F_OK) == 0
    }

    @Test func aDiskWithoutRoomForTheServerIsRefusedWithWhatIsMissing() async throws {
        let disk = try TemporaryMount(mebibytes: 60)
        let server = try server(disk)
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .diskFull(_, let needed, let free)? = error as? EmbeddedPostgresError else { return false }
            return needed == 80 << 20 && free <= 60 << 20 && "\(error)".contains("21 MiB are missing")
        }
        #expect(!exists(disk, "data") && !exists(disk, "reserve"))
    }

    /// On a full disk the server's log may be empty, and the first client may be told only of a file that could not be written.
    @Test func failureForLackOfRoomIsDistinguishedFromOthers() async throws {
        let disk = try TemporaryMount(mebibytes: 240)
        let server = try server(disk)
        _ = try await server.start()
        struct Said: Error, CustomStringConvertible { let description: String }
        #expect(await !server.lacksRoom(behind: Said(description: "permission denied")))
        #expect(await server.lacksRoom(behind: Said(description: "FATAL: could not write init file")))
        #expect(await server.lacksRoom(behind: EmbeddedPostgresError.serverExited(status: "exited(1)", log: "")))
        #expect(await !server.lacksRoom(behind: EmbeddedPostgresError.serverExited(status: "exited(1)", log: "no")))
        try disk.fill(leaving: 8)
        #expect(await server.lacksRoom(behind: EmbeddedPostgresError.serverExited(status: "exited(1)", log: "no")))
        await server.stop(.immediate)
    }

    @Test func aDiskThatTakesNoMoreFilesIsRefusedWithHowManyAreMissing() async throws {
        let disk = try TemporaryMount(mebibytes: 240, files: 500)
        let server = try server(disk)
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .filesFull(_, let needed, let free)? = error as? EmbeddedPostgresError else { return false }
            return needed > 1_000 && free < 500 && "\(error)".contains("\(needed - free) are missing")
        }
        #expect(!exists(disk, "data"))
    }

    @Test func reserveIsTakenAtTheStartGivenUpWhenTheDiskIsFullAndTakenAgain() async throws {
        let disk = try TemporaryMount(mebibytes: 240)
        let server = try server(disk)
        let endpoint = try await server.start()
        #expect(try await server.tendReserve()?.keptBytes == 64 << 20)
        try disk.fill(leaving: 1)
        let given = try #require(try await server.tendReserve())
        #expect(given.keptBytes == 0 && given.lack(after: nil) == nil, "the server has the reserve")
        // More than one segment of the WAL.
        let sql = "CREATE TABLE kept AS SELECT n, repeat('x', 1000) AS text FROM generate_series(1, 20000) n"
        _ = try await query(sql, endpoint)
        #expect(try await query("SELECT count(*) FROM kept", endpoint) == "20000")
        try disk.fill(leaving: 24)
        let little = try #require(try await server.tendReserve())
        try disk.fill(leaving: 8)
        let lack = try #require(try await server.tendReserve()?.lack(after: nil))
        #expect(lack.isLackOfRoom && "\(lack)".contains("needs 32 MiB, and 8 MiB are free"), "\(lack)")
        #expect(little.lack(after: nil) == nil && little.lack(after: lack) != nil, "it could not be started there")
        try disk.empty()
        #expect(try await server.tendReserve()?.keptBytes == 64 << 20)
        #expect(try await server.tendReserve()?.lack(after: lack) == nil)
        await server.stop()
        #expect(!exists(disk, "reserve"))
    }

    @Test func serverThatRanOutOfRoomStartsAgainInTheReserve() async throws {
        let disk = try TemporaryMount(mebibytes: 240)
        let server = try server(disk)
        let endpoint = try await server.start()
        _ = try await query("CREATE TABLE kept (n int, text text); INSERT INTO kept VALUES (7)", endpoint)
        try disk.fill(leaving: 0)
        let sql = "INSERT INTO kept SELECT n, repeat('x', 1000) FROM generate_series(1, 50000) n"
        await #expect(throws: QueryFailed.self) { _ = try await query(sql, endpoint) }
        await server.stop(.immediate)
        let again = try await server.start()
        #expect(try await query("SELECT count(*) FROM kept", again) == "1")
        await server.stop()
    }

    /// The directory holds a user's data. A new cluster in its place would hide the loss.
    @Test(arguments: ["global/pg_control", "PG_VERSION"])
    func aDataDirectoryThatLacksWhatEveryServerNeedsIsRefusedAndLeftAlone(file: String) async throws {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        await server.stop()
        let data = place.root.appending("data")
        let aside = place.root.appending("aside")
        try #require(rename(data.appending(file).string, aside.string) == 0)
        let error = await #expect(throws: EmbeddedPostgresError.self) { try await server.start() }
        #expect(error?.description.contains("\(file) is missing or empty") == true, "\(error as Any)")
        // With that file the cluster starts as before.
        try #require(rename(aside.string, data.appending(file).string) == 0)
        #expect(try await server.start().provenance == .started)
        await server.stop()
    }
}
