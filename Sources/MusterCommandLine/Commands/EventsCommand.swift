import ArgumentParser
import MusterAPI
import MusterCore

/// `muster events`: prints the durable log.
struct EventsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Prints the durable log of what happened.",
        usage: "muster events [--after <n>] [--group <group>] [--follow]",
        discussion: """
            Each event has a position: 1, 2, 3 and so on, without gaps. To continue later, give the last position that you \
            have seen to --after: the next event is the one behind it, and none is missing. Without --follow the command \
            prints what there is and ends; a group that has never been there is refused then.

            Examples:
              muster events --group nightly
              muster events --after 1200 --follow --json
            """
    )

    @Option(
        help: ArgumentHelp(
            "Begin with the event behind this position. (default: with the oldest event that is kept)", valueName: "n")
    )
    var after: String?

    @Option(help: ArgumentHelp("Only events of this group.", valueName: "group"))
    var group: String?

    @Flag(help: "Do not end: print new events as they happen. (MUSTER_FOLLOW)")
    var follow = false

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.values([.group: group, .after: after]).merging(Given.flags([.follow: follow])) { $1 }
    }

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let position = try settings.number(.after, in: 0...Int.max).map(Int64.init)
        let group = settings.text(.group)
        if let group { try CommandContext.checkName(group, what: "group") }
        let follows = try settings.flag(.follow)
        try await context.withClient { client in
            try await Self.show(client, after: position, group: group, follows: follows, on: context.console)
        }
    }

    /// Prints the log up to its end, or for ever if `follows` is set.
    ///
    /// - Parameter position: the last position that is known; `nil` begins with the oldest event that is kept.
    static func show(
        _ client: MusterClient,
        after position: Int64?,
        group: String?,
        follows: Bool,
        on console: Console
    ) async throws {
        let client = follows ? Patience(console: console).asking(by: client) : client
        if let group { try await check(group, client, follows: follows, on: console) }
        let start = position
        var position = position
        // The first request does not wait for news, so that its answer comes at once. Only later requests wait, also through an outage.
        var wait: Duration?
        var log: String?
        while true {
            let page: EventsDocument
            do {
                page = try await client.events(
                    after: position, of: log, limit: Limits.pageSize, group: group, wait: wait)
            } catch let problem as Problem where problem.code == .otherLog {
                // It is not known where the two logs diverge. An event that is printed once more has the same id.
                console.remark("\(problem.detail); it is told from where this command began, some of it once more")
                (position, log) = (start, nil)
                continue
            }
            log = page.log
            for event in page.items {
                if console.json {
                    try console.document(event)
                } else {
                    try console.line(try line(event))
                }
            }
            // With a group, the coordinator may have read the log beyond the last matching event.
            position = max(position ?? 0, page.next)
            if !follows, page.items.isEmpty { return }
            wait = follows ? Limits.followerPoll : nil
        }
    }

    /// Rejects a group that neither exists nor has an event in the log. A command that follows the log waits for it instead.
    private static func check(
        _ group: String, _ client: MusterClient, follows: Bool, on console: Console
    ) async throws {
        do {
            _ = try await client.group(group)
        } catch let problem as Problem where problem.code == .groupNotFound {
            guard try await client.events(after: nil, limit: 1, group: group).items.isEmpty else { return }
            guard follows else { throw problem }
            console.remark("there is no group \"\(group)\" yet; waiting for it")
        }
    }

    /// `42  2026-03-01 13:00:00  group.succeeded  groups/nightly`, with the task where there is one.
    static func line(_ event: EventDocument, clock: WallClock = .ofThisMachine) throws -> String {
        var parts = [
            TextWidth.aligned("\(event.position)", to: 8), clock.moment(event.time), EventType.short(event.type),
            event.subject,
        ]
        if let key = try event.payload()?.key { parts.append(key) }
        return TextWidth.escaped(parts.joined(separator: "  "))
    }
}
