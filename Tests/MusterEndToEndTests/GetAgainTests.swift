import Foundation
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// What `get` says of files that it has fetched before.
    @Suite struct GetAgain {
        @Test func aFileThatHasAnotherContentSinceIsNotCalledThere() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let path = directory.path.appending(file.path)
            // Before each run, the file is left alone, written again with the same content, or written with another content of the same size.
            let ends: [(seed: UInt64?, words: String, code: Int32)] = [
                (nil, "1 succeeded", 0), (nil, "nothing to do", 0), (1, "nothing to do", 0),
                (2, "changed: f.bin was written to", 1),
            ]
            for end in ends {
                if let seed = end.seed {
                    let content = ScriptedOrigin.Content.seeded(seed: seed, size: .kibibytes(10)).bytes(in: 0..<10_240)
                    try Data(content).write(to: URL(filePath: path.string))
                    // As by a copy that keeps the modification time of its source.
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1_577_836_800)], ofItemAtPath: path.string)
                }
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url])
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(end.code), "\(get.standardError)")
                #expect((get.standardError + get.standardOutput).contains(end.words), "\(get.standardOutput)")
            }
        }

        /// After a run that succeeded, and after one in which another file failed.
        @Test(arguments: [false, true])
        func aFileThatIsGoneIsFetchedAgainHoweverTheLastRunEnded(failed: Bool) async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let other = origin.serveFile("g.bin", size: .kibibytes(10), seed: 2)
            let path = directory.path.appending(file.path).string
            if failed { origin.misbehave("/\(other.path)", .status(404, retryAfter: nil)) }
            let summary = failed ? "failed: 1 succeeded, 1 failed, 10.0 KiB" : "succeeded: 2 succeeded, 20.0 KiB"
            for isGone in [false, true] {
                if isGone { try FileManager.default.removeItem(atPath: path) }
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url, other.url])
                let status = try await get.waitForExit(limit: .seconds(120))
                #expect(status == .exited(failed ? 1 : 0), "\(get.standardError)")
                #expect(get.standardOutput.contains(summary), "\(get.standardOutput)")
                #expect(get.standardError.contains("a file is not there any more; fetching it again") == isGone)
                #expect(FileManager.default.fileExists(atPath: path), "counted as succeeded")
            }
        }

        /// With a list that has grown, with another list that has the same files, and with the first list again.
        @Test func theOriginIsNotAskedAboutWhatAnEarlierListHasBrought() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let files = (0..<3).map { origin.serveFile("\($0).bin", size: .kibibytes(10), seed: UInt64($0)) }
            func get(_ wanted: [WantedFile]) async throws -> TestProcess {
                let get = try await TestProcess.muster(["get", "-d", directory.path.string] + wanted.map(\.url))
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
                return get
            }
            _ = try await get(Array(files.prefix(2)))
            let asked = origin.requests.count
            let grown = try await get(files)
            #expect(grown.standardOutput.contains("1 succeeded") && grown.standardOutput.contains("2 there already"))
            #expect(try await get([files[2], files[0]]).standardOutput.contains("nothing to do"))
            #expect(try await get(files).standardOutput.contains("nothing to do"))
            let paths = origin.requests.dropFirst(asked).map(\.target)
            #expect(Set(paths) == ["/2.bin"], "\(paths)")
            // A file that is gone is fetched again, with any of the lists.
            try FileManager.default.removeItem(atPath: directory.path.appending("0.bin").string)
            _ = try await get(files)
            #expect(try FileDigest.sha256(directory.path.appending(files[0].path)) == files[0].sha256)
        }

        @Test func aFileThatChangedAtItsOriginIsReplacedWhenThatIsSaid() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            var file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            func get(_ options: [String], _ urls: [String]) async throws -> TestProcess {
                let get = try await TestProcess.muster(["get", "-d", directory.path.string] + options + urls)
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
                return get
            }
            _ = try await get([], [file.url])
            for seed in UInt64(2)...3 {
                let old = file
                file = origin.serveFile("f.bin", size: .kibibytes(10), seed: seed)
                let other = origin.serveFile("g\(seed).bin", size: .kibibytes(10), seed: 9)
                // The answer is the same for the same command as for another list, whatever has been replaced before.
                let again = try await get([], [file.url])
                #expect(again.standardOutput.contains("nothing to do"))
                #expect(again.standardError.contains("--if-exists replace"))
                #expect(try await get([], [file.url, other.url]).standardOutput.contains("1 there already"))
                #expect(try FileDigest.sha256(directory.path.appending(old.path)) == old.sha256)
                for isThere in [false, true] {
                    let replacing = try await get(["--if-exists", "replace"], [file.url])
                    #expect(replacing.standardOutput.contains("1 unchanged") == isThere, "\(replacing.standardOutput)")
                    #expect(try FileDigest.sha256(directory.path.appending(file.path)) == file.sha256)
                }
            }
            #expect(
                try await get([], [file.url]).standardOutput.contains("nothing to do"), "Muster itself has replaced it")
        }

        /// The database is damaged, as by a power cut, a bad disk or a user's mistake.
        @Test(arguments: ["global/pg_control", "pg_wal", "base"])
        func aDamagedDatabaseIsNamedWithWhatHelps(damage: String) async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory(
                permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            func get() async throws -> (TestProcess, TestProcess.Exit) {
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url])
                return (get, try await get.waitForExit(limit: .seconds(120)))
            }
            #expect(try await get().1 == .exited(0))
            let data = directory.path.appending(".muster/pg/data")
            let victim = data.appending(damage)
            if damage == "global/pg_control" {
                try Data(count: 100).write(to: URL(filePath: victim.string))
            } else {
                for name in try FileManager.default.contentsOfDirectory(atPath: victim.string) {
                    try FileManager.default.removeItem(atPath: victim.appending(name).string)
                }
            }
            let (failed, status) = try await get()
            let message = failed.standardError
            #expect(
                status == .exited(1) && message.contains("the private database in \(data) is damaged: "), "\(message)")
            #expect(message.contains("files that are finished are safe") && !message.contains("LOG:"), "\(message)")
            let command = try #require(message.split(separator: "\n").first { $0.hasPrefix("  mv ") })
            let removal = try await TestProcess.start("/bin/sh", arguments: ["-c", String(command)])
            #expect(try await removal.waitForExit(limit: .seconds(20)) == .exited(0))
            let (again, end) = try await get()
            #expect(end == .exited(0) && again.standardOutput.contains("1 succeeded"), "\(again.standardError)")
        }

        @Test func fileThatFailedBeforeGetWasInterruptedIsTriedAgain() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let files = [
                origin.serveFile("slow.bin", size: .mebibytes(3), seed: 1),
                origin.serveFile("late.bin", size: .kibibytes(10), seed: 2),
            ]
            origin.hold("/slow.bin", afterBytes: .mebibytes(1))
            origin.misbehave("/late.bin", .status(404, retryAfter: nil))
            let arguments = ["get", "-d", directory.path.string] + files.map(\.url)
            let first = try await TestProcess.muster(arguments)
            try await first.waitForLine(containing: "failed: late.bin", in: .standardError)
            try first.signal(SIGINT)
            #expect(try await first.waitForExit() == .exited(130), "\(first.standardError)")
            origin.behave("/late.bin")
            origin.release("/slow.bin")
            let second = try await TestProcess.muster(arguments)
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            #expect(second.standardError.contains("trying again what failed"))
            for file in files {
                #expect(try FileDigest.sha256(directory.path.appending(file.path)) == file.sha256, "\(file.path)")
            }
        }
    }
}
