import ArgumentParser
import FoundationEssentials
import Glibc
import MusterWorker

/// The command line of Muster.
struct MusterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "muster",
        abstract: "Downloads a heap of files concurrently, and tells when all of them are really there.",
        discussion: """
            One person on one machine needs one command:
              muster get -i urls.txt -d downloads

            A service that outlives every process that works on it:
              muster up
              muster add nightly -i manifest.ndjson
              muster wait nightly --timeout 2h

            Every option has a key in a JSON configuration file (--config FILE, the key of --server is "server") and, unless it \
            chooses or changes a thing, an environment variable (MUSTER_SERVER). The command line wins, then the environment, \
            then the file.

            Exit codes: 0 success; 1 the group failed; 2 usage; 3 coordinator unreachable; 4 timed out; 5 cancelled; \
            6 refused by the coordinator; 130 stopped by Ctrl-C, 143 by SIGTERM or Ctrl-\\ (services end with 0 then); 141 the \
            reader of its output is gone (get fetches its files all the same, and ends so with --json alone).

            Commands that wait for something (wait, on, --wait, --watch, --follow) also wait for a coordinator that is away, and say so; others \
            end with 3.
            """,
        version: MusterVersion.current,
        groupedSubcommands: [
            CommandGroup(name: "On one machine", subcommands: [GetCommand.self, UpCommand.self]),
            CommandGroup(name: "A fleet", subcommands: [ServeCommand.self, WorkCommand.self, MigrateCommand.self]),
            CommandGroup(
                name: "Groups",
                subcommands: [
                    AddCommand.self, SealCommand.self, StatusCommand.self, TasksCommand.self, ExplainCommand.self,
                    WaitCommand.self, LimitCommand.self, SetCommand.self, PauseCommand.self, ResumeCommand.self,
                    CancelCommand.self, RetryCommand.self, RemoveCommand.self,
                ]
            ),
            CommandGroup(
                name: "Events",
                subcommands: [
                    EventsCommand.self, OnCommand.self, SubscriptionsCommand.self, DeliveriesCommand.self,
                ]
            ),
            CommandGroup(
                name: "Workers and origins",
                subcommands: [WorkersCommand.self, DrainCommand.self, OriginsCommand.self, FsckCommand.self]
            ),
        ]
    )

    /// The names of all commands: the sections that a configuration file may have.
    static let names: Set<String> = Set(
        configuration.groupedSubcommands.flatMap { $0.subcommands }.compactMap { $0.configuration.commandName }
    )

    /// The names of the commands that do nothing but ask a coordinator.
    static let asking: Set<String> = names.subtracting([
        GetCommand.section, UpCommand.section, ServeCommand.section, WorkCommand.section, MigrateCommand.section,
    ])
}

/// The entry point of the program.
public enum MusterProgram {
    /// Runs a command line, without the program's name, and returns the exit code (see `ExitStatus`).
    public static func main(_ arguments: [String]) async -> Int32 {
        if arguments.first == GetCommand.section { EarlyInterruption.endsProcess() }
        // Ctrl-\ ends every command as SIGTERM does. Without this the runtime would print the state of each thread.
        signal(SIGQUIT) { _ in kill(getpid(), SIGTERM) }
        DescriptorLimit.raise()
        // A missing reader becomes an error of the write, which each command handles in its own way.
        signal(SIGPIPE, SIG_IGN)
        // A parent may pass SIGCHLD on as ignored, and then a child that has ended can't be waited for.
        signal(SIGCHLD, SIG_DFL)
        if arguments.first == "version", arguments.dropFirst().allSatisfy({ $0 == "--json" }) {
            return MusterVersion.show(isJSON: arguments.count > 1)
        }
        let arguments = ArgumentOrder.normalized(arguments)
        if let complaint = CommandSuggestion.complaint(arguments) {
            Console(json: false).remark(TextWidth.escaped(complaint, keepingLineBreaks: true))
            return ExitStatus.usage.rawValue
        }
        do {
            var command = try await MusterCommand.asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitStatus.success.rawValue
        } catch {
            return end(error, command: Array(arguments.prefix(1)))
        }
    }

    /// The help text of a command, as it is printed; of the program when the command is empty.
    static func help(_ command: [String], columns: Int) -> String {
        do {
            var help = try MusterCommand.parseAsRoot(command + ["--help"])
            try help.run()
            return ""
        } catch {
            return text(of: error, columns: columns)
        }
    }

    /// The parser's message without the empty lines at its end.
    private static func text(of error: any Error, columns: Int? = nil) -> String {
        var text = MusterCommand.fullMessage(for: error, columns: columns)
        while text.last?.isNewline == true { text.removeLast() }
        return text
    }

    /// Prints the parser's message, and chooses the exit code: help is a success, any error of the command line is 2.
    private static func end(_ error: any Error, command: [String]) -> Int32 {
        if let code = error as? ExitCode { return code.rawValue }
        let text = OptionHint.completed(text(of: error), command: command)
        let console = Console(json: false)
        if MusterCommand.exitCode(for: error).isSuccess {
            try? console.line(text)
            return (console.hasLostLines ? ExitStatus.failure : .success).rawValue
        }
        console.remark(TextWidth.escaped(text, keepingLineBreaks: true))
        return ExitStatus.usage.rawValue
    }
}
