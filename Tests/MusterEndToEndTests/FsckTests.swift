import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster fsck` on a fleet that works (adr/0048).
    @Suite struct Fsck {
        private struct Answer: Decodable {
            var check: CheckDocument
            var findings: [FindingDocument]
        }

        private static func fsck(_ fleet: Fleet, _ options: [String], expecting status: Int32) async throws -> Answer {
            let command = try await fleet.muster(["fsck", "--json"] + options, expecting: status)
            return try JSONDecoder().decode(Answer.self, from: Data(command.standardOutput.utf8))
        }

        /// Inverts a byte of a file that keeps the time of its last change, as a failing disk does.
        private static func damage(_ path: FilePath) throws {
            var status = stat()
            try #require(stat(path.string, &status) == 0)
            let file = try FileDescriptor.open(path, .readWrite)
            try file.closeAfter {
                var byte: [UInt8] = [0]
                _ = try byte.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 100, into: $0) }
                byte[0] ^= 0xff
                try file.writeAll(toAbsoluteOffset: 100, byte)
            }
            let times = [status.st_atim, status.st_mtim]
            try #require(utimensat(AT_FDCWD, path.string, times, 0) == 0)
        }

        /// The directories of the installation and of its parts.
        private static func home(of fleet: Fleet) throws -> FilePath {
            let own = fleet.sink.appending(".muster")
            let names = try FileManager.default.contentsOfDirectory(atPath: own.string)
            return own.appending(try #require(names.first { UUID(uuidString: $0) != nil }))
        }

        /// Waits until all files of a group are there again. A repair may have opened more than one generation.
        private static func waitForSuccess(of group: String, _ fleet: Fleet) async throws {
            let client = await fleet.client()
            try await eventually("the files of \(group)") { try await client.group(group).state == .succeeded }
        }

        @Test func damageByHandIsFoundExactlyAndMended() async throws {
            let origin = try await ScriptedOrigin.start()
            let files = origin.serveFiles("f", sizes: [10_000, 20_000, 30_000, 3 << 20])
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", files)
                try await fleet.waitForEnd(of: "g")
                try await fleet.waitForNoParts()
                #expect(try await Self.fsck(fleet, ["--deep"], expecting: 0).findings.isEmpty)

                let sink = fleet.sink
                try FileManager.default.removeItem(atPath: sink.appending("f0").string)
                try Self.damage(sink.appending("f1"))
                try #require(truncate(sink.appending("f2").string, 100) == 0)
                let leftover = try Self.home(of: fleet).appending("parts").appending("987654321.1.part")
                try Data("leftover".utf8).write(to: URL(filePath: leftover.string))
                let stranger = sink.appending(".muster").appending("11111111-8d0e-4a3b-9a0f-6f2f0f6f1c11")
                try FileManager.default.createDirectory(atPath: stranger.string, withIntermediateDirectories: true)

                let found = try await Self.fsck(fleet, ["--deep"], expecting: 1)
                let expected: [String: FindingKind] = [
                    "f0": .fileMissing, "f1": .fileChanged, "f2": .fileChanged,
                    "parts/987654321.1.part": .partUnknown,
                    "11111111-8d0e-4a3b-9a0f-6f2f0f6f1c11": .installationForeign,
                ]
                let kinds = Dictionary(found.findings.map { ($0.subject, $0.kind) }) { first, _ in first }
                #expect(kinds == expected, "\(found.findings)")
                #expect(found.check.found == 4 && found.check.notes == 1 && found.check.repaired == 0)
                // Without --deep, the damage that no program did is not seen.
                let shallow = try await Self.fsck(fleet, [], expecting: 1)
                #expect(Set(shallow.findings.map(\.subject)) == Set(expected.keys).subtracting(["f1"]))

                // What another program wrote to stays; the user moves it away.
                let repaired = try await Self.fsck(fleet, ["--deep", "--repair"], expecting: 1)
                #expect(repaired.findings.filter { $0.outcome == "found" && !$0.isNote }.map(\.subject) == ["f2"])
                try await Self.waitForSuccess(of: "g", fleet)
                try FileManager.default.removeItem(atPath: sink.appending("f2").string)
                #expect(try await Self.fsck(fleet, ["--repair"], expecting: 0).check.repaired == 1)
                try await Self.waitForSuccess(of: "g", fleet)
                for file in files {
                    #expect(try FileDigest.sha256(sink.appending(file.path)) == file.sha256, "\(file.path)")
                }
                try await fleet.waitForNoParts()
                #expect(FileManager.default.fileExists(atPath: stranger.string), "it belongs to another installation")
                let clean = try await Self.fsck(fleet, ["--deep"], expecting: 0)
                #expect(clean.findings.map(\.isNote) == [true])
                let text = try await fleet.muster(["fsck", "--sink", "default"])
                #expect(
                    text.standardOutput.contains("checked default: 4 files, 0 parts: 1 note"), "\(text.standardOutput)")

                // A repair after which the file is not there is no success.
                try FileManager.default.removeItem(atPath: sink.appending("f1").string)
                origin.remove("/f1")
                #expect(try await Self.fsck(fleet, ["--repair"], expecting: 1).check.repaired == 1)
            }
        }

        /// A finding has to be true at a moment when work goes on.
        @Test func aFleetThatFetchesGivesNoFinding() async throws {
            let origin = try await ScriptedOrigin.start()
            let small = origin.serveFiles("s", sizes: Array(repeating: 20_000, count: 60))
            let large = origin.serveFiles("l", sizes: Array(repeating: 4 << 20, count: 2), seed: 9)
            try await Fleet.run(coordinators: 2) { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.knowOrigins()
                // The first chunk of a file stays under way until it is released.
                origin.hold("/l0", afterBytes: 500_000)
                try await fleet.submit("large", large)
                try await fleet.submit("small", small)
                #expect(try await Self.fsck(fleet, ["--deep"], expecting: 0).findings.isEmpty)
                #expect(try await fleet.client().group("large").state == .sealed, "it was being fetched meanwhile")
                try await fleet.replaceWorker("a")
                #expect(try await Self.fsck(fleet, ["--repair"], expecting: 0).findings.isEmpty)
                origin.release("/l0")
                #expect(try await Self.fsck(fleet, ["--deep"], expecting: 0).findings.isEmpty)
                for (group, files) in [("small", small), ("large", large)] {
                    try await fleet.waitForEnd(of: group)
                    try await fleet.check(group, files)
                }
            }
        }

        /// A command whose check waits for a worker. The sink is known by its directory; no worker is left that reaches it.
        private static func waitingCheck(_ fleet: Fleet) async throws -> TestProcess {
            let worker = try await fleet.startWorker("a")
            try worker.signal(SIGTERM)
            _ = try await worker.waitForExit()
            let command = try await TestProcess.muster(["fsck", "--sink", "default", "--server", fleet.servers])
            try await command.waitForLine(containing: "no live worker reaches the sink default", in: .standardError)
            return command
        }

        @Test func aCheckThatIsStoppedEnds() async throws {
            try await Fleet.run { fleet in
                let command = try await Self.waitingCheck(fleet)
                try command.signal(SIGINT)
                #expect(try await command.waitForExit() == .exited(130))
                try await fleet.startWorker("b")
                #expect(try await Self.fsck(fleet, [], expecting: 0).findings.isEmpty)
            }
        }

        /// The command ends although the coordinator is silent. Another command names the check that is left, and stops it.
        @Test func aCommandThatCanNotStopItsCheckEndsAndAnotherOneStopsIt() async throws {
            try await Fleet.run { fleet in
                let command = try await Self.waitingCheck(fleet)
                let coordinators = await fleet.coordinators
                let coordinator = try #require(coordinators.first).process
                try coordinator.signal(SIGSTOP)
                try command.signal(SIGINT)
                try await command.waitForLine(containing: "stopping the check", in: .standardError)
                // Without a limit, the client asks for longer than this waits.
                let end = try await command.waitForExit()
                try coordinator.signal(SIGCONT)
                #expect(end == .exited(130))
                #expect(command.standardError.contains("the check may go on: muster "), "\(command.standardError)")
                #expect(command.standardError.contains(" fsck --stop stops it"), "\(command.standardError)")

                let refused = try await fleet.muster(["fsck", "--deep"], expecting: 6)
                #expect(refused.standardError.contains(" (--sink default), begun "), "\(refused.standardError)")
                let stop = try await fleet.muster(["fsck", "--stop"])
                #expect(stop.standardOutput.contains(" (--sink default), begun "), "\(stop.standardOutput)")
                #expect(stop.standardOutput.hasSuffix(", is stopped\n"), "\(stop.standardOutput)")
                let again = try await fleet.muster(["fsck", "--stop"])
                #expect(again.standardOutput == "no check is under way\n")
                _ = try await fleet.muster(["fsck", "--stop", "--deep"], expecting: 2)
            }
        }
    }
}
