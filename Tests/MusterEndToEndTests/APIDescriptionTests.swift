import FoundationEssentials
import MusterAPI
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// The API beside its description, `openapi.yaml`, as another program reads it: PyPI's `schemathesis`.
    @Suite struct APIDescription {
        /// By all checks of that program: requests that the description allows are accepted, others are refused, and answers match the description.
        @Test(.enabled(if: PythonPackages.interpreter() != nil, "deploy/test.sh installs the packages"))
        func everyOperationKeepsToItsDescription() async throws {
            let python = try #require(PythonPackages.interpreter())
            let directory = try TemporaryDirectory()
            try Data(Self.hooks.utf8).write(to: URL(filePath: directory.path.appending("description_hooks.py").string))
            var random = SeededGenerator.forTest()
            let seed = UInt32.random(in: 0...UInt32.max, using: &random)
            let tokens = ["--token", "admin-of-the-test", "--worker-token", "worker-of-the-test"]
            try await Fleet.run(options: tokens) { fleet in
                let url = await fleet.coordinators[0].url
                let process = try await TestProcess.start(
                    python,
                    arguments: [
                        "-m", "schemathesis.cli", "run", "\(url)/openapi.yaml", "--checks", "all", "--phases",
                        "examples,coverage", "--max-examples", "10", "--seed", "\(seed)", "--no-color",
                        "--header", "Authorization: Bearer \(tokens[1])", "--request-timeout", "60",
                    ],
                    environment: [
                        "SCHEMATHESIS_HOOKS": "description_hooks", "PYTHONPATH": directory.path.string,
                    ],
                    workingDirectory: directory.path)
                let end = try await process.waitForExit(limit: .seconds(300))
                #expect(end == .exited(0), "\(process.standardOutput)\n\(process.standardError)")
                print("schemathesis: \(process.standardOutput.split(separator: "\n").last ?? "")")
            }
        }

        /// `promtool`, of Debian's package `prometheus`, knows the format and its conventions.
        @Test(
            .enabled(
                if: isStrict || FileManager.default.fileExists(atPath: promtool.string), "deploy/test.sh installs it"))
        func metricsArePrometheusText() async throws {
            try await Fleet.run { fleet in
                let client = await fleet.client()
                _ = try await client.createGroup(GroupRequest(name: "g"))
                let text = try PlainHTTP.get(port: await fleet.coordinators[0].port, path: "/metrics").body
                let process = try await TestProcess.start(
                    Self.promtool, arguments: ["check", "metrics"], input: .text(text))
                let end = try await process.waitForExit()
                #expect(end == .exited(0), "\(process.standardOutput)\n\(process.standardError)")
                #expect(text.contains("muster_http_request_seconds_count"))
            }
        }

        private static let promtool: FilePath = "/usr/bin/promtool"
        /// In `deploy/test.sh` a missing program fails its test.
        private static let isStrict = ProcessInfo.processInfo.environment["MUSTER_STRICT"] != nil

        /// NDJSON bodies are left out: the description says only in words which of their lines are tasks. The same tasks are tested as JSON.
        /// So are the `marks` and `replaced` of other sinks than those of the request, which are refused: only words say that too.
        private static let hooks = """
            import schemathesis

            @schemathesis.serializer("application/x-ndjson")
            def lines(context, value):
                return value.encode() if isinstance(value, str) else value

            def names(value):
                return set(map(str, value)) if isinstance(value, (dict, list)) else set()

            @schemathesis.hook
            def filter_case(context, case):
                body = case.body if isinstance(case.body, dict) else {}
                is_of_sinks = names(body.get("marks")) | names(body.get("replaced")) <= names(body.get("sinks"))
                return case.media_type != "application/x-ndjson" and is_of_sinks
            """
    }
}
