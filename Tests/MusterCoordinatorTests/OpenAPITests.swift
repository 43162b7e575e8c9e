import FoundationEssentials
import Hummingbird
import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import MusterSystem
import Testing
import Yams

@testable import MusterCoordinator

/// The API's description, `openapi.yaml`, says what the code does.
@Suite("openapi.yaml") struct OpenAPITests {
    private typealias Document = Codable & Sendable

    /// An operation, with the documents that its route reads and writes as JSON.
    private struct Operation {
        let name: String
        let body: (any Document.Type)?
        let answer: (any Document.Type)?

        init(_ name: String, body: (any Document.Type)? = nil, answer: (any Document.Type)? = nil) {
            self.name = name
            self.body = body
            self.answer = answer
        }
    }

    private static var operations: [Operation] {
        [
            Operation("GET /healthz"),
            Operation("GET /metrics"),
            Operation("GET /openapi.yaml"),
            Operation("GET /readyz"),
            Operation("GET /v1/checks", answer: Page<CheckDocument>.self),
            Operation("POST /v1/checks", body: CheckRequest.self, answer: CheckDocument.self),
            Operation("DELETE /v1/checks/{id}"),
            Operation("GET /v1/checks/{id}", answer: CheckDocument.self),
            Operation("GET /v1/checks/{id}/findings", answer: Page<FindingDocument>.self),
            Operation("GET /v1/consumers", answer: Page<ConsumerDocument>.self),
            Operation("DELETE /v1/consumers/{name}"),
            Operation(
                "POST /v1/consumers/{name}/ack", body: AcknowledgementRequest.self, answer: ConsumerDocument.self),
            Operation("GET /v1/consumers/{name}/events", answer: EventsDocument.self),
            Operation("DELETE /v1/consumers/{name}/holder"),
            Operation(
                "PUT /v1/consumers/{name}/holder", body: ConsumerHoldRequest.self, answer: ConsumerHoldDocument.self),
            Operation("GET /v1/deliveries", answer: Page<DeliveryDocument>.self),
            Operation("POST /v1/deliveries/{id}/replay", answer: DeliveryDocument.self),
            Operation("GET /v1/events", answer: EventsDocument.self),
            Operation("GET /v1/groups", answer: Page<GroupDocument>.self),
            Operation("POST /v1/groups", body: GroupRequest.self, answer: GroupDocument.self),
            Operation("DELETE /v1/groups/{name}", answer: RemovalDocument.self),
            Operation("GET /v1/groups/{name}", answer: GroupDocument.self),
            Operation("PATCH /v1/groups/{name}", body: GroupPatch.self, answer: GroupDocument.self),
            Operation("POST /v1/groups/{name}/cancel", body: VerbRequest.self, answer: GroupDocument.self),
            Operation("GET /v1/groups/{name}/explanation", answer: GroupExplanationDocument.self),
            Operation("POST /v1/groups/{name}/pause", body: VerbRequest.self, answer: GroupDocument.self),
            Operation("POST /v1/groups/{name}/remove", body: VerbRequest.self, answer: GroupDocument.self),
            // The next two read a `VerbRequest` as well, and refuse its only field.
            Operation("POST /v1/groups/{name}/reopen", answer: GroupDocument.self),
            Operation("POST /v1/groups/{name}/seal", answer: GroupDocument.self),
            Operation("POST /v1/groups/{name}/resume", body: VerbRequest.self, answer: GroupDocument.self),
            Operation("POST /v1/groups/{name}/retry", body: VerbRequest.self, answer: GroupDocument.self),
            Operation("GET /v1/groups/{name}/tasks", answer: Page<TaskDocument>.self),
            Operation("POST /v1/groups/{name}/tasks", body: [TaskRequest].self, answer: AddedDocument.self),
            Operation("DELETE /v1/groups/{name}/tasks/{key}"),
            Operation("GET /v1/groups/{name}/tasks/{key}", answer: TaskDocument.self),
            Operation("GET /v1/groups/{name}/tasks/{key}/explanation", answer: ExplanationDocument.self),
            Operation("GET /v1/origins", answer: Page<OriginDocument>.self),
            Operation("PATCH /v1/origins/{key}", body: OriginPatch.self, answer: OriginDocument.self),
            Operation("GET /v1/removals", answer: Page<RemovalDocument>.self),
            Operation("GET /v1/removals/{name}", answer: RemovalDocument.self),
            Operation("POST /v1/sessions", body: SessionRequest.self, answer: SessionDocument.self),
            Operation("DELETE /v1/sessions/{id}"),
            Operation(
                "POST /v1/sessions/{id}/sinks", body: SessionSinkRequest.self, answer: SessionSinkDocument.self),
            Operation("POST /v1/sessions/{id}/sync", body: SyncRequest.self, answer: SyncResponse.self),
            Operation("GET /v1/subscriptions", answer: Page<SubscriptionDocument>.self),
            Operation("POST /v1/subscriptions", body: SubscriptionRequest.self, answer: SubscriptionDocument.self),
            Operation("DELETE /v1/subscriptions/{name}"),
            Operation("GET /v1/subscriptions/{name}", answer: SubscriptionDocument.self),
            Operation(
                "PATCH /v1/subscriptions/{name}", body: SubscriptionPatch.self, answer: SubscriptionDocument.self),
            Operation("GET /v1/workers", answer: Page<WorkerDocument>.self),
            Operation("POST /v1/workers/{name}/drain"),
        ]
    }

