import ArgumentParser
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Readers of events")
struct OnTests {
    @Test func theConsumersNameIsMadeOfPatternAndTypes() throws {
        func name(_ pattern: String, _ types: [String] = []) throws -> String {
            OnCommand.consumerName(try GroupPattern(pattern), types: types)
        }
        #expect(try name("nightly") == "on-nightly")
        #expect(try name("nightly-*").hasPrefix("on-nightly--."))
        let names = [
            try name("a*"), try name("a?"), try name("a-"), try name("a-", ["x"]), try name("a-", ["y"]),
            try name("a-", ["x", "y"]), try name("*"), try name(String(repeating: "a", count: 199) + "*"),
        ]
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy(NameRule.accepts))
        #expect(try name("*", ["x", "y"]) == name("*", ["y", "x"]))
    }

    @Test(arguments: ["*", "nightly-?", "a.b_c-*", "g"])
    func aPatternIsANameWithWildcards(text: String) throws {
        #expect(try GroupPattern(text).text == text)
    }

    @Test(arguments: ["", "a b", "a/*", "[ab]", "ä*", String(repeating: "a", count: 201)])
    func invalidPatternIsRefused(text: String) {
        #expect(throws: CommandFailure.self) { try GroupPattern(text) }
    }

    @Test func typesAreTypedInTheirShortForm() {
        #expect(
            EventType.full(["group.succeeded", "dev.muster.task.failed.v1"])
                == ["dev.muster.group.succeeded.v1", "dev.muster.task.failed.v1"])
        #expect(EventType.full(["dev.muster.group.of-tomorrow.v1"]) == ["dev.muster.group.of-tomorrow.v1"])
        #expect(EventType.full(["group.suceeded"]) == nil && EventType.full([])?.isEmpty == true)
        #expect(EventType.short("dev.muster.group.succeeded.v1") == "group.succeeded")
        #expect(EventType.short("org.example.other") == "org.example.other")
    }

    @Test func theCommandStandsBehindTwoDashes() throws {
        let parsed = try MusterCommand.parseAsRoot([
            "on", "g*", "--types", "group.failed", "--", "sh", "-c", "x --json",
        ])
        let command = try #require(parsed as? OnCommand)
        #expect(command.command == ["sh", "-c", "x --json"] && command.pattern == "g*")
        #expect(command.given[.types] == ["group.failed"] && !command.global.json)
    }
}
