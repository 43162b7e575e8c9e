import ArgumentParser
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Exit codes")
struct ExitStatusTests {
    @Test func theCodesAreThoseOfTheContract() {
        #expect(ExitStatus.success.rawValue == 0)
        #expect(ExitStatus.failure.rawValue == 1)
        #expect(ExitStatus.usage.rawValue == 2)
        #expect(ExitStatus.unreachable.rawValue == 3)
        #expect(ExitStatus.timedOut.rawValue == 4)
        #expect(ExitStatus.cancelled.rawValue == 5)
        #expect(ExitStatus.refused.rawValue == 6)
        #expect(ExitStatus.interrupted.rawValue == 130)
    }

    @Test func eachCommandChecksTheLevelOfTheLog() async throws {
        var command = try StatusCommand.parse(["--log-level", "loud", "--server", "http://127.0.0.1:1"])
        await #expect(throws: ExitCode(ExitStatus.usage.rawValue)) { try await command.run() }
    }

    @Test func aGroupsEndHasACode() {
        #expect(ExitStatus.result(of: .succeeded) == .success)
        #expect(ExitStatus.result(of: .failed) == .failure)
        #expect(ExitStatus.result(of: .cancelled) == .cancelled)
        #expect(ExitStatus.result(of: .open) == nil)
        #expect(ExitStatus.result(of: .sealed) == nil)
    }

    @Test func errorsHaveACode() {
        #expect(CommandFailure(Unreachable("refused")).status == .unreachable)
        #expect(CommandFailure(Problem(.groupNotFound, "no")).status == .refused)
        #expect(CommandFailure(Problem(.stopping, "later")).status == .unreachable)
        #expect(CommandFailure(UnexpectedAnswer("odd")).status == .failure)
        #expect(CommandFailure(OutputClosed()).status == .outputClosed)
        #expect(CommandFailure(CommandFailure.timedOut("late")).status == .timedOut)
    }