    private let description: APIDescription

    init() throws {
        description = try APIDescription(yaml: EmbeddedTexts.files["HTTP/openapi.yaml", default: ""])
    }

    @Test func operationsAreTheRoutes() throws {
        let routes = Set(Self.api.routes().routes.map(\.description))
        #expect(Set(description.operations.keys) == routes)
        #expect(Set(Self.operations.map(\.name)) == routes)
    }

    /// An API on a database that is never asked.
    private static var api: API {
        let store = Store(pool: PostgresPool(PostgresConfiguration("")))
        let metrics = CoordinatorMetrics()
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let configuration = CoordinatorConfiguration(database: "")
        let asked = AskedSessions()
        let dispatcher = ClaimDispatcher(
            store: store, signal: Signal(), metrics: metrics, logger: logger, clock: .system, asked: asked)
        let writer = ReportWriter(
            store: store, planner: ChunkPlanner(bounds: Limits.chunk), metrics: metrics, logger: logger, random: { 0 })
        return API(
            store: store,
            syncs: SyncService(
                store: store, dispatcher: dispatcher, reports: ReportBatcher(writer: writer),
                configuration: configuration, metrics: metrics, asked: asked, logger: logger),
            bell: Bell(), clock: .system, configuration: configuration, metrics: metrics, logger: logger)
    }

    /// Each type reads a document that has all fields of its schema, finds a value for each of its own, and writes the same document.
    @Test func schemasHaveTheFieldsOfTheDocuments() throws {
        for operation in Self.operations {
            let described = try #require(description.operations[operation.name], "\(operation.name)")
            let answer = described["responses"]?.fields.first { $0.key.hasPrefix("2") }?.value
            try check(operation.body, of: described["requestBody"], in: "the body of \(operation.name)")
            try check(operation.answer, of: answer, in: "the answer to \(operation.name)")
        }
        try check(Problem.self, of: description["components", "responses", "Problem"], in: "a problem")
        let answer = try #require(description["components", "schemas", "ResolverAnswer"])
        try check(ResolverAnswer.self, against: answer, in: "a resolver's answer")
    }

    /// Checks a type against a described body. There is none if the body is not JSON, or has no fields.
    private func check(_ type: (any Document.Type)?, of body: JSONValue?, in place: String) throws {
        let media = try body.map(description.resolved)?["content"]?.fields ?? [:]
        let schema = (media["application/json"] ?? media["application/problem+json"])?["schema"]
        if let type {
            let schema = try #require(schema, "\(place) is not described")
            try check(type, against: schema, in: place)
        } else if let schema {
            let sample = try description.sample(of: schema)
            #expect(sample == .object([:]), "\(place) is described, but the table of operations has no type for it")
        }
    }

    private func check<Value: Document>(_ type: Value.Type, against schema: JSONValue, in place: String) throws {
        let sample = try description.sample(of: schema)
        let value: Value
        do {
            value = try JSONDecoder().decode(type, from: JSONEncoder().encode(sample))
        } catch {
            Issue.record("\(place): \(type) refuses a document with the fields of the schema: \(error)")
            return
        }
        #expect(unset(value) == [], "\(place): the schema lacks these fields of \(type)")
        let written = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value))
        #expect(differences(sample, written) == [], "\(place): \(type) lacks these fields of the schema")
    }

    @Test func kindsOfFailures() throws {
        let pattern = try #require(description["components", "schemas", "FailureKind", "pattern"]?.text)
        let list = try #require(pattern.wholeMatch(of: /\^\((.*)\)\$/)?.1)
        let names = list.split(separator: "|").map { $0.prefix { $0 != "\\" } }.map(String.init)
        #expect(names == FailureKind.Name.allCases.map(\.rawValue))
    }

    @Test func closedLists() throws {
        let lists: [(place: [String], cases: [String])] = [
            (["Attempt", "properties", "outcome", "enum"], AttemptOutcome.allCases.map(\.rawValue)),
            (["CheckOrder", "properties", "kind", "enum"], CheckOrder.Kind.allCases.map(\.rawValue)),
            (["DeadlineAction", "enum"], DeadlineAction.allCases.map(\.rawValue)),
            (["DeliveryState", "enum"], DeliveryState.allCases.map(\.rawValue)),
            (["Event", "properties", "type", "examples"], EventType.allCases.map(\.rawValue)),
            (["FindingKind", "enum"], FindingKind.allCases.map(\.rawValue)),
            (["GroupState", "enum"], GroupState.allCases.map(\.rawValue)),
            (["Lease", "properties", "kind", "enum"], LeaseKind.allCases.map(\.rawValue)),
            (["Lease", "properties", "looks", "enum"], Look.allCases.map(\.rawValue)),
            (["PrerequisiteCondition", "enum"], PrerequisiteCondition.allCases.map(\.rawValue)),
            (["ProblemCode", "enum"], Problem.Code.allCases.map(\.rawValue)),
            (["Report", "properties", "kind", "enum"], Report.Kind.allCases.map(\.rawValue)),
            (["Rung", "enum"], Rung.allCases.map(\.rawValue)),
            (["TaskState", "enum"], TaskState.allCases.map(\.rawValue)),
            (["WaitReason", "enum"], ExplanationDocument.Reason.allCases.map(\.rawValue)),
        ]
        for (place, cases) in lists {
            let list = place.reduce(description["components", "schemas"]) { $0?[$1] }
            #expect(list?.items.compactMap(\.text) == cases, "\(place)")
        }
    }
}

