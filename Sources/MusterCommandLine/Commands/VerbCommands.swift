import ArgumentParser
import MusterAPI
import MusterCore

/// Options and arguments of a verb on a group.
struct VerbArguments: ParsableArguments {
    @Argument(help: "The group's name.")
    var group: String

    @Argument(help: ArgumentHelp("Keys of tasks; all of the group when there are none.", valueName: "key"))
    var keys: [String] = []

    @OptionGroup var client: ClientOptions
}

/// A command that is one verb of the API on a group or on some of its tasks.
protocol VerbCommand: ClientCommand {
    /// The verb.
    static var verb: GroupVerb { get }
    /// The verb in the past, for the line that is printed.
    static var done: String { get }
    /// The group, and the keys of the tasks if not all are meant.
    var arguments: VerbArguments { get }
}

extension VerbCommand {
    var client: ClientOptions { arguments.client }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(arguments.group, what: "group")
        let keys = arguments.keys
        let (before, group) = try await context.withClient { client in
            let asks = (Self.verb == .cancel || Self.verb == .retry) && keys.isEmpty
            let before = asks ? try await client.group(arguments.group) : nil
            return (before, try await client.apply(Self.verb, to: arguments.group, keys: keys.isEmpty ? nil : keys))
        }
        if context.console.json {
            try context.console.document(group)
        } else {
            try context.console.line(Self.sentence(group, before: before, keys: keys.count))
            try context.console.line(PlainProgress.sentence(ProgressSnapshot(group: group)))
            if let renewed = Self.renewedDeadline(group, before: before) { try context.console.line(renewed) }
        }
    }

    /// A line with the new deadline of a group that goes on, since a retry starts the deadline anew; `nil` if there is none.
    static func renewedDeadline(_ group: GroupDocument, before: GroupDocument?) -> String? {
        guard verb == .retry, before?.state.isTerminal == true, !group.state.isTerminal,
            let fact = GroupFactLines.limits(group).first(where: { $0.0 == "deadline" })
        else { return nil }
        return "its deadline begins anew: \(fact.1)"
    }

    /// A sentence that says what the verb did to a group, or to `keys` of its tasks.
    ///
    /// - Parameter before: the group before the verb, where that makes a difference.
    static func sentence(_ group: GroupDocument, before: GroupDocument? = nil, keys: Int) -> String {
        let changed = group.changedTasks ?? Int64(keys)
        if verb == .cancel, before?.state == .cancelled { return "nothing to cancel: \(group.name) is cancelled" }
        // The failed tasks were removed before, and the others stay as they were.
        if verb == .retry, changed == 0, let before, before.state == .failed, group.generation > before.generation {
            let end = group.state.isTerminal ? ", and it has \(group.state.rawValue)" : ""
            return "retried \(group.name): nothing of it has failed any more\(end)\(left(group))"
        }
        guard keys == 0 else {
            if changed == 0 {
                return "nothing to \(verb.rawValue): \(unchanged(keys)) of \(group.name) \(reason(keys))"
            }
            let count = changed == Int64(keys) ? "\(keys)" : "\(changed) of \(keys)"
            return "\(done) \(count) task\(keys == 1 ? "" : "s") of \(group.name)"
        }
        // The sentence must not say of an ended group that it was paused, resumed, cancelled or retried.
        let isLate =
            switch verb {
            case .pause, .resume: group.state.isTerminal
            case .cancel: group.state.isTerminal && group.state != .cancelled
            case .retry: group.state == .cancelled
            case .seal: false
            }
        if isLate {
            let end = group.state == .cancelled ? "been cancelled" : group.state.rawValue
            return "nothing to \(verb.rawValue): \(group.name) has \(end)\(verb == .retry ? left(group) : "")"
        }
        if verb == .retry, let changed = group.changedTasks, changed > 0 {
            return "retried \(group.name): \(changed) task\(changed == 1 ? " was" : "s were") put back\(left(group))"
        }
        guard group.changedTasks == 0 else { return "\(done) \(group.name)" }
        switch verb {
        case .retry: return "nothing to retry: no task of \(group.name) has failed"
        // The wish of the group itself may have changed.
        case .pause: return "\(done) \(group.name): nothing of it was waiting or being fetched"
        case .resume: return "\(done) \(group.name): no task of it was paused"
        case .cancel, .seal: return "\(done) \(group.name)"
        }
    }

    /// The number of cancelled tasks, which a retry leaves as they are, and the commands that fetch them all the same.
    private static func left(_ group: GroupDocument) -> String {
        let count = group.tasks.cancelled
        guard count > 0 else { return "" }
        return "; \(count == 1 ? "1 is" : "\(count) are") cancelled and \(count == 1 ? "stays" : "stay") so: "
            + "muster remove \(ShellWord(group.name)) KEY …, then muster add \(ShellWord(group.name)) --reopen …"
    }

    private static func unchanged(_ keys: Int) -> String { keys == 1 ? "the task" : "the tasks" }

    /// Why the verb did not change tasks; the sentence names them before that.
    private static func reason(_ keys: Int) -> String {
        switch verb {
        case .pause: keys == 1 ? "is paused already, or has ended" : "are paused already, or have ended"
        case .resume: keys == 1 ? "is not paused" : "are not paused"
        case .cancel: keys == 1 ? "has ended already" : "have ended already"
        case .retry: keys == 1 ? "has not failed" : "have not failed"
        case .seal: ""
        }
    }
}

