import Foundation
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `get` of URLs that suggest the same name, with different lists.
    @Suite struct GetNames {
        private struct Scene {
            let origin: ScriptedOrigin
            let directory: TemporaryDirectory

            init() async throws {
                origin = try await ScriptedOrigin.start()
                directory = try TemporaryDirectory()
            }

            func serve(_ number: Int, size: Int64 = .kibibytes(10)) -> WantedFile {
                origin.serveFile("\(number)/s.bin", size: size, seed: UInt64(number))
            }

            func start(_ files: [WantedFile], _ options: [String] = []) async throws -> TestProcess {
                try await TestProcess.muster(["get", "-d", directory.path.string] + options + files.map(\.url))
            }

            /// Runs `get`, which succeeds; returns its output.
            func get(_ files: [WantedFile], _ options: [String] = []) async throws -> String {
                let get = try await start(files, options)
                let said = { get.standardOutput + get.standardError }
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(said())")
                return said()
            }

            func check(_ files: [String: WantedFile]) throws {
                for (name, file) in files {
                    #expect(try FileDigest.sha256(directory.path.appending(name)) == file.sha256, "\(name)")
                }
                let names = try FileManager.default.contentsOfDirectory(atPath: directory.path.string)
                #expect(Set(names) == Set(files.keys).union([".muster"]))
            }
        }

        @Test func aURLKeepsItsNameWhereverItStandsInALaterList() async throws {
            let scene = try await Scene()
            let files = (1...3).map { scene.serve($0) }
            var stored = ["s.bin": files[0], "s (2).bin": files[1], "s (3).bin": files[2]]
            _ = try await scene.get(files)
            let asked = scene.origin.requests.count
            for order in [[2, 1, 0], [1, 2], [1], [0, 2], [2, 1, 0]] {
                let said = try await scene.get(order.map { files[$0] })
                #expect(said.contains("nothing to do"), "\(said)")
                for line in said.split(separator: "\n") where line.contains(" is stored as ") {
                    let isTrue = stored.contains { line.contains("\($0.value.url) is stored as \($0.key)") }
                    #expect(isTrue, "\(line)")
                }
                try scene.check(stored)
            }
            #expect(scene.origin.requests.count == asked)
            // A new URL at the top takes no other URL's name, and keeps its own in later lists.
            let new = scene.serve(9)
            stored["s (5).bin"] = new
            let grown = try await scene.get([new] + files)
            #expect(grown.contains("s.bin is the name of another one; \(new.url) is stored as s (5).bin"), "\(grown)")
            for list in [[new] + files, [new, files[1]], files] {
                #expect(try await scene.get(list).contains("nothing to do"))
                try scene.check(stored)
            }
            // A file that has changed is replaced in its place.
            let changed = scene.origin.serveFile("2/s.bin", size: .kibibytes(10), seed: 77)
            stored["s (2).bin"] = changed
            _ = try await scene.get([changed, files[2]], ["--if-exists", "replace"])
            try scene.check(stored)
        }

        @Test func anInterruptedListThatIsReorderedKeepsItsBytes() async throws {
            let scene = try await Scene()
            let size = Int64.mebibytes(3)
            let files = (1...2).map { scene.serve($0, size: size) }
            for file in files { scene.origin.hold("/\(file.path)", afterBytes: .kibibytes(512)) }
            let first = try await scene.start(files)
            for file in files { try await scene.origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(512)) }
            try first.signal(SIGINT)
            #expect(try await first.waitForExit() == .exited(130))
            try await scene.origin.waitForOpenConnections(atMost: 0)
            let sent = files.map { scene.origin.bytesSent("/\($0.path)") }
            for file in files { scene.origin.release("/\(file.path)") }
            let said = try await scene.get([files[1], files[0]])
            #expect(said.contains("going on with 2 files of an unfinished request"), "\(said)")
            #expect(!said.contains("dropped"), "\(said)")
            for (file, sent) in zip(files, sent) {
                #expect(scene.origin.bytesSent("/\(file.path)") < size + sent, "\(file.path)")
            }
            try scene.check(["s.bin": files[0], "s (2).bin": files[1]])
            #expect(try await scene.get(files).contains("nothing to do"))
        }
    }
}
