import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// The names that the SQL functions write or compare are in the closed lists of Swift.
@Suite("Names in the SQL functions") struct SQLTextTests {
    /// The sources of all functions of the schema, without comments.
    private func sources(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.values(
            """
            SELECT regexp_replace(p.prosrc, '--[^\n]*', '', 'g') FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
            """)
    }

    @Test func everyTypeOfEventInTheSQLIsListedAndViceVersa() async throws {
        try await StoreFixture.run { fixture in
            var written: Set<String> = []
            for source in try await sources(fixture) {
                for match in source.matches(of: /'(dev\.muster\.[^']*)'(?:\s*\|\|\s*(\w+)\s*\|\|\s*'([^']*)')?/) {
                    if let end = match.3 {
                        // Composed from the group's final state.
                        #expect(match.1 == "dev.muster.group." && match.2?.hasSuffix("state") == true)
                        for state in GroupState.allCases where state.isTerminal {
                            written.insert("\(match.1)\(state.rawValue)\(end)")
                        }
                    } else {
                        written.insert(String(match.1))
                    }
                }
            }
            #expect(written == Set(EventType.allCases.map(\.rawValue)))
        }
    }

    @Test func everyKindOfFailureInTheSQLIsListed() async throws {
        try await StoreFixture.run { fixture in
            var named: Set<String> = []
            for source in try await sources(fixture) {
                // Functions about chunks and deliveries have other kinds, which are skipped.
                guard
                    source.contains("failure_kind") || source.contains("fail_task") || source.contains("note_attempt")
                        || source.contains("'startOver'") || source.contains("limit_signal")
                else { continue }
                for match in source.matches(of: /(?:\b[pf][._]kind|failure_kind)\s*(?::?=|<>)\s*'(\w+)'/) {
                    named.insert(String(match.1))
                }
                for match in source.matches(of: /fail_task\([^,()]+,\s*'(\w+)'/) {
                    named.insert(String(match.1))
                }
                for match in source.matches(of: /(?:\b[pf][._]kind|failure_kind)\s+(?:NOT\s+)?IN\s*\(([^()]*)\)/) {
                    for kind in match.1.matches(of: /'(\w+)'/) { named.insert(String(kind.1)) }
                }
            }
            // Kinds named today: if one were missing, the search would be broken.
            #expect(
                named.isSuperset(of: ["digestMismatch", "network", "badRange", "poison", "deadline", "authentication"]))
            for name in named { #expect(FailureKind(rawValue: name) != nil, "\(name) is no kind of failure") }
        }
    }
}
