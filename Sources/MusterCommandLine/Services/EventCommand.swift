import FoundationEssentials
import Glibc
import MusterAPI
import Subprocess
import SystemPackage

/// A command that is run for an event. Its standard input is the event as JSON; its output goes where the output of this process goes. It
/// never outlives this process, whose successor runs the same event again.
struct EventCommand: Sendable {
    /// The program and its arguments; at least the program.
    let words: [String]
    /// The directory of the event's file until the command has opened it.
    let temporaryDirectory: String

    /// How long the command has to end after SIGTERM, before it is killed.
    private static let killDelay: Duration = .seconds(1)

    /// The script that runs the command, as the leader of its own process group. A watcher beside the command kills the whole group when
    /// the pipe from this process ends without a line, however this process ended. SIGTERM is for the command, and the script waits for it.
    private static let guardian = """
        exec 3<&0 4<"$1" || exit 126
        rm -f -- "$1"
        shift
        trap : TERM
        ( trap '' TERM; read -r line <&3 || kill -KILL 0 ) 4<&- >/dev/null 2>&1 &
        ( exec 3<&-; exec "$@" <&4 4<&- )
        exit $?
        """

    /// Throws when there is no such program, so that a mistyped name is found before the first event.
    func check() async throws(CommandFailure) {
        guard !words[0].contains("/") else {
            guard FileManager.default.isExecutableFile(atPath: words[0]) else {
                throw .usage("the command \(words[0]) is no program that can be run")
            }
            return
        }
        do {
            _ = try await Executable.name(words[0]).resolveExecutablePath(in: .inherit)
        } catch {
            throw .usage("the command \(words[0]) is not in the search path")
        }
    }

    /// Runs the command to its end.
    ///
    /// Ctrl-C stops this process, which lets the command finish. When the task is cancelled, the command's whole process group gets
    /// SIGTERM, and a second later SIGKILL.
    ///
    /// - Returns: how it ended; `nil` when it succeeded.
    func run(for event: EventDocument) async -> String? {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [
            .send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: Self.killDelay)
        ]
        do {
            try await check()
            // A file, not a pipe: so a command that doesn't read its input does not fail.
            let input = try EventFile(event, in: temporaryDirectory)
            let life = try FileDescriptor.pipe()
            defer {
                // The line makes the watcher end; the other processes have closed their end already.
                _ = try? life.writeEnd.writeAll("\n".utf8)
                try? life.writeEnd.close()
                try? life.readEnd.close()
            }
            for end in [life.readEnd, life.writeEnd] {
                guard fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0 else { throw Errno(rawValue: errno) }
            }
            let result = try await Subprocess.run(
                .path("/bin/sh"),
                arguments: Arguments(["-c", Self.guardian, "muster-on", input.path.string] + words),
                environment: .inherit.updating(Self.variables(of: event)),
                platformOptions: options,
                input: .fileDescriptor(life.readEnd, closeAfterSpawningProcess: false),
                output: .currentStandardOutput,
                error: .currentStandardError
            )
            return Self.failure(result.terminationStatus)
        } catch let failure as CommandFailure {
            return "can't be run: \(failure.message ?? "")"
        } catch {
            return "can't be run: \(error)"
        }
    }

    /// The variables that the command gets in addition to the environment of this process.
    static func variables(of event: EventDocument) -> [Environment.Key: String?] {
        [
            "MUSTER_EVENT_TYPE": event.type, "MUSTER_EVENT_ID": event.id,
            "MUSTER_GROUP": event.subject.hasPrefix("groups/") ? String(event.subject.dropFirst(7)) : event.subject,
        ]
    }

    private static func failure(_ status: TerminationStatus) -> String? {
        switch status {
        case .exited(0): nil
        // A shell reports the end of a command by a signal as 128 + its number.
        case .exited(let code) where code > 128: "was ended by signal \(code - 128)"
        case .exited(let code): "exited with \(code)"
        case .signaled(let signal): "was ended by signal \(signal)"
        }
    }
}

/// An event in a file that only this user can read. The file lasts until it is opened or this value is gone.
private final class EventFile: Sendable {
    /// Where it is.
    let path: FilePath

    init(_ event: EventDocument, in directory: String) throws {
        // An unpredictable name, created exclusively.
        path = FilePath(directory).appending(".muster-event-\(RandomToken.make())")
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
            permissions: .ownerReadWrite)
        try file.closeAfter {
            try file.writeAll(try Console.encoded(event).utf8)
            try file.writeAll("\n".utf8)
        }
    }

    deinit {
        // Usually its reader has removed it.
        _ = unlink(path.string)
    }
}
