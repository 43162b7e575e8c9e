import FoundationEssentials
import MusterAPI
import MusterTestSupport
import MusterWorker
import SystemPackage
import Testing

extension EndToEnd {
    /// The tokens that `up` and `get` make for themselves.
    @Suite struct OwnTokens {
        /// `muster up` with a runtime directory of its own.
        private struct Installation {
            let directory: TemporaryDirectory
            var runtime: FilePath { directory.path.appending("run") }
            var data: FilePath { directory.path.appending("data") }
            var environment: [String: String?] {
                ["XDG_RUNTIME_DIR": runtime.string, "MUSTER_TOKEN": nil, "MUSTER_WORKER_TOKEN": nil]
            }

            init() throws {
                directory = try TemporaryDirectory()
                try FileManager.default.createDirectory(atPath: runtime.string, withIntermediateDirectories: true)
            }

            /// Starts it; returns it and its URL.
            func start() async throws -> (process: TestProcess, url: String) {
                let process = try await TestProcess.muster(
                    ["up", "--data", data.string, "--listen", "127.0.0.1:0"], environment: environment)
                let line = try await process.waitForLine(
                    containing: "listening on", in: .standardOutput, limit: .seconds(60))
                _ = try await process.waitForLine(containing: "has pid", in: .standardOutput)
                return (process, String(line.split(separator: " ").last ?? ""))
            }

            /// Runs a command of the same user.
            func muster(_ arguments: [String], server: String) async throws -> TestProcess {
                var environment = environment
                environment["MUSTER_SERVER"] = .some(server)
                let process = try await TestProcess.muster(arguments, environment: environment)
                try await process.waitForExit(limit: .seconds(60))
                return process
            }

            func token() throws -> String {
                let bytes = try Data(contentsOf: URL(filePath: data.appending("token").string))
                return String(decoding: bytes, as: UTF8.self).split(separator: "\n").first.map(String.init) ?? ""
            }
        }

        private static func status(_ url: String, token: String?) async throws -> Int {
            let transport = try CurlTransport()
            let headers = token.map { [(name: "Authorization", value: "Bearer \($0)")] } ?? []
            let answer = try await transport.send(
                APIRequest(method: "GET", url: url + "/v1/groups", headers: headers, body: .none, timeout: .seconds(20))
            )
            await transport.shutdown()
            return answer.status
        }

        @Test func commandsOfTheSameUserFindTheTokenAndOthersAreRefused() async throws {
            let installation = try Installation()
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("f", size: 1_000)
            let (up, url) = try await installation.start()
            #expect(try await Self.status(url, token: nil) == 401)
            let add = try await installation.muster(["add", "g", file.url, "--wait"], server: url)
            #expect(add.exit == .exited(0))

            // The token is also found with several servers, whichever of them answers.
            let port = try #require(url.split(separator: ":").last)
            for servers in [
                "\(url),http://localhost:\(port)", "http://127.0.0.1:1,\(url)", "\(url),http://127.0.0.1:1",
            ] {
                let status = try await installation.muster(["status", "g"], server: servers)
                #expect(status.exit == .exited(0), "\(servers): \(status.standardError)")
            }

            // A command that can't read the file is refused, and told to name a token.
            let stranger = try await TestProcess.muster(
                ["status"], environment: ["MUSTER_SERVER": url, "XDG_RUNTIME_DIR": "/nonexistent", "MUSTER_TOKEN": nil])
            #expect(try await stranger.waitForExit() == .exited(6))
            #expect(stranger.standardError.contains("unauthorized"))

            // No argument of any process shows a token; neither does what was printed.
            let token = try installation.token()
            #expect(try await Self.status(url, token: token) == 200)
            for entry in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int32(entry) != nil {
                guard let bytes = try? Data(contentsOf: URL(filePath: "/proc/\(entry)/cmdline")) else { continue }
                #expect(!String(decoding: bytes, as: UTF8.self).contains(token))
            }
            #expect(!(up.standardOutput + up.standardError).contains(token))

            // The token is the same after a restart, so that workers go on; in between no token file is left.
            try up.signal(15)
            try await up.waitForExit()
            let names = try FileManager.default.contentsOfDirectory(
                atPath: installation.runtime.appending("muster").string)
            #expect(names.isEmpty)
            let (again, nextURL) = try await installation.start()
            #expect(try installation.token() == token)
            #expect(try await installation.muster(["status", "g"], server: nextURL).exit == .exited(0))
            try again.signal(15)
            try await again.waitForExit()
        }

        @Test func openServeWarnsThatEveryUserControlsIt() async throws {
            try await Fleet.run { fleet in
                let coordinator = await fleet.coordinators[0]
                #expect(coordinator.process.standardError.contains("every user of this machine can control"))
            }
            let tokens = ["--token", "an-administrator-s-token", "--worker-token", "a-worker-s-own-token"]
            try await Fleet.run(options: tokens) { fleet in
                let coordinator = await fleet.coordinators[0]
                #expect(!coordinator.process.standardError.contains("every user"))
            }
        }
    }
}
