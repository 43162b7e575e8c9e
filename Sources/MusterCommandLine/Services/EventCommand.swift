import FoundationEssentials
import MusterAPI
import Subprocess
import SystemPackage

/// A command that is run for an event: the event as JSON is its standard input, and its output goes where that of this process
/// goes.
struct EventCommand: Sendable {
    /// The program and its arguments; at least the program.
    let words: [String]
    /// Where the event lies while the command reads it.
    let temporaryDirectory: String

    /// How long the command has to end after SIGTERM, before it is killed.
    private static let killDelay: Duration = .seconds(1)

    /// Throws when there is no such program, so that a mistyped name is not found out by the first event.
    func check() async throws(CommandFailure) {
        guard !words[0].contains("/") else {
            guard FileManager.default.isExecutableFile(atPath: words[0]) else {
                throw .usage("the command \(words[0]) is no program that can be run")
            }
            return
        }
        do {
            _ = try await executable.resolveExecutablePath(in: .inherit)
        } catch {
            throw .usage("the command \(words[0]) is not in the search path")
        }
    }

    /// Runs the command to its end.
    ///
    /// It is the first of a process group of its own: Ctrl-C is for this process, which lets it finish. When the task is cancelled
    /// the whole group gets SIGTERM, and a second later SIGKILL.
    ///
    /// - Returns: how it ended; `nil` when it succeeded.
    func run(for event: EventDocument) async -> String? {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [
            .send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: Self.killDelay)
        ]
        do {
            // A file and not a pipe: a command that doesn't read its input is as good as one that does.
            let input = try NamelessFile.make(in: temporaryDirectory)
            return try await input.closeAfterwards {
                try input.writeAll(try Console.encoded(event).utf8)
                try input.writeAll("\n".utf8)
                try input.seek(offset: 0, from: .start)
                let result = try await Subprocess.run(
                    executable,
                    arguments: Arguments(Array(words.dropFirst())),
                    environment: .inherit.updating(Self.variables(of: event)),
                    platformOptions: options,
                    input: .fileDescriptor(input, closeAfterSpawningProcess: false),
                    output: .currentStandardOutput,
                    error: .currentStandardError
                )
                return Self.failure(result.terminationStatus)
            }
        } catch {
            return "can't be run: \(error)"
        }
    }

    private var executable: Executable {
        words[0].contains("/") ? .path(FilePath(words[0])) : .name(words[0])
    }

    /// What the command finds in its environment besides what this process has.
    static func variables(of event: EventDocument) -> [Environment.Key: String?] {
        [
            "MUSTER_EVENT_TYPE": event.type, "MUSTER_EVENT_ID": event.id,
            "MUSTER_GROUP": event.subject.hasPrefix("groups/") ? String(event.subject.dropFirst(7)) : event.subject,
        ]
    }

    private static func failure(_ status: TerminationStatus) -> String? {
        switch status {
        case .exited(0): nil
        case .exited(let code): "exited with \(code)"
        case .signaled(let signal): "was ended by signal \(signal)"
        }
    }
}

extension FileDescriptor {
    /// Closes the descriptor after `body`, which may wait.
    fileprivate func closeAfterwards<Result>(_ body: () async throws -> Result) async throws -> Result {
        // A failing close releases the descriptor all the same.
        defer { try? close() }
        return try await body()
    }
}
