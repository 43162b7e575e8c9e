import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster get` on a full disk of 240 MiB, of which its database and the room for that take 88 MiB at the start.
    @Suite(.enabled(if: TemporaryMount.isPermitted))
    struct GetFullDisk {
        /// A file of 64 MiB, a disk with less room than that, and the command that fetches the file to the disk.
        private struct Scene {
            let origin: ScriptedOrigin
            let file: WantedFile
            let disk: TemporaryMount

            init() async throws {
                origin = try await ScriptedOrigin.start()
                file = origin.serveFile("large.bin", size: .mebibytes(64), seed: 1)
                disk = try TemporaryMount(mebibytes: 240)
            }

            func get(_ options: [String] = []) async throws -> TestProcess {
                try await TestProcess.muster(["get", "-d", disk.path.string] + options + [file.url])
            }

            func check() throws {
                #expect(try FileDigest.sha256(disk.path.appending(file.path)) == file.sha256)
                #expect(Fleet.parts(below: disk.path).isEmpty)
            }
        }

        @Test func aFileThatDoesNotFitEndsTheCommandWhichGoesOnOnceThereIsRoom() async throws {
            let scene = try await Scene()
            try scene.disk.fill(leaving: 130)
            let first = try await scene.get()
            #expect(try await first.waitForExit(limit: .seconds(120)) == .exited(1))
            let error = first.standardError
            #expect(error.contains("\(scene.disk.path) has no room for a file"), "\(error)")
            #expect(error.contains("large.bin: the file needs 64.0 MiB more"), "\(error)")
            #expect(error.contains("the file needs 64.0 MiB more"), "\(error)")
            #expect(error.contains("--on-full wait"), "\(error)")

            let asked = try await scene.get(["--json"])
            #expect(try await asked.waitForExit(limit: .seconds(120)) == .exited(1))
            let document = try JSONDecoder().decode(GroupDocument.self, from: Data(asked.standardOutput.utf8))
            #expect(document.tasks.total == 1 && document.tasks.succeeded == 0, "\(asked.standardOutput)")
            #expect(asked.standardError.contains("has no room for a file"), "\(asked.standardError)")

            try scene.disk.empty()
            let second = try await scene.get()
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            try scene.check()
        }

        @Test func aFileThatIsLargerThanTheFileSystemFailsWithBothSizes() async throws {
            let scene = try await Scene()
            let huge = scene.origin.serveFile("huge.bin", size: .mebibytes(1_024), seed: 2)
            let get = try await TestProcess.muster(["get", "-d", scene.disk.path.string, huge.url])
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(get.standardOutput.contains("1 failed"), "\(get.standardOutput)")
            let error = get.standardError
            #expect(error.contains("1.0 GiB") && error.contains("the whole file system has 240.0 MiB"), "\(error)")
            #expect(!error.contains("of 8"), "\(error)")
        }

        @Test func aCommandThatWaitsGoesOnByItselfOnceThereIsRoom() async throws {
            let scene = try await Scene()
            try scene.disk.fill(leaving: 130)
            let get = try await scene.get(["--on-full", "wait"])
            try await get.waitForLine(containing: "waiting for room", in: .standardError)
            try scene.disk.empty()
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
            #expect(!get.standardError.contains("\\u{a}") && !get.standardError.contains("failed:"))
            try scene.check()
        }

        @Test(arguments: [20, 0])
        func aDiskWithoutRoomForTheDatabaseIsSaidToBeFullAndNothingIsLeftThatHindersTheNextStart(
            mebibytes: Int
        ) async throws {
            let scene = try await Scene()
            try scene.disk.fill(leaving: mebibytes)
            let first = try await scene.get()
            #expect(try await first.waitForExit(limit: .seconds(60)) == .exited(1))
            let error = first.standardError
            #expect(error.contains("the disk is full: the private database"), "\(error)")
            #expect(error.contains("are missing"), "\(error)")

            let second = try await scene.get(["--on-full", "wait"])
            try await second.waitForLine(containing: "waiting for room", in: .standardError)
            try scene.disk.empty()
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            #expect(second.standardError.contains("there is room again"))
            try scene.check()
        }
    }
}
