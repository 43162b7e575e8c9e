import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore

/// `muster origins`: lists the origins of files, and changes them.
struct OriginsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins",
        abstract: "Lists the origins that files come from, and sets what the fleet may do to them.",
        usage: """
            muster origins [--json]
            muster origins set <origin> [<options>]
            """,
        discussion: """
            An origin is a scheme, a host and a port. The fleet shares one budget for each: its cap is halved when the origin \
            refuses because there is too much at once, and grows again by one every ten seconds.

            Examples:
              muster origins
              muster origins set https://example.org --max-connections 4 --rate 20MiB/s
              muster origins set https://example.org --pause-until 30m
            """,
        subcommands: [OriginsListCommand.self, OriginsSetCommand.self],
        defaultSubcommand: OriginsListCommand.self
    )
}

/// `muster origins list`, which may be left out: lists the origins that are known.
struct OriginsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the origins, and what the fleet may do to them.",
        usage: "muster origins [--json]",
        discussion: """
            OPEN is how many connections there are, ALLOWED how many there may be now, MOST how many there may be once the \
            origin has not refused for a while; NOTE says why these differ. TO COME is what is left to fetch of what is leased there, a + meaning that not every \
            length is known, and ETA how long that takes.

            Example:
              muster origins --json | jq '.items[] | select(.limitedAt)'
            """
    )

    static var section: String { OriginsCommand.configuration.commandName ?? "" }

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let origins = try await context.withClient { client in
            try await Page.all { try await client.origins(after: $0, limit: Limits.pageSize) }
        }
        if context.console.json {
            try context.console.document(Page(items: origins, next: nil))
        } else if origins.isEmpty {
            try context.console.line("there are no origins yet")
        } else {
            try context.console.table(Self.table(origins))
        }
    }

    /// The table of origins.
    static func table(_ origins: [OriginDocument], clock: WallClock = .ofThisMachine) -> Table {
        var table = Table([
            .name("ORIGIN"), .number("OPEN"), .number("ALLOWED"), .number("MOST"), .number("SPEED"),
            .number("AT MOST", isOptional: true), .number("TO COME", isOptional: true),
            .number("ETA", isOptional: true),
            .text("PAUSED UNTIL", isOptional: true), .sentence("NOTE", isOptional: true),
        ])
        for origin in origins {
            table.add([
                origin.key, "\(origin.connections)", "\(origin.allowedConnections)", "\(origin.maxConnections)",
                origin.connections > 0 ? ProgressSnapshot.rate(origin.bytesPerSecond) : "-",
                origin.bytesPerSecondLimit.map(ProgressSnapshot.rate) ?? "-", ProgressSnapshot.toCome(origin.bytes),
                ProgressSnapshot.time(origin.etaSeconds), origin.pausedUntil.map(clock.text) ?? "-",
                origin.note ?? "-",
            ])
        }
        return table
    }
}

/// `muster origins set`: sets what the fleet may do to an origin.
struct OriginsSetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract:
            "Sets how many connections and bytes per second the fleet may have of an origin, or leaves it alone for a while.",
        usage:
            "muster origins set <origin> [<options>]",
        discussion: """
            A duration is counted by the database's clock from the moment the request arrives. Transfers that are running \
            when an origin is paused go on; nothing new is begun.

            Examples:
              muster origins set https://example.org --max-connections 4
              muster origins set https://example.org --max-connections none --rate none
              muster origins set https://example.org:8443 --pause-until 2026-03-01T06:00:00Z
            """
    )

    static var section: String { OriginsCommand.configuration.commandName ?? "" }

    @Option(
        help: ArgumentHelp(
            "The cap, or none for the coordinators' own; either forgets what was learned.",
            valueName: "n"
        )
    )
    var maxConnections: String?

    @Option(
        help: ArgumentHelp(
            "The most bytes per second of the whole fleet, such as 20MiB/s, or none.",
            valueName: "rate"
        )
    )
    var rate: String?

    @Option(
        help: ArgumentHelp(
            "A time (RFC 3339), a duration such as 30m, or none to end a pause.",
            valueName: "time"
        )
    )
    var pauseUntil: String?

    @Argument(help: "The origin: scheme, host and port, as in https://example.org.")
    var origin: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.values([.maxConnections: maxConnections, .rate: rate, .pauseUntil: pauseUntil])
    }

    func perform(_ context: CommandContext) async throws {
        let patch = try context.settings.originPatch()
        guard patch != OriginPatch() else {
            throw CommandFailure.usage("give --max-connections, --rate or --pause-until")
        }
        let (before, document) = try await context.withClient { client in
            let before = try await Page.all { try await client.origins(after: $0, limit: Limits.pageSize) }
            return (before, try await client.setOrigin(origin, patch))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            if before.contains(where: { Self.hasSameSettings($0, document) }) {
                try context.console.line("nothing to change: it is set so already")
            }
            try context.console.table(OriginsListCommand.table([document]))
        }
    }

    private static func hasSameSettings(_ one: OriginDocument, _ other: OriginDocument) -> Bool {
        one.key == other.key && one.maxConnections == other.maxConnections
            && one.allowedConnections == other.allowedConnections
            && one.bytesPerSecondLimit == other.bytesPerSecondLimit
            && one.pausedUntil == other.pausedUntil
    }
}

extension Settings {
    /// The change of an origin that the options ask for.
    func originPatch() throws(CommandFailure) -> OriginPatch {
        var patch = OriginPatch()
        patch.maxConnections = try change(.maxConnections) { settings throws(CommandFailure) in
            try settings.number(.maxConnections, in: 1...100_000).map(Int32.init)
        }
        patch.bytesPerSecond = try change(.rate) { settings throws(CommandFailure) in try settings.rate(.rate) }
        guard let text = text(.pauseUntil) else { return patch }
        if text == "none" {
            patch.pausedUntil = .clear
        } else if let duration = DurationNotation.parse(text), duration > .zero {
            // A duration is not turned into a moment here: that would use this machine's clock (I11).
            patch.pauseFor = text
        } else if let moment = Self.moment(text) {
            patch.pausedUntil = .set(moment)
        } else {
            throw refusal(.pauseUntil, "must be a time such as 2026-03-01T06:00:00Z, a duration such as 30m, or none")
        }
        return patch
    }

    /// The moment of an RFC 3339 text; `nil` for any other text.
    private static func moment(_ text: String) -> Timestamp? {
        guard let json = try? JSONEncoder().encode(text) else { return nil }
        return try? JSONDecoder().decode(Timestamp.self, from: json)
    }
}
