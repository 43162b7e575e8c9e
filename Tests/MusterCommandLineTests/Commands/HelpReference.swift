import ArgumentParser
import FoundationEssentials

@testable import MusterCommandLine

/// `docs/commands.md`: the help text of every command, and the shared options once.
enum HelpReference {
    /// How to rewrite the reference after an intended change.
    static let hint = "MUSTER_WRITE_REFERENCE=1 swift test --filter HelpTests writes docs/commands.md anew"

    /// Every command and every part of one, as they are typed; the program itself is an empty list.
    static let commands: [[String]] =
        [[]]
        + MusterCommand.configuration.groupedSubcommands.flatMap(\.subcommands).flatMap { command in
            let name = command.configuration.commandName ?? ""
            return [[name]] + command.configuration.subcommands.map { [name, $0.configuration.commandName ?? ""] }
        }

    /// `muster origins set`.
    static func title(_ command: [String]) -> String { (["muster"] + command).joined(separator: " ") }

    /// The help of a command in 80 columns, without the options that many share.
    static func text(_ command: [String]) -> String {
        var text = MusterProgram.help(command, columns: 80) + "\n"
        for shared in shared {
            // A command without the option is left as it is.
            if let range = text.firstRange(of: shared) { text.removeSubrange(range) }
        }
        // Drop a heading without options below it.
        if let range = text.firstRange(of: "\nOPTIONS:\n\n") { text.replaceSubrange(range, with: "\n") }
        while text.last?.isNewline == true { text.removeLast() }
        return text.hasSuffix("\n\nOPTIONS:") ? String(text.dropLast("\n\nOPTIONS:".count)) : text
    }

    /// The options that many commands share, as `muster status` has them.
    private static let shared: [String] = {
        let help = MusterProgram.help(["status"], columns: 80) + "\n"
        guard let start = help.firstRange(of: "  --server"), let end = help.firstRange(of: "  --json"),
            let last = help.firstRange(of: "  --version")
        else { return [] }
        return [
            String(help[start.lowerBound..<end.lowerBound]), String(help[end.lowerBound..<last.lowerBound]),
            String(help[last.lowerBound...]),
        ]
    }()

    /// The whole document as it must be.
    static func rendered() -> String {
        var text = """
            # Commands

            What `muster help COMMAND` prints, in the width of an ordinary terminal. The options that all commands share stand here
            alone; `--server` and `--token` belong to those that talk to a coordinator.
            ```
            \(shared.joined().trimmingLastNewline)
            ```

            """
        for command in commands { text += "\n## \(title(command))\n```\n\(Self.text(command))\n```\n" }
        return text
    }

    /// The document as it is; it is rewritten first if the environment asks for that.
    static func document() throws -> String {
        let path = String(#filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()) + "/docs/commands.md"
        if ProcessInfo.processInfo.environment["MUSTER_WRITE_REFERENCE"] != nil {
            try Data(rendered().utf8).write(to: URL(filePath: path))
        }
        return String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }

    /// The texts of the document by their titles.
    static func written() throws -> [String: String] {
        var texts: [String: String] = [:]
        for section in try document().split(separator: "\n## ").dropFirst() {
            guard let line = section.firstIndex(of: "\n") else { continue }
            let body = section[section.index(after: line)...].drop { $0 == "`" || $0 == "\n" }
            texts[String(section[..<line])] = body.split(separator: "\n```").first.map(String.init)
        }
        return texts
    }
}

extension String {
    fileprivate var trimmingLastNewline: String { hasSuffix("\n") ? String(dropLast()) : self }
}
