import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// The closed lists in the API's description have the same values as the enums.
@Suite("Lists in openapi.yaml") struct OpenAPIListTests {
    private static let text = String(decoding: PackageResources.openapi_yaml, as: UTF8.self)

    /// The lines of a schema, up to the next one.
    private static func schema(_ name: String) throws -> Substring {
        let start = try #require(text.firstRange(of: "\n    \(name):\n"))
        let rest = text[start.upperBound...]
        let end = rest.firstMatch(of: /\n    [A-Za-z]+:\n/)?.range.lowerBound ?? rest.endIndex
        return rest[..<end]
    }

    @Test func kindsOfFailures() throws {
        let pattern = try #require(try Self.schema("FailureKind").firstMatch(of: /pattern: '\^\((.*)\)\$'/)?.1)
        let names = pattern.split(separator: "|").map { $0.prefix { $0 != "\\" } }.map(String.init)
        #expect(names == FailureKind.Name.allCases.map(\.rawValue))
    }

    @Test func typesOfEvents() throws {
        let types = try Self.schema("Event").matches(of: /- (dev\.muster\.[a-z.0-9]+)\n/).map { String($0.1) }
        #expect(types == EventType.allCases.map(\.rawValue))
    }

    @Test(
        arguments: [
            ("GroupState", GroupState.allCases.map(\.rawValue)), ("TaskState", TaskState.allCases.map(\.rawValue)),
            ("Attempt", AttemptOutcome.allCases.map(\.rawValue)),
        ])
    func enumsOfSchemas(schema: String, cases: [String]) throws {
        let list = try #require(try Self.schema(schema).firstMatch(of: /enum: \[([A-Za-z, ]+)\]/)?.1)
        #expect(list.split(separator: ", ").map(String.init) == cases)
    }
}
