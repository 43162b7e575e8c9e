import FoundationEssentials
import Glibc
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster up` on a disk that is full to the last byte, including the room that was kept for its database.
    @Suite(.enabled(if: TemporaryMount.isPermitted))
    struct UpFullDisk {
        @Test func lackOfRoomForTheDatabaseIsToldOnTheTerminalAndInAnswers() async throws {
            let disk = try TemporaryMount(mebibytes: 240)
            let scratch = try TemporaryDirectory()
            let environment: [String: String?] = [
                "XDG_RUNTIME_DIR": scratch.path.string, "MUSTER_TOKEN": nil, "MUSTER_WORKER_TOKEN": nil,
            ]
            let up = try await TestProcess.muster(
                ["up", "--data", disk.path.appending("data").string, "--listen", "127.0.0.1:0", "--workers", "0"],
                environment: environment)
            let line = try await up.waitForLine(containing: "listening on", in: .standardOutput, limit: .seconds(60))
            let url = String(line.split(separator: " ").last ?? "")
            func muster(_ words: String...) async throws -> TestProcess {
                let process = try await TestProcess.muster(words + ["--server", url], environment: environment)
                try await process.waitForExit(limit: .seconds(60))
                return process
            }
            #expect(try await muster("add", "g", "http://127.0.0.1:1/a").exit == .exited(0))

            let lack = "the disk is full: the private database in \(disk.path.appending("data/pg"))"
            try await eventually("the end of the database's room") {
                // The room that is given back to the database is filled as well.
                try? disk.fill(leaving: 0)
                return try await muster("add", "h\(UInt64.random(in: 0 ... .max))", "http://127.0.0.1:1/a")
                    .standardError.contains(lack)
            }
            #expect(
                up.standardError.contains(lack) && up.standardError.contains("waiting for room"), "\(up.standardError)")

            try disk.empty()
            try await up.waitForLine(containing: "there is room again", in: .standardError)
            try await eventually("the database") { try await muster("status", "g").exit == .exited(0) }
            try up.signal(SIGTERM)
            try await up.waitForExit(limit: .seconds(60))
        }
    }
}
