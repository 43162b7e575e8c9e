import MusterCore
import Testing

/// What a filter may say, and what it means.
struct EventFilterTests {
    @Test(
        arguments: [
            ("*", nil), ("a", "^a$"), ("a.b", "^a\\.b$"), ("night-*", "^night-.*$"), ("?a?", "^.a.$"),
            ("***a", "^.*a$"), ("a*_*", "^a.*_.*$"),
        ] as [(String, String?)])
    func patternIsAnExpressionOverTheWholeName(pattern: String, expression: String?) throws {
        #expect(try EventFilter(groups: pattern, types: []).groupsExpression == expression)
    }

    @Test(arguments: ["", "a b", "[a]", "a|b", "(", "a/b", "ä", "a\\", "^", "a$", "{1}", "+"])
    func patternHasTheCharactersOfNamesAndWildcardsAlone(pattern: String) {
        #expect(throws: EventFilter.Refusal.groups) { try EventFilter(groups: pattern, types: []) }
    }

    @Test func patternIsNoLongerThanAName() throws {
        _ = try EventFilter(groups: String(repeating: "a", count: 200), types: [])
        #expect(throws: EventFilter.Refusal.groups) {
            try EventFilter(groups: String(repeating: "a", count: 201), types: [])
        }
    }

    @Test func typesAreASet() throws {
        #expect(try EventFilter(groups: nil, types: ["b", "a", "b"]).types == ["a", "b"])
        #expect(try EventFilter(groups: "*", types: []) == .all)
        #expect(throws: EventFilter.Refusal.types("a,b")) { try EventFilter(groups: nil, types: ["a,b"]) }
        #expect(throws: EventFilter.Refusal.types("")) { try EventFilter(groups: nil, types: [""]) }
        #expect(throws: EventFilter.Refusal.types(nil)) {
            try EventFilter(groups: nil, types: (0...64).map { "t\($0)" })
        }
    }
}
