import ArgumentParser
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Origins")
struct OriginsTests {
    private func patch(_ arguments: [SettingName: [String]]) throws -> OriginPatch {
        try Settings(command: "origins", arguments: arguments, configuration: nil, environment: [:]).originPatch()
    }

    @Test func theTableOfOrigins() {
        var limited = OriginDocument(
            key: "https://a.example:443", maxConnections: 8, allowedConnections: 4, connections: 3)
        limited.limitedAt = Samples.moment
        limited.bytesPerSecond = 36_805_017
        limited.bytesPerSecondLimit = 41_943_040
        limited.note = "a refusal 6m ago was taken for one of too much at once"
        var paused = OriginDocument(
            key: "https://b.example:443", maxConnections: 2, allowedConnections: 2, connections: 0)
        paused.pausedUntil = Samples.moment
        #expect(
            OriginsListCommand.table([limited, paused], clock: Samples.clock).lines() == [
                "ORIGIN                 OPEN  ALLOWED  MOST       SPEED     AT MOST  PAUSED UNTIL                   NOTE",
                "https://a.example:443     3        4     8  35.1 MiB/s  40.0 MiB/s  -                              a refusal 6m ago was taken for one of too much at once",
                "https://b.example:443     0        2     2           -           -  2026-03-01 13:00:00 (15s ago)  -",
            ]
        )
    }

    @Test func speedOfAnOriginIsShownWithItsEnd() {
        var origin = OriginDocument(
            key: "https://a.example:443", maxConnections: 8, allowedConnections: 8, connections: 3)
        origin.bytesPerSecond = 1 << 20
        origin.bytes = .init(done: 12 << 20, total: 64 << 20, unknownLeases: 0)
        origin.etaSeconds = 52
        #expect(
            OriginsListCommand.table([origin]).lines() == [
                "ORIGIN                 OPEN  ALLOWED  MOST      SPEED   TO COME  ETA",
                "https://a.example:443     3        8     8  1.0 MiB/s  52.0 MiB  52s",
            ])
    }

    @Test func aNarrowTerminalHasRoomForTheNameAndForWhatIsWrong() {
        var origin = OriginDocument(
            key: "https://downloads.mirror.example.org:443", maxConnections: 8, allowedConnections: 1, connections: 1)
        origin.limitedAt = Samples.moment
        origin.bytesPerSecond = 1 << 20
        origin.bytes = .init(done: 12 << 20, total: 64 << 20, unknownLeases: 0)
        origin.etaSeconds = 52
        origin.note = "it refused others with 404 6 s ago; one more is tried every 10 s"
        #expect(
            OriginsListCommand.table([origin]).lines(width: 80) == [
                "ORIGIN                             OPEN  ALLOWED  MOST      SPEED   TO COME  ETA",
                "https://download….example.org:443     1        1     8  1.0 MiB/s  52.0 MiB  52s",
                "    note: it refused others with 404 6 s ago; one more is tried every 10 s",
            ])
    }

    @Test func noneTakesAwayTheCapOfAnOrigin() throws {
        #expect(try patch([.maxConnections: ["none"]]) == OriginPatch(maxConnections: .clear))
    }

    @Test func aDurationIsLeftToTheDatabasesClock() throws {
        #expect(try patch([.pauseUntil: ["30m"]]) == OriginPatch(pauseFor: "30m"))
        #expect(try patch([.pauseUntil: ["none"]]) == OriginPatch(pausedUntil: .clear))
        #expect(
            try patch([.pauseUntil: ["2026-03-01T12:00:00Z"]]) == OriginPatch(pausedUntil: .set(Samples.moment)))
        for text in ["tomorrow", "0s", "-3m", "2026-03-01"] {
            #expect(throws: CommandFailure.self) { try patch([.pauseUntil: [text]]) }
        }
    }

    @Test func aCapIsANumberOrTheDefault() throws {
        #expect(try patch([.maxConnections: ["4"]]) == OriginPatch(maxConnections: .set(4)))
        #expect(try patch([:]) == OriginPatch())
        for text in ["0", "unlimited", "default", "100001"] {
            #expect(throws: CommandFailure.self) { try patch([.maxConnections: [text]]) }
        }
    }

    @Test func aRateIsANumberOrNone() throws {
        #expect(try patch([.rate: ["20MiB/s"]]) == OriginPatch(bytesPerSecond: .set(20 << 20)))
        #expect(try patch([.rate: ["none"]]) == OriginPatch(bytesPerSecond: .clear))
        #expect(throws: CommandFailure.self) { try patch([.rate: ["fast"]]) }
    }

    @Test func theCommandHasTwoForms() throws {
        #expect(try MusterCommand.parseAsRoot(["origins"]) is OriginsListCommand)
        #expect(try MusterCommand.parseAsRoot(["origins", "--json"]) is OriginsListCommand)
        let set = try MusterCommand.parseAsRoot(
            ArgumentOrder.normalized(["--json", "origins", "set", "https://a", "--max-connections", "4"]))
        let command = try #require(set as? OriginsSetCommand)
        #expect(command.global.json && command.origin == "https://a" && command.maxConnections == "4")
        #expect(OriginsSetCommand.section == "origins" && OriginsListCommand.section == "origins")
    }
}
