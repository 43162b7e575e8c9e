import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster remove --files delete` says what is done, and what is not yet.
    @Suite struct Removals {
        private func fetch(_ fleet: Fleet, _ group: String, _ file: WantedFile) async throws {
            _ = try await fleet.muster(["add", group, file.url, "--wait"])
            #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
        }

        @Test func withoutAWorkerTheFilesAreSaidToBeThereStill() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("f", size: 1_000)
            try await Fleet.run { fleet in
                let worker = try await fleet.startWorker("a")
                try await fetch(fleet, "g", file)
                try worker.signal(SIGTERM)
                try await worker.waitForExit()

                let removal = try await fleet.muster(["remove", "g", "--files", "delete"])
                #expect(removal.standardOutput.contains("1 finished file is still to be deleted"))
                #expect(removal.standardOutput.contains("no live worker reaches the sink default"))
                #expect(!removal.standardOutput.contains("were deleted"))
                #expect(FileManager.default.fileExists(atPath: fleet.sink.appending("f").string))
                for status in [try await fleet.muster(["status"]), try await fleet.muster(["status", "g"])] {
                    #expect(status.standardOutput.contains("removing"))
                    #expect(status.standardOutput.contains("still to be deleted"))
                }
                let json = try await fleet.muster(["status", "g", "--json"])
                #expect(json.standardOutput.contains(#""files":1"#))

                try await fleet.startWorker("b")
                try await eventually("the end of the file") {
                    !FileManager.default.fileExists(atPath: fleet.sink.appending("f").string)
                }
                let client = await fleet.client()
                try await eventually("the end of the removal") { try await client.removal(of: "g").files == 0 }
                _ = try await fleet.muster(["status", "g"], expecting: 6)
                #expect(try await fleet.muster(["status"]).standardOutput.contains("there are no groups"))
            }
        }

        /// Only the worker knows what became of each file.
        @Test func filesThatTheUserHasReplacedOrDeletedAreNotCalledDeleted() async throws {
            let origin = try await ScriptedOrigin.start()
            let files = ["deleted", "replaced", "missing"].map { origin.serveFile($0, size: 1_000) }
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                _ = try await fleet.muster(["add", "g", "--wait"] + files.map(\.url))
                let replaced = fleet.sink.appending("replaced").string
                try Data("somebody's own".utf8).write(to: URL(filePath: replaced), options: .atomic)
                try FileManager.default.removeItem(atPath: fleet.sink.appending("missing").string)
                let removal = try await fleet.muster(["remove", "g", "--files", "delete", "--wait", "--json"])
                #expect(
                    removal.standardOutput.contains(#""outcome":{"changed":1,"deleted":1,"missing":1}"#),
                    "\(removal.standardOutput)")
                #expect(removal.standardOutput.contains(#""fate":{"kept":0,"toDelete":3}"#))
                #expect(try Data(contentsOf: URL(filePath: replaced)) == Data("somebody's own".utf8))
                #expect(!FileManager.default.fileExists(atPath: fleet.sink.appending("deleted").string))
                let outcome = try await fleet.client().removal(of: "g").outcome
                #expect(outcome == .init(deleted: 1, changed: 1, missing: 1))
            }
        }

        /// No process can delete an immutable file, not even root's.
        @Test func aFileThatCanNotBeDeletedIsNamedWithTheReason() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("f", size: 1_000)
            try await Fleet.run { fleet in
                let worker = try await fleet.startWorker("a")
                try await fetch(fleet, "g", file)
                let path = fleet.sink.appending("f").string
                try await change(["+i", path])
                let reason = "deleting f: Operation not permitted"
                let removal = try await TestProcess.muster([
                    "remove", "g", "--files", "delete", "--wait", "--server", fleet.servers,
                ])
                try await removal.waitForLine(containing: reason, in: .standardError)
                try removal.signal(SIGINT)
                #expect(try await removal.waitForExit() == .exited(130))
                for arguments in [["status"], ["status", "g"], ["status", "--json"], ["status", "g", "--json"]] {
                    let status = try await fleet.muster(arguments).standardOutput
                    #expect(status.contains(reason), "\(arguments): \(status)")
                }
                #expect(worker.standardError.contains("A file can't be deleted"))
                let wait = try await fleet.muster(["wait", "g"], expecting: 6)
                #expect(wait.standardError.contains("muster remove g --wait"), "\(wait.standardError)")
                // A second command waits for a removal that is under way.
                let again = try await TestProcess.muster(["remove", "g", "--wait", "--server", fleet.servers])
                try await again.waitForLine(containing: reason, in: .standardError)
                try await change(["-i", path])
                #expect(try await again.waitForExit(limit: .seconds(60)) == .exited(0))
                #expect(again.standardOutput.contains("removed g; 1 file deleted"), "\(again.standardOutput)")
                #expect(!FileManager.default.fileExists(atPath: path))
            }
        }

        private func change(_ arguments: [String]) async throws {
            let chattr = try await TestProcess.start("/usr/bin/chattr", arguments: arguments)
            #expect(try await chattr.waitForExit() == .exited(0), "\(chattr.standardError)")
        }

        @Test func waitingEndsWhenTheFilesAreGone() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("f", size: 1_000)
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fetch(fleet, "g", file)
                let removal = try await fleet.muster(["remove", "g", "--files", "delete", "--wait"])
                #expect(removal.standardOutput.contains("1 file deleted"))
                #expect(!FileManager.default.fileExists(atPath: fleet.sink.appending("f").string))
            }
        }
    }
}