    @Test func aProblemIsPrintedWithEverythingThatItSays() {
        let problem = Problem(.invalidRequest, "not a URL with a host", pointer: "/urls/0", line: 7)
        #expect(
            CommandFailure.refused(problem).message == """
                Refused: The request is not valid
                  not a URL with a host
                  line: 7
                  field: "urls", entry 1
                  code: invalidRequest (status 400)
                """
        )
    }

    @Test func aMissingGroupIsReportedOnce() {
        #expect(
            CommandFailure.refused(Problem(.groupNotFound, "there is no group \"x\"")).message == """
                Refused: there is no group "x"
                  code: groupNotFound (status 404)
                """)
    }

    private func failure(_ refused: [InputRefusal]) -> CommandFailure {
        var refusals = ManifestRefusals()
        for refusal in refused { refusals.add(refusal) }
        return .manifest(refusals, manifest: "urls.txt")
    }

    @Test func aRefusedManifestIsNamedWithTheLine() {
        let failure = failure([InputRefusal(pointer: "/url", line: 3, reason: "unknown field")])
        #expect(failure.message == "Refused: urls.txt, line 3, field \"url\": unknown field")
        #expect(failure.status == .refused && failure.problem?.line == 3)
        #expect(
            self.failure([InputRefusal(pointer: "", line: 3, reason: "can't be read")]).message
                == "Refused: urls.txt, line 3: can't be read")
    }

    /// So the user can mend all of them at once.
    @Test func tenLinesOfARefusedManifestAreNamedAndTheOthersCounted() {
        let bad = InputRefusal(pointer: "", line: 2, reason: "can't be read")
        let failure = failure([bad, InputRefusal(pointer: "/url", line: 3, reason: "unknown field"), bad.onLine(7)])
        #expect(
            failure.message == """
                Refused: urls.txt, 3 lines:
                  lines 2, 7: can't be read
                  line 3, field "url": unknown field
                """)
        #expect(failure.problem?.line == 2)
        #expect(
            self.failure((1...12).map(bad.onLine)).message == """
                Refused: urls.txt, 12 lines:
                  lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10: can't be read
                  and 2 more lines
                """)
    }

    @Test func aProblemOfTheProtocolNamesTheCommandThatHelps() {
        #expect(CommandFailure.refused(Problem(.unauthorized, "no")).message?.contains("--token") == true)
        let taken = CommandFailure.refused(Problem(.subscriptionExists, "no")).message
        #expect(taken?.contains("muster subscriptions rotate") == true)
    }

    @Test(arguments: [
        ["bogus"], ["status", "--bogus"], ["add"], ["get"], ["work"], ["wait", "a b"],
        ["wait", "g", "--timeout", "5x"],
        ["add", "g", "nonsense"], ["get", "-i", "/nonexistent"], ["tasks", "g", "--state", "odd"],
        ["events", "--after", "-1"], ["work", "--sink", "default"], ["add", "g", "--open", "--wait"],
        ["status", "--server", "gopher://x"], ["serve", "--listen", "7300", "--database", "x"],
        ["status", "--config", "/nonexistent"], ["up", "--workers", "1000"], ["remove", "g", "--files", "burn"],
        ["limit", "g"], ["status", "--server", "http://h/?a=1"], ["limit", "g", "--rate", "fast"],
        ["limit", "g", "--tz", "UTC"],
        ["limit", "a b", "--rate", "1"],
        ["limit", "g", "--between", "22-6"], ["limit", "g", "--deadline", "soon"], ["limit", "g", "--after", "g:odd"],
        ["on", "g"], ["on", "a b", "--", "true"], ["on", "g", "--", "no-such-program-anywhere"],
        ["on", "g", "--consumer", "a b", "--", "true"], ["subscriptions", "add", "n"], ["deliveries", "replay", "x"],
        ["subscriptions", "add", "n", "http://h/", "--secret-file", "/nonexistent"], ["deliveries", "replay"],
        ["deliveries", "--state", "odd"], ["serve", "--database", "x", "--max-rate", "0"], ["work", "--rate", "x"],
        ["serve", "--database", "foo"], ["migrate", "--database", "foo"],
        ["serve", "--database", "x", "--event-retention", "1s"], ["limit", "g", "--between", "10:00-10:00"],
        ["limit", "g", "--rate-between", "10:00-10:00=1MiB/s"], ["add", "g", "--between", "0:00-24:00", "http://h/a"],
    ])
    func usageErrorsAreTwo(arguments: [String]) async {
        #expect(await MusterProgram.main(arguments) == 2)
    }

    @Test func commandWithoutACoordinatorSaysHowToStartOne() {
        let refused = Unreachable("connection refused", isRefused: true)
        let usual = ServerHint.text(refused, servers: [ClientOptions.defaultServer], .init(hasData: true))
        #expect(usual.hasPrefix("start the one whose data is on this machine with: muster up\n"))
        #expect(usual.hasSuffix("muster serve --database URL --listen 127.0.0.1:7300"))
        let other = ServerHint.text(refused, servers: ["http://localhost:7301"], .init(hasData: true))
        #expect(other.contains("on this machine with: muster up --listen localhost:7301\n"))
        #expect(other.hasSuffix("muster serve --database URL --listen localhost:7301"))
    }

    @Test func aCoordinatorOfADatabaseIsStartedAgainWithIt() {
        let refused = Unreachable("Failed to connect to 127.0.0.1 port 7302 after 0 ms: no", isRefused: true)
        let servers = ["http://127.0.0.1:7301", "http://127.0.0.1:7302"]
        let known = ServerHint.Installation(namesDatabase: true, hasData: true)
        #expect(
            ServerHint.text(refused, servers: servers, known)
                == "start one on this machine with: muster serve --listen 127.0.0.1:7302")
        #expect(
            ServerHint.text(refused, servers: [ClientOptions.defaultServer], known)
                == "start one on this machine with: muster serve --listen 127.0.0.1:7300")
        let several = ServerHint.text(refused, servers: servers, .init(hasData: true))
        #expect(several.hasSuffix("muster serve --database URL --listen 127.0.0.1:7302"))
        #expect(!several.contains("muster up"))
    }

    @Test func aNewInstallationIsCalledNewWhereUpHasNeverRun() {
        let refused = Unreachable("connection refused", isRefused: true)
        let serve = "muster serve --database URL --listen 127.0.0.1"
        let again = "  or one that has a database of its own: \(serve)"
        let elsewhere = "  or start one again whose data is elsewhere: muster up"
        let message = ServerHint.text(refused, servers: ["http://127.0.0.1:7301"], .init())
        let new = "start a new and empty one on this machine with: muster up"
        #expect(
            message == "\(new) --listen 127.0.0.1:7301\n\(elsewhere) --listen 127.0.0.1:7301 --data DIR\n\(again):7301")
        // A coordinator of a database may have stopped at the default address, too.
        let usual = ServerHint.text(refused, servers: [ClientOptions.defaultServer], .init())
        #expect(usual == "\(new)\n\(elsewhere) --data DIR\n\(again):7300")
    }

    @Test func noStartIsAdvisedForARemoteServerOrATakenAddress() {
        let refused = Unreachable("connection refused", isRefused: true)
        let silent = Unreachable("no answer", isTimeout: true)
        let remote = ServerHint.text(refused, servers: ["http://muster.example:7300"], .init())
        #expect(remote == "check whether it runs there; --server URL (MUSTER_SERVER) names another one")
        let occupied = ServerHint.text(silent, servers: [ClientOptions.defaultServer], .init())
        #expect(occupied.hasPrefix("something listens there that does not answer") && !occupied.contains("muster up"))
    }

    @Test func aPathInTheAddressOfACoordinatorIsNamedAsTheMistake() {
        let astray = ServerHint.strayed(Problem(.notFound, "no such path"), servers: ["http://127.0.0.1:7300/foo"])
        #expect(astray?.status == .unreachable)
        let message = astray?.message ?? ""
        #expect(message.contains("http://127.0.0.1:7300/foo leads to no Muster coordinator"), "\(message)")
        #expect(message.contains("--server http://127.0.0.1:7300"), "\(message)")
        #expect(ServerHint.strayed(Problem(.notFound, "no such path"), servers: ["http://127.0.0.1:7300/"]) == nil)
        #expect(ServerHint.strayed(Problem(.groupNotFound, "none"), servers: ["http://127.0.0.1:7300/foo"]) == nil)
    }

    @Test(arguments: [["--help"], ["--version"], ["get", "--help"], ["help", "add"]])
    func helpIsASuccess(arguments: [String]) async {
        #expect(await MusterProgram.main(arguments) == 0)
    }

    @Test func unreachableCoordinatorIsThree() async {
        // Port 1 is reserved, and nothing listens there.
        #expect(await MusterProgram.main(["status", "--server", "http://127.0.0.1:1"]) == 3)
        // Tasks that were not even added are nothing to wait for.
        #expect(await MusterProgram.main(["add", "g", "http://x/y", "--wait", "--server", "http://127.0.0.1:1"]) == 3)
        // A command that waits also waits for a coordinator.
        #expect(await MusterProgram.main(["wait", "g", "--server", "http://127.0.0.1:1", "--timeout", "1ms"]) == 4)
    }
}
