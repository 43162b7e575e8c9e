import ArgumentParser
import MusterAPI
import MusterCore

/// Detects a mistyped command before the parser takes it for an argument, and suggests the nearest command.
enum CommandSuggestion {
    /// What is wrong with the command of a command line; `nil` if there is no command, or it is known.
    static func complaint(_ arguments: [String]) -> String? {
        var words = arguments[...]
        if words.first == "help" { words = words.dropFirst() }
        guard let word = words.first, !word.hasPrefix("-"), word != "help" else { return nil }
        let commands = MusterCommand.configuration.groupedSubcommands.flatMap(\.subcommands)
        guard let command = commands.first(where: { $0.configuration.commandName == word }) else {
            if word.contains("://") { return "Error: a URL is no command.\n  To download it: muster get <url>" }
            if let usual = usual[word] { return said(word, " Did you mean '\(usual)'?", command: "muster") }
            return text(word, among: MusterCommand.names, command: "muster")
        }
        // The parser would read such a word as combined short options, -h for the help among them.
        if let word = words.prefix(while: { $0 != "--" }).first(where: {
            $0.wholeMatch(of: /-[^-=][^=]*h[^=]*|-h[^=]+/) != nil
        }) {
            if word.wholeMatch(of: /-[0-9]+[dhms0-9]*/) != nil {
                return "Error: '\(word)' is less than nothing: no option takes such a value."
            }
            return "Error: there is no option '\(word)'.\n  A name that begins with a dash follows --: "
                + "muster \(command.configuration.commandName ?? "") … \(ShellWord(word))"
        }
        // A command with subcommands takes no arguments of its own.
        let parts = Set(command.configuration.subcommands.compactMap { $0.configuration.commandName })
        guard !parts.isEmpty, let part = words.dropFirst().first, !part.hasPrefix("-"), !parts.contains(part) else {
            return nil
        }
        return text(part, among: parts, command: "muster \(word)")
    }

    /// Names that other tools have for the commands of Muster.
    static let usual = [
        "download": "get", "dl": "get", "fetch": "get", "pull": "get", "curl": "get", "wget": "get", "aria2c": "get",
        "ls": "status", "list": "status", "ps": "status", "show": "status", "groups": "status", "top": "status --watch",
        "start": "up", "run": "up", "server": "serve", "daemon": "serve", "worker": "work", "create": "add",
        "rm": "remove", "del": "remove", "delete": "remove", "kill": "cancel", "abort": "cancel", "stop": "pause",
        "continue": "resume", "unpause": "resume", "log": "events", "logs": "events", "tail": "events --follow",
        "why": "explain", "describe": "explain", "inspect": "explain", "webhooks": "subscriptions",
    ]

    private static func text(_ word: String, among names: Set<String>, command: String) -> String {
        let suggestion = nearest(word, among: names, share: 2).map { " Did you mean '\($0)'?" }
        return said(word, suggestion ?? "", command: command)
    }

    /// The name nearest to a mistyped one; `nil` if none is near enough.
    ///
    /// - Parameter share: one in so many letters of the name may be wrong, and one letter in any case.
    private static func nearest(_ word: String, among names: Set<String>, share: Int) -> String? {
        // A word of two letters or more that begins a name means that name.
        let begun = word.count > 1 ? names.filter { $0.hasPrefix(word) } : []
        let nearest = (begun.isEmpty ? names : Set(begun)).sorted().min { distance(word, $0) < distance(word, $1) }
        return nearest.flatMap { !begun.isEmpty || distance(word, $0) <= max(1, $0.count / share) ? $0 : nil }
    }

    /// The name of the group that does not exist; `nil` for any other problem.
    static func missingGroup(_ problem: Problem) -> String? {
        guard problem.code == .groupNotFound else { return nil }
        return problem.detail.firstMatch(of: /^there is no group "(.+)"$/).map { String($0.output.1) }
    }

    /// The coordinator's problem about a missing group, completed by what is left of the group if it is being removed, or else by the nearest name.
    static func completed(_ problem: Problem, among groups: [String], removal: RemovalDocument? = nil) -> Problem {
        guard let name = missingGroup(problem) else { return problem }
        var completed = problem
        if let note = removal?.note {
            completed.detail +=
                " any more: it was removed, and \(note); to wait for that: muster remove \(ShellWord(name)) --wait"
        } else if let near = nearest(name, among: Set(groups).subtracting([name]), share: 4) {
            completed.detail += "; did you mean \(near)?"
        }
        return completed
    }

    private static func said(_ word: String, _ suggestion: String, command: String) -> String {
        "Error: there is no '\(command) \(word)'.\(suggestion)\n  See '\(command) --help' for more information."
    }

    /// The edit distance of two words: how many letters have to be added, dropped, changed or swapped with the next letter.
    static func distance(_ first: String, _ second: String) -> Int {
        let (a, b) = (Array(first), Array(second))
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
