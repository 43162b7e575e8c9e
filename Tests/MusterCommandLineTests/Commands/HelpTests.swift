import ArgumentParser
import Testing

@testable import MusterCommandLine

/// Options that users know from other tools.
@Suite struct OptionHintTests {
    private func complaint(_ option: String, _ command: String) -> String {
        OptionHint.completed("Error: Unknown option '\(option)'. Did you mean '--reuse'?\nUsage: …", command: [command])
    }

    @Test(arguments: [
        ("--rate", "--max-rate"), ("--limit-rate", "--max-rate"), ("-o", "\"path\""), ("-O", "lines of -i"),
        ("-j", "--slots"),
        ("-x", "--max-connections-per-origin"), ("-H", "--header"), ("-c", "no option is needed"),
        ("-q", "> /dev/null"), ("-s", "> /dev/null"),
    ])
    func getNamesItsOwnOptionInstead(foreign: String, own: String) {
        let lines = complaint(foreign, "get").split(separator: "\n")
        #expect(lines.count == 3 && lines[0] == "Error: Unknown option '\(foreign)'.")
        #expect(lines[1].contains(own) && lines[2] == "Usage: …")
    }

    @Test func optionsThatACommandLacksAreNotNamed() {
        #expect(complaint("--limit-rate", "add").contains("--rate RATE"))
        #expect(complaint("-j", "add") == "Error: Unknown option '-j'. Did you mean '--reuse'?\nUsage: …")
        #expect(complaint("-H", "wait").contains("--reuse"))
        #expect(complaint("--nonsense", "get").contains("--reuse"))
    }
}

/// Users and scripts rely on the help texts: a change is intended, or one of these tests fails.
@Suite("Help")
struct HelpTests {
    @Test func everyCommandHasAnExampleAndItsUsage() {
        for name in MusterCommand.names {
            let help = MusterProgram.help([name], columns: 80)
            #expect(help.contains("Example"), "\(name)")
            #expect(help.contains("USAGE: muster \(name)"), "\(name)")
            #expect(help.contains("muster \(name)"), "\(name)")
            #expect(help.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(name)")
        }
    }

    @Test func theCommandsAreThoseOfTheContract() {
        #expect(
            MusterCommand.names == [
                "get", "up", "serve", "work", "migrate", "add", "seal", "status", "tasks", "explain", "wait", "limit",
                "set", "pause", "resume", "cancel", "retry", "remove", "events", "on", "subscriptions", "deliveries",
                "workers",
                "origins", "drain", "fsck",
            ]
        )
    }

    /// `docs/commands.md` shows every help text, so that it is read there, and compared here.
    @Test(arguments: HelpReference.commands)
    func theReferenceShowsWhatTheProgramPrints(command: [String]) throws {
        let title = HelpReference.title(command)
        #expect(try HelpReference.written()[title] == HelpReference.text(command), "\(title): \(HelpReference.hint)")
    }

    @Test func theReferenceHasEveryCommandInItsOrder() throws {
        #expect(try HelpReference.document() == HelpReference.rendered(), "\(HelpReference.hint)")
    }

    /// To the parser, such names are clusters of short options, with -h for help among them.
    @Test(arguments: [["explain", "g", "-dash"], ["get", "-d", "x", "-oh", "u"], ["status", "-hx"]])
    func aNameWithADashIsNoQuestionForHelp(arguments: [String]) throws {
        let complaint = try #require(CommandSuggestion.complaint(arguments))
        #expect(complaint.contains("there is no option '-") && complaint.contains(" -- '-"), "\(complaint)")
    }

    @Test(arguments: [
        ["get", "-h"], ["get", "-d=/home/h", "u"], ["explain", "g", "--", "-dash"], ["on", "g", "--", "sh", "-ch"],
        ["add", "g", "--header", "x: -h"],
    ])
    func helpAndWhatFollowsTwoDashesIsTakenAsItIs(arguments: [String]) {
        #expect(CommandSuggestion.complaint(arguments) == nil)
    }

    @Test func twoNamesOfOneFileAreRefused() {
        let error = #expect(throws: (any Error).self) {
            try MusterCommand.parseAsRoot(["get", "-o", "a", "-o", "b", "https://e.org/u"])
        }
        #expect(error.map { MusterCommand.message(for: $0).contains("give it once") } == true)
    }
}
