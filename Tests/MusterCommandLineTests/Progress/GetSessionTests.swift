import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("What get asks of its coordinator")
struct GetSessionTests {
    /// The worker is done before `get` has the answer to its submission.
    @Test func aFileThatIsThereAtOnceHasItsLineAndGetDoesNotWaitForItsEnd() async throws {
        let directory = try TemporaryDirectory()
        let file = try FileDescriptor.open(
            directory.path.appending("a.bin"), .writeOnly, options: .create, permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll([1, 2, 3]) }
        let tasks = try TaskList(manifest: nil, urls: ["https://example.org/a.bin"], digest: nil)
        let survey = tasks.survey
        let name = "get-\(survey.identity.text)"
        let log = ScriptedLog(
            .init(
                end: 7, looks: [Samples.group(name), Samples.group(name, state: .succeeded)],
                tasks: [Samples.finished("a.bin", size: 3)],
                submission: [
                    Samples.event("task.succeeded", Samples.success("a.bin", size: 3), group: name, position: 8),
                    Samples.event("group.succeeded", Samples.end(.succeeded), group: name, position: 9),
                ]))
        let settings = try Settings(command: "get", arguments: [:], configuration: nil, environment: [:])
        let pipe = try FileDescriptor.pipe()
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let own = OwnWorkers()
        let console = Console(json: false, output: pipe.writeEnd, errorOutput: null)
        let session = GetSession(
            client: log.client(), patience: Patience(console: console, asked: .ownDatabase), tasks: tasks,
            survey: survey, transfers: try settings.transfers(base: "/"),
            directory: directory.path, room: DatabaseRoom(tellsOfRunning: false, onFull: .fail, remark: { _ in }),
            onFull: .fail,
            context: CommandContext(settings: settings, console: console), own: own, beginWork: {})
        #expect(own.arePassing)
        #expect(try await session.run().group.state == .succeeded)
        #expect(!own.arePassing, "from then on a missing worker is reported")
        try pipe.writeEnd.close()
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = try buffer.withUnsafeMutableBytes { try pipe.readEnd.read(into: $0) }
        try pipe.readEnd.close()
        #expect(String(decoding: buffer[..<count], as: UTF8.self) == "finished: a.bin (3 B)\n")
        // The log's first answer has the end; a second request would wait for an event that never comes.
        #expect(log.requests.count { $0.contains("wait=") } == 1)
    }

    /// A stale token, where the file was fetched with a good one before.
    @Test func aFileThatCantBeCheckedAgainIsSaidToBeThere() {
        var result = GetSession.Result(
            group: Samples.group("get-1-2", state: .failed, total: 3, succeeded: 1, failed: 2), namedFailures: 2,
            failures: [], explanations: [], wasComplete: false, changed: [], directory: "/d")
        result.unchecked = ["a.bin"]
        #expect(result.troubles == ["kept: a.bin is there as it was fetched before; it could not be checked again"])
        #expect(
            result.summary
                == "get-1-2: failed: 1 file is there as fetched before, but could not be checked again, 1 failed, 1 succeeded"
        )
        #expect(result.status == .failure)
    }
}
