import MusterSystem
import Subprocess
import SystemPackage

/// A short-lived program: one of PostgreSQL's, or a check by the shell.
struct PostgresTool: Sendable {
    /// The program.
    let path: FilePath
    /// Its arguments, without its own name.
    let arguments: [String]
    /// The account that it runs as; nil runs it as the current user.
    var account: ServerAccount?
    /// What it reads from its standard input.
    var input = ""

    /// How much output of a program is kept for an error message.
    static let outputLimitBytes = 256 * 1024

    /// How it ended, and what it printed on both outputs.
    struct Outcome: Sendable {
        let succeeded: Bool
        let status: String
        let output: String
    }

    /// Runs it to its end, whatever its status is.
    func run() async throws -> Outcome {
        let command = try await AccountSwitch.command([path.string] + arguments, as: account)
        try Self.checkRoom(for: path)
        do {
            let result = try await Subprocess.run(
                Self.configuration(command),
                input: .string(input),
                output: .string(limit: Self.outputLimitBytes),
                error: .combinedWithOutput
            )
            let status = result.terminationStatus
            return Outcome(succeeded: status.isSuccess, status: "\(status)", output: result.standardOutput)
        } catch let error as SubprocessError {
            throw EmbeddedPostgresError.launchFailed(program: path.string, reason: "\(error)")
        }
    }

    /// Throws if there are too few descriptors to start a program.
    static func checkRoom(for program: FilePath) throws(EmbeddedPostgresError) {
        do {
            try OpenDescriptors.checkRoomForProgram()
        } catch {
            throw .launchFailed(program: program.string, reason: "\(error)")
        }
    }

    /// Runs it, and takes any status but 0 for an error.
    @discardableResult
    func runSuccessfully() async throws -> String {
        let outcome = try await run()
        guard outcome.succeeded else {
            throw EmbeddedPostgresError.toolFailed(
                tool: path.lastComponent?.string ?? path.string,
                status: outcome.status,
                output: String(outcome.output.suffix(8 * 1024))
            )
        }
        return outcome.output
    }

    /// A fixed environment, so that no `PG…` variable or locale of the caller's reaches the server.
    static let environment: [Environment.Key: String] = [
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C",
        "TZ": "UTC",
    ]

    /// A program in a session of its own, so that no signal of a terminal reaches it.
    static func configuration(_ command: AccountSwitch.Command) -> Subprocess.Configuration {
        var options = PlatformOptions()
        options.createSession = true
        return Subprocess.Configuration(
            executable: .path(command.program),
            arguments: Arguments(command.arguments),
            environment: .custom(environment),
            // The current directory may be one that the other account must not enter.
            workingDirectory: "/",
            platformOptions: options
        )
    }
}
