import Testing

@testable import MusterCommandLine

/// The help texts are part of what people and scripts rely on: a change is meant, or it shows here.
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
                "pause", "resume", "cancel", "retry", "remove", "events", "on", "subscriptions", "deliveries",
                "workers",
                "origins", "drain",
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
}
