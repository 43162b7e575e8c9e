import FoundationEssentials
import Glibc
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster get`: one process tree, which goes on where it was after it was killed.
    @Suite struct Get {
        /// Three files, one of them done soon and two held half-way, and the command that fetches them.
        private final class Scene: Sendable {
            let origin: ScriptedOrigin
            let files: [WantedFile]
            let directory: TemporaryDirectory
            static let held = Int64.kibibytes(512)
            static let large = Int64.mebibytes(3)

            init() async throws {
                origin = try await ScriptedOrigin.start()
                directory = try TemporaryDirectory()
                files = [
                    origin.serveFile("small.bin", size: .kibibytes(100), seed: 1),
                    origin.serveFile("one.bin", size: Self.large, seed: 2),
                    origin.serveFile("two.bin", size: Self.large, seed: 3),
                ]
            }

            /// Where the files go.
            var target: FilePath { directory.path.appending("files") }

            /// Makes the installation know that the origin serves a file more than once, so that chunks are asked for from the first
            /// request on (adr/0027).
            func knowOrigin() async throws {
                let file = origin.serveFile("known.bin", size: Self.large, seed: 4)
                origin.hold("/\(file.path)", afterBytes: Self.held)
                let arguments = ["get", "-d", target.string, "--minimum-chunk", "1MiB", file.url]
                let get = try await TestProcess.muster(arguments)
                // The first request, the trial, and one part of the file that is divided after the trial.
                try await origin.waitForRequests("/\(file.path)", count: 3)
                origin.release("/\(file.path)")
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
            }

            /// Holds back the large files.
            func hold() {
                for file in files[1...] { origin.hold("/\(file.path)", afterBytes: Self.held) }
            }

            /// Lets the large files come.
            func release() {
                for file in files[1...] { origin.release("/\(file.path)") }
            }

            /// Starts the command, for the files of the scene unless others are given.
            func start(_ wanted: [WantedFile]? = nil, token: String? = nil) async throws -> TestProcess {
                try await TestProcess.muster(
                    ["get", "-d", target.string, "--slots", "16", "--minimum-chunk", "1MiB"]
                        + (token.map { ["--header", "X-Token: \($0)"] } ?? []) + (wanted ?? files).map(\.url)
                )
            }

            /// Makes the origin refuse requests without this token.
            func demand(token: String) {
                for file in files {
                    origin.behave("/\(file.path)")
                    origin.misbehave("/\(file.path)", .requires(.header(.init("X-Token", token))))
                }
            }

            /// Waits until the small file is there and bytes of each large one have come.
            func waitUntilHalfWay() async throws {
                try await eventually("the small file") {
                    (try? FileDigest.sha256(target.appending("small.bin"))) == files[0].sha256
                }
                for file in files[1...] {
                    // Chunks of 1 MiB: the first one, and what follows when the size is known.
                    try await origin.waitUntil("/\(file.path)", bytesSent: 3 * Self.held)
                }
            }

            /// The bytes that were sent of the large files.
            var sent: Int64 { files[1...].reduce(0) { $0 + origin.bytesSent("/\($1.path)") } }

            func check() throws {
                for file in files {
                    #expect(try FileDigest.sha256(target.appending(file.path)) == file.sha256, "\(file.path)")
                }
                #expect(Fleet.parts(below: target).isEmpty)
            }
        }

        @Test func killedGetGoesOnWithWhatWasDurable() async throws {
            let scene = try await Scene()
            try await scene.knowOrigin()
            scene.hold()
            let first = try await scene.start()
            try await scene.waitUntilHalfWay()
            // All of it is durable once the progress says so: six chunks of which half a MiB each has come.
            let durable = 6 * Scene.held + .kibibytes(100)
            let text = "\(ByteCount(bytes: durable))/\(ByteCount(bytes: 2 * Scene.large + .kibibytes(100)))"
            try await first.waitForLine(containing: text, in: .standardOutput)
            let before = scene.origin.requests
            let tree = [first.processID] + ProcessTree.descendants(of: first.processID)
            #expect(tree.count > 1)
            try await first.killTree()
            for process in tree { try await ProcessTree.waitForEnd(of: process) }
            try await scene.origin.waitForOpenConnections(atMost: 0)
            scene.release()

            let second = try await scene.start()
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            try scene.check()
            #expect(scene.origin.requests(for: "/small.bin").count == 1)
            let later = scene.origin.requests.dropFirst(before.count)
            for file in scene.files[1...] {
                let starts = before.filter { $0.path == "/\(file.path)" }.map(\.start)
                #expect(
                    Set(later.filter { $0.path == "/\(file.path)" }.map(\.start)) == Set(starts.map { $0 + Scene.held })
                )
            }
            #expect(scene.sent == 2 * Scene.large)

            let count = scene.origin.requests.count
            let third = try await scene.start()
            #expect(try await third.waitForExit() == .exited(0))
            #expect(third.standardOutput.contains("nothing to do"))
            #expect(scene.origin.requests.count == count)
        }

        /// Their databases are copies of one template.
        @Test func twoDirectoriesAreTwoInstallations() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("a.bin", size: .kibibytes(10), seed: 1)
            var installations: Set<String> = []
            for _ in 0..<2 {
                let directory = try TemporaryDirectory()
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url])
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
                #expect(get.standardOutput.contains("finished: a.bin"), "\(get.standardOutput)")
                let names = try FileManager.default.contentsOfDirectory(
                    atPath: directory.path.appending(".muster").string)
                installations.formUnion(names.filter { UUID(uuidString: $0) != nil })
            }
            #expect(installations.count == 2)
        }

        @Test func troubleIsShownAsItHappensAndOnceMoreAtAStop() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let files = [
                origin.serveFile("good.bin", size: .kibibytes(10), seed: 1),
                origin.serveFile("bad.bin", size: .kibibytes(10), seed: 2),
            ]
            origin.misbehave("/bad.bin", .status(503, retryAfter: nil))
            let get = try await TestProcess.muster(["get", "-d", directory.path.string] + files.map(\.url))
            try await get.waitForLine(
                containing: "retrying: bad.bin: 503 Service Unavailable, ", in: .standardError)
            try get.signal(SIGINT)
            #expect(try await get.waitForExit() == .exited(130), "\(get.standardError)")
            let last = try #require(get.standardOutput.split(separator: "\n").last)
            #expect(last.contains("1/2 files") && last.contains("1 retrying"), "\(get.standardOutput)")
        }

        /// The pipe can be opened for writing as soon as `get` has it open for reading, to wait for a list.
        @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
        func getThatIsStoppedBeforeAnythingIsBegunSaysSo(signal: Int32, status: Int32) async throws {
            let directory = try TemporaryDirectory()
            let list = directory.path.appending("list")
            try #require(mkfifo(list.string, 0o600) == 0)
            let get = try await TestProcess.muster(["get", "-d", directory.path.string, "-i", list.string])
            let writer = try await eventually("the list is read") {
                try? FileDescriptor.open(list, .writeOnly, options: .nonBlocking)
            }
            try get.signal(signal)
            #expect(try await get.waitForExit() == .exited(status))
            #expect(get.standardError == "stopped; run the same command again to go on\n")
            try writer.close()
        }

        @Test func aFileInTheWayNamesTheOptionAndTheNamesOfASharedEndingAreTheirOwn() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let files = [
                origin.serveFile("s0.bin", size: .kibibytes(10), seed: 1),
                origin.serveFile("d2/s0.bin", size: .kibibytes(20), seed: 2),
            ]
            #expect(
                FileManager.default.createFile(
                    atPath: directory.path.appending("s0.bin").string, contents: Data("mine".utf8)))
            let get = try await TestProcess.muster(["get", "-d", directory.path.string] + files.map(\.url))
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(1), "\(get.standardError)")
            #expect(get.standardError.contains("--if-exists replace"))
            #expect(!get.standardError.contains("run the same command again"))
            #expect(get.standardError.contains("/d2/s0.bin is stored as s0 (2).bin"))
            #expect(try FileDigest.sha256(directory.path.appending("s0 (2).bin")) == files[1].sha256)
        }

        @Test func aFileThatWasThereBeforeIsRefusedEachTime() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let files = [
                origin.serveFile("old.bin", size: .kibibytes(10), seed: 1),
                origin.serveFile("new.bin", size: .kibibytes(20), seed: 2),
            ]
            // The content is the wanted one, but `get` hasn't fetched it.
            let content = ScriptedOrigin.Content.seeded(seed: 1, size: .kibibytes(10)).bytes(in: 0..<10_240)
            #expect(
                FileManager.default.createFile(
                    atPath: directory.path.appending("old.bin").string, contents: Data(content)))
            func get(_ file: WantedFile) async throws -> TestProcess {
                try await TestProcess.muster(["get", "-d", directory.path.string, "--if-exists", "fail", file.url])
            }
            for _ in 0..<2 {
                let refused = try await get(files[0])
                #expect(try await refused.waitForExit(limit: .seconds(120)) == .exited(1), "\(refused.standardError)")
                #expect(refused.standardError.contains("a file stands at old.bin, and the group takes none that was"))
            }
            #expect(origin.requests(for: "/old.bin").isEmpty, "nothing is fetched for it")
            let document = try await TestProcess.muster(
                ["get", "-d", directory.path.string, "--if-exists", "fail", "--json", files[0].url])
            #expect(try await document.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(document.standardOutput.contains("--if-exists verify takes it if it is the same"))
            #expect(!document.standardOutput.contains("muster retry"), "there is no coordinator any more")
            for words in ["1 succeeded", "nothing to do"] {
                let own = try await get(files[1])
                #expect(try await own.waitForExit(limit: .seconds(120)) == .exited(0), "\(own.standardError)")
                #expect(own.standardOutput.contains(words), "what it has fetched itself is its own")
            }
        }

        @Test func getOfAnotherListGoesOnWithWhatBothWant() async throws {
            let scene = try await Scene()
            try await scene.knowOrigin()
            scene.hold()
            let first = try await scene.start()
            try await scene.waitUntilHalfWay()
            try first.signal(SIGINT)
            #expect(try await first.waitForExit() == .exited(130))
            try await scene.origin.waitForOpenConnections(atMost: 0)

            let (shared, left) = (scene.files[1], scene.files[2])
            let sent = scene.origin.bytesSent("/\(shared.path)")
            let requests = scene.origin.requests(for: "/\(left.path)").count
            let sentOfAll = scene.sent
            let new = scene.origin.serveFile("new.bin", size: .kibibytes(100), seed: 5)
            let second = try await scene.start([shared, new])
            // The new file comes at once, whatever happens to the files that were begun before.
            try await eventually("the new file is there") {
                FileManager.default.fileExists(atPath: scene.target.appending(new.path).string)
            }
            scene.release()
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            #expect(second.standardError.contains("going on with a file of an unfinished request"))
            #expect(!second.standardError.contains("dropped"))
            for file in [shared, new] {
                #expect(try FileDigest.sha256(scene.target.appending(file.path)) == file.sha256, "\(file.path)")
            }
            #expect(scene.origin.bytesSent("/\(shared.path)") < Scene.large + sent)
            #expect(scene.origin.requests(for: "/\(left.path)").count == requests)

            // The file that the second request didn't want is kept for the first one, with its bytes.
            let third = try await scene.start()
            #expect(try await third.waitForExit(limit: .seconds(120)) == .exited(0), "\(third.standardError)")
            try scene.check()
            #expect(scene.sent < 2 * Scene.large + sentOfAll)
            let fourth = try await scene.start()
            #expect(try await fourth.waitForExit() == .exited(0))
            #expect(fourth.standardOutput.contains("nothing to do"))
        }

        @Test func getWithANewTokenGoesOnWithWhatTheOldOneBrought() async throws {
            let scene = try await Scene()
            try await scene.knowOrigin()
            scene.hold()
            scene.demand(token: "old")
            let first = try await scene.start(token: "old")
            try await scene.waitUntilHalfWay()
            let sent = scene.sent
            try first.signal(SIGINT)
            #expect(try await first.waitForExit() == .exited(130))
            try await scene.origin.waitForOpenConnections(atMost: 0)
            scene.release()
            scene.demand(token: "new")
            let refused = try await scene.start(token: "old")
            #expect(try await refused.waitForExit(limit: .seconds(120)) == .exited(1), "\(refused.standardError)")
            #expect(refused.standardError.contains("401"), "\(refused.standardError)")

            let second = try await scene.start(token: "new")
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            try scene.check()
            #expect(scene.sent < 2 * Scene.large + sent)
            #expect(scene.origin.requests(for: "/small.bin").count == 1)

            // The same request again has nothing to do; with another token, the origin may have other contents.
            let third = try await scene.start(token: "new")
            #expect(try await third.waitForExit() == .exited(0))
            #expect(third.standardOutput.contains("nothing to do"))
            let fourth = try await scene.start([scene.files[0]], token: "newest")
            #expect(try await fourth.waitForExit(limit: .seconds(60)) == .exited(1), "\(fourth.standardError)")
            #expect(scene.origin.requests(for: "/small.bin").count > 1)
        }

        @Test func interruptedGetGoesOnWithAllThatHadCome() async throws {
            let scene = try await Scene()
            try await scene.knowOrigin()
            scene.hold()
            let first = try await scene.start()
            try await scene.waitUntilHalfWay()
            let sent = scene.sent
            try first.signal(SIGINT)
            #expect(try await first.waitForExit() == .exited(130))
            #expect(first.standardError.contains("run the same command again"))
            try await scene.origin.waitForOpenConnections(atMost: 0)
            scene.release()

            let second = try await scene.start()
            #expect(try await second.waitForExit(limit: .seconds(120)) == .exited(0), "\(second.standardError)")
            try scene.check()
            #expect(scene.origin.requests(for: "/small.bin").count == 1)
            // Bytes on their way at the end may come twice; after a graceful end there are next to none.
            #expect(scene.sent < 2 * Scene.large + sent)
        }
    }
}
