import Foundation
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `get` of a file that an earlier run has stored beside the user's own file of the same name (`--if-exists rename`).
    @Suite struct GetBeside {
        /// A directory with the user's own file, and a URL that ends in its name.
        private struct Scene {
            let origin: ScriptedOrigin
            let directory: TemporaryDirectory
            let own = Data("somebody's own".utf8)

            init() async throws {
                origin = try await ScriptedOrigin.start()
                directory = try TemporaryDirectory()
                try own.write(to: URL(filePath: path("report.bin").string))
            }

            func path(_ name: String) -> FilePath { directory.path.appending(name) }

            func serve(seed: UInt64) -> WantedFile {
                origin.serveFile("report.bin", size: .kibibytes(10), seed: seed)
            }

            /// Runs `get` in the directory; returns its output.
            func get(_ options: [String], _ file: WantedFile, code: Int32 = 0) async throws -> String {
                let get = try await TestProcess.muster(["get", "-d", directory.path.string] + options + [file.url])
                let said = { get.standardOutput + get.standardError }
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(code), "\(said())")
                // With any options, the user's own file stays untouched.
                #expect(try Data(contentsOf: URL(filePath: path("report.bin").string)) == own, "\(said())")
                return said()
            }
        }

        @Test func storedFileIsRenewedInItsPlaceAndTheUsersFileStays() async throws {
            let scene = try await Scene()
            var file = scene.serve(seed: 1)
            _ = try await scene.get(["--if-exists", "rename"], file)
            let again = try await scene.get(["--if-exists", "rename"], file)
            #expect(again.contains("nothing to do") && again.contains("--if-exists replace"), "\(again)")
            #expect(again.contains("report (2).bin has what belongs to report.bin"), "\(again)")
            for seed in UInt64(2)...3 {
                file = scene.serve(seed: seed)
                let replacing = try await scene.get(["--if-exists", "replace"], file)
                #expect(replacing.contains("1 succeeded"), "\(replacing)")
                #expect(try FileDigest.sha256(scene.path("report (2).bin")) == file.sha256)
            }
            #expect(try await scene.get(["--if-exists", "replace"], file).contains("1 unchanged"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: scene.directory.path.string).count == 3)
        }

        /// Without an earlier try, and after a try in which the same command failed.
        @Test(arguments: [false, true])
        func commandWithoutTheOptionFindsTheStoredFile(failedBefore: Bool) async throws {
            let scene = try await Scene()
            let file = scene.serve(seed: 1)
            if failedBefore { #expect(try await scene.get([], file, code: 1).contains("is at that path")) }
            _ = try await scene.get(["--if-exists", "rename"], file)
            for _ in 1...2 {
                let plain = try await scene.get([], file)
                #expect(plain.contains("there already") && !plain.contains("is at that path"), "\(plain)")
                #expect(plain.contains("report (2).bin has what belongs to report.bin"), "\(plain)")
            }
            // When the stored file is gone, it is fetched again, and not over the user's own one.
            try FileManager.default.removeItem(atPath: scene.path("report (2).bin").string)
            #expect(try await scene.get([], file, code: 1).contains("is at that path"))
        }
    }
}
