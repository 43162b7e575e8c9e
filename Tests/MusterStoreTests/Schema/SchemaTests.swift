import FoundationEssentials
import MusterPostgres
import Testing

@testable import MusterStore

/// The schema as text: every rule in one place, in its current form.
@Suite struct SchemaTests {
    /// The folder of the scripts.
    private static let folder = repository + "/Sources/MusterStore/Schema"
    private static let repository = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")

    @Test(arguments: ["Tables", "Verbs", "Plans"])
    func everyFileIsAScriptInTheOrderOfItsName(folder: String) throws {
        let scripts = ["Tables": Schema.tables, "Verbs": Schema.verbs, "Plans": Schema.plans][folder, default: []]
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(Self.folder)/\(folder)").sorted()
        #expect(scripts.map { "\($0.name).sql" } == files)
        for script in scripts {
            #expect(try Self.text("\(folder)/\(script.name).sql") == script.text, "built from another text")
        }
    }

    @Test func everyFunctionIsDefinedOnceAndNotByATable() {
        let names = Schema.verbs.flatMap { Self.functions($0.text) }
        #expect(names.count > 100)
        #expect(Dictionary(grouping: names, by: \.self).filter { $0.value.count > 1 }.keys.sorted() == [])
        for table in Schema.tables { #expect(Self.functions(table.text) == []) }
    }

    /// No function exists that only tests call.
    @Test func everyFunctionIsCalledByAnotherOneOrByTheStore() throws {
        let calls = Self.calls(
            Schema.verbs.map(\.text).joined() + (try Self.swift(below: Self.repository + "/Sources/MusterStore")))
        for name in Schema.verbs.flatMap({ Self.functions($0.text) }) {
            // The definition itself counts once.
            #expect(calls[name, default: 0] > 1, "nothing calls \(name)")
        }
    }

    /// Installing a function does not check its body; this test checks every body.
    @Test func everyFunctionBodyIsValid() async throws {
        try await StoreFixture.run { fixture in
            for verb in Schema.verbs {
                let script = verb.text.split(separator: "\n", omittingEmptySubsequences: false)
                    .map { $0.hasPrefix("CREATE FUNCTION ") ? "CREATE OR REPLACE\($0.dropFirst(6))" : $0[...] }
                    .joined(separator: "\n")
                try await fixture.pool.withConnection { connection in
                    try await connection.simple("SET check_function_bodies = on; \(script)")
                }
            }
        }
    }

    @Test func everyColumnHasAComment() {
        var columns = 0
        for table in Schema.tables {
            var isInTable = false
            var isExplained = false
            for line in table.text.split(separator: "\n", omittingEmptySubsequences: false) {
                if line.contains("CREATE ") { isInTable = line.hasSuffix("(") && !line.contains("CONSTRAINT") }
                if line.hasPrefix(")") { isInTable = false }
                let isColumn = isInTable && line.hasPrefix("    ") && line.dropFirst(4).first?.isLowercase == true
                if isColumn {
                    columns += 1
                    #expect(isExplained || line.contains("--"), "\(table.name): \(line)")
                }
                isExplained = line.hasPrefix("    --")
            }
        }
        #expect(columns > 200)
    }

    private static func functions(_ text: String) -> [String] {
        text.split(separator: "\n").compactMap { line in
            line.hasPrefix("CREATE FUNCTION ") || line.hasPrefix("CREATE OR REPLACE FUNCTION ")
                ? line.split(separator: "(")[0].split(separator: " ").last.map(String.init) : nil
        }
    }

    /// How often each name occurs before a parenthesis.
    private static func calls(_ text: String) -> [String: Int] {
        var counts: [String: Int] = [:]
        for piece in text.split(separator: "(", omittingEmptySubsequences: false).dropLast() {
            let name = piece.reversed().prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            counts[String(name.reversed()), default: 0] += 1
        }
        return counts
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(path)", encoding: .utf8)
    }

    private static func swift(below directory: String) throws -> String {
        let files = try FileManager.default.subpathsOfDirectory(atPath: directory).filter { $0.hasSuffix(".swift") }
        return try files.map { try String(contentsOfFile: "\(directory)/\($0)", encoding: .utf8) }.joined()
    }
}