/// A description in OpenAPI 3.1.
private struct APIDescription {
    private let root: JSONValue
    /// The operations by their method and path, such as `GET /v1/groups`.
    let operations: [String: JSONValue]

    init(yaml: String) throws {
        root = JSONValue(try #require(try Yams.compose(yaml: yaml)))
        var operations: [String: JSONValue] = [:]
        for (path, item) in root["paths"]?.fields ?? [:] {
            for (method, operation) in item.fields where method != "parameters" {
                operations["\(method.uppercased()) \(path)"] = operation
            }
        }
        self.operations = operations
    }

    subscript(place: String...) -> JSONValue? { value(at: place) }

    private func value(at place: [String]) -> JSONValue? { place.reduce(root as JSONValue?) { $0?[$1] } }

    /// What a value stands for, if it is a reference such as `#/components/schemas/Name`.
    func resolved(_ value: JSONValue) throws -> JSONValue {
        guard let reference = value["$ref"]?.text else { return value }
        let target = self.value(at: reference.split(separator: "/").dropFirst().map(String.init))
        return try resolved(try #require(target, "\(reference) leads nowhere"))
    }

    /// A document with every field of a schema.
    func sample(of schema: JSONValue) throws -> JSONValue {
        let schema = try resolved(schema)
        if let first = schema["oneOf"]?.items.first { return try sample(of: first) }
        guard let type = schema["type"] else { return .string("anything") }
        switch type.text ?? type.items.first?.text {
        case "object":
            if let fields = schema["properties"]?.fields { return .object(try fields.mapValues(sample(of:))) }
            guard let value = schema["additionalProperties"], !value.fields.isEmpty else { return .object([:]) }
            return .object(["x": try sample(of: value)])
        case "array": return .array([try sample(of: try #require(schema["items"]))])
        case "boolean": return .bool(true)
        case "integer": return schema["minimum"] ?? .integer(1)
        default:
            if schema["format"]?.text == "date-time" { return .string("2026-03-01T12:00:00.000Z") }
            return schema["const"] ?? schema["enum"]?.items.first ?? schema["examples"]?.items.first ?? .string("x")
        }
    }
}

/// The places in a value that have none. A value that was read from a document with every field of its schema has none only where the
/// schema lacks a field.
private func unset(_ value: Any, at place: String = "") -> [String] {
    let mirror = Mirror(reflecting: value)
    let isPatched = mirror.displayStyle == .enum && String(describing: value) == "keep"
    if isPatched || mirror.displayStyle == .optional && mirror.children.isEmpty { return [place] }
    return mirror.children.flatMap { unset($0.value, at: "\(place)/\($0.label ?? "")") }
}

/// The places at which two documents differ.
private func differences(_ left: JSONValue?, _ right: JSONValue?, at place: String = "") -> [String] {
    switch (left, right) {
    case (.object(let left), .object(let right)):
        Set(left.keys).union(right.keys).flatMap { differences(left[$0], right[$0], at: "\(place)/\($0)") }
    case (.array(let left), .array(let right)) where left.count == right.count:
        zip(left, right).flatMap { differences($0, $1, at: "\(place)/") }
    default: left == right ? [] : [place]
    }
}

extension JSONValue {
    /// The content of a YAML document. Of its plain scalars only whole numbers are read as what they are.
    fileprivate init(_ node: Node) {
        switch node {
        case .mapping(let mapping):
            self = .object(
                Dictionary(mapping.map { ($0.key.scalar?.string ?? "", JSONValue($0.value)) }) { _, last in last })
        case .sequence(let nodes): self = .array(nodes.map { JSONValue($0) })
        case .scalar(let scalar):
            let number = scalar.style == .plain ? Int64(scalar.string) : nil
            self = number.map { .integer($0) } ?? .string(scalar.string)
        case .alias: self = .null
        }
    }

    fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
    fileprivate var items: [JSONValue] { if case .array(let items) = self { items } else { [] } }
    fileprivate var fields: [String: JSONValue] { if case .object(let fields) = self { fields } else { [:] } }
    fileprivate subscript(name: String) -> JSONValue? { fields[name] }
}