/// `muster seal`: no more tasks will be added.
struct SealCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "seal",
        abstract: "Says that no more tasks will be added, so that the group can complete.",
        usage: "muster seal <group>",
        discussion: """
            Example:
              muster add nightly -i part1.txt --open
              muster add nightly -i part2.txt --open
              muster seal nightly
            """
    )

    @Argument(help: "The group's name.")
    var group: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let (before, document) = try await context.withClient { client in
            (try await client.group(group), try await client.apply(.seal, to: group))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            try context.console.line(
                before.sealed ? "nothing to seal: \(document.name) is sealed already" : "sealed \(document.name)")
            try context.console.line(PlainProgress.sentence(ProgressSnapshot(group: document)))
        }
    }
}

/// `muster pause`: stops fetching and keeps the bytes.
struct PauseCommand: VerbCommand {
    static let verb = GroupVerb.pause
    static let done = "paused"
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Stops fetching a group, or some of its tasks, and keeps what is there.",
        usage: "muster pause <group> [<key> ...]",
        discussion: """
            Examples:
              muster pause nightly
              muster pause nightly a.tar b.tar
            """
    )

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions
}

/// `muster resume`: goes on with what was paused.
struct ResumeCommand: VerbCommand {
    static let verb = GroupVerb.resume
    static let done = "resumed"
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Goes on with a paused group, or with some of its tasks.",
        usage: "muster resume <group> [<key> ...]",
        discussion: """
            Example:
              muster resume nightly
            """
    )

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions
}

/// `muster cancel`: ends tasks and drops what is unfinished.
struct CancelCommand: VerbCommand {
    static let verb = GroupVerb.cancel
    static let done = "cancelled"
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Ends a group, or some of its tasks, and drops unfinished bytes. Finished files stay.",
        usage: "muster cancel <group> [<key> ...]",
        discussion: """
            Examples:
              muster cancel nightly
              muster cancel nightly a.tar
            """
    )

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions
}

/// `muster retry`: puts failed tasks back with the bytes they had.
struct RetryCommand: VerbCommand {
    static let verb = GroupVerb.retry
    static let done = "retried"
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Puts failed tasks back with the bytes they had.",
        usage: "muster retry <group> [<key> ...]",
        discussion: """
            Example:
              muster retry nightly && muster wait nightly
            """
    )

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions
}
