import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/checks`: checks of the database against the sinks (adr/0048).
struct CheckRoutes: Sendable {
    let store: Store

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("checks", use: begin)
        group.get("checks") { _, _ in
            try Answer.json(Page(items: try await store.checks().map { CheckDocument($0) }, next: nil))
        }
        group.get("checks/:id") { _, context in
            try Answer.json(CheckDocument(try await store.check(try Self.id(context))))
        }
        group.delete("checks/:id") { _, context in
            try await store.stopCheck(try Self.id(context))
            return Answer.empty
        }
        group.get("checks/:id/findings", use: findings)
    }

    private func begin(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let wish = try await request.document(CheckRequest.self)
        let sinks = wish.sinks ?? []
        guard sinks.count <= Limits.sinksPerWorker else {
            throw Problem(.invalidRequest, "at most \(Limits.sinksPerWorker) sinks", pointer: "/sinks")
        }
        for (index, sink) in sinks.enumerated() where !NameRule.accepts(sink) {
            throw Problem(.invalidRequest, NameRule.explanation, pointer: "/sinks/\(index)")
        }
        let id = try await store.beginCheck(
            isDeep: wish.deep ?? false, repairs: wish.repair ?? false, sinks: sinks)
        return try Answer.json(CheckDocument(try await store.check(id)), status: .created)
    }

    private func findings(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let after = try request.query("after", in: 0...Int64.max, default: 0)
        let id = try Self.id(context)
        let findings = try await store.findings(of: id, after: after, limit: limit)
        let next = findings.count == Int(limit) ? findings.last.map { String($0.serial) } : nil
        return try Answer.json(Page(items: findings.map { FindingDocument($0) }, next: next))
    }

    private static func id(_ context: some RequestContext) throws(Problem) -> Int64 {
        let text = try context.path("id")
        guard let id = Int64(text), id > 0 else { throw Problem(.notFound, "\"\(text)\" is no check's number") }
        return id
    }
}

extension RunningCheck {
    /// Why another check can't begin, and how to stop this one.
    var refusal: String {
        let options = CheckRequest(deep: isDeep, repair: repairs, sinks: sinks).options
        let name = "\(id)\(options.isEmpty ? "" : " (\(options))"), begun \(DurationNotation.format(age)) ago"
        return "another check is under way: \(name); wait until it has ended, or stop it with muster fsck --stop"
    }
}

extension CheckDocument {
    /// A check as it is shown.
    init(_ record: CheckRecord) {
        let state = record.isStopped ? "stopped" : record.finishedAt == nil ? "running" : "finished"
        self.init(
            id: record.id, deep: record.isDeep, repair: record.repairs, state: state, begunAt: record.begunAt)
        rowsDone = record.areRowsDone
        failure = record.failure
        sinks = record.walks.map {
            Sink(
                name: $0.sink, phase: $0.phase, worker: $0.worker, workersReaching: $0.workersReaching,
                files: $0.files, parts: $0.parts, bytes: $0.bytes, unproven: $0.unproven)
        }
        found = record.found
        repaired = record.repaired
        notes = record.notes
        isCut = record.isCut
        finishedAt = record.finishedAt
    }
}

extension FindingDocument {
    /// A finding as it is shown.
    init(_ record: FindingRecord) {
        let outcome =
            switch record.outcome {
            case .found: "found"
            case .pending: "repairing"
            case .repaired: "repaired"
            }
        self.init(
            number: record.serial, kind: record.kind, outcome: outcome,
            sink: record.sink.isEmpty ? nil : record.sink, subject: record.subject, detail: record.detail)
        group = record.group
        key = record.key
    }
}
