import FoundationEssentials
import MusterPostgres
import MusterStore
import Testing

/// The rows of the tables, with the columns that tests look at.
extension StoreFixture {
    /// All tasks, in the order in which they were added.
    func tasks() async throws -> [TaskRow] { try await rows("SELECT to_jsonb(t) FROM tasks t ORDER BY id") }

    /// All sources of all tasks, in their order.
    func sources() async throws -> [SourceRow] {
        try await rows("SELECT to_jsonb(s) FROM sources s ORDER BY task_id, ordinal")
    }

    /// All groups, in the order in which they were made.
    func groups() async throws -> [GroupRow] { try await rows("SELECT to_jsonb(g) FROM groups g ORDER BY id") }

    /// All origins, by key. `rest` is how long they still rest, below zero if no more; `rest_after_refusal` counts from their last
    /// refusal, and `silence_before_refusal` is how long they had served nothing then.
    func origins() async throws -> [OriginRow] {
        try await rows(
            """
            SELECT to_jsonb(o) || jsonb_build_object(
                'rest', extract(epoch FROM not_before - statement_timestamp()),
                'rest_after_refusal', extract(epoch FROM not_before - refused_at),
                'silence_before_refusal', extract(epoch FROM refused_at - rate_at))
            FROM origins o ORDER BY key
            """)
    }

    /// All leases, by chunk.
    func leases() async throws -> [LeaseRow] { try await rows("SELECT to_jsonb(l) FROM leases l ORDER BY chunk_id") }

    /// All chunks without a lease, by first byte, with their tasks and origins.
    func readyChunks() async throws -> [ChunkRow] {
        try await rows(
            """
            SELECT to_jsonb(c) || jsonb_build_object(
                'wait', CASE WHEN isfinite(not_before) THEN extract(epoch FROM not_before - statement_timestamp()) END,
                'key', (SELECT key FROM tasks WHERE id = c.task_id), 'origin', (SELECT key FROM origins WHERE id = c.origin_id))
            FROM ready_chunks c ORDER BY first, id
            """)
    }

    /// All recorded failures, in their order.
    func attempts() async throws -> [AttemptRow] {
        try await rows("SELECT to_jsonb(a) FROM attempts a ORDER BY serial")
    }

    private func rows<Row: Decodable>(_ sql: SQL) async throws -> [Row] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try await values(sql, as: PostgresJSON.self).map {
            try decoder.decode(Row.self, from: Data($0.utf8))
        }
    }

    /// The bytes of all chunks that are done, in their order.
    func doneChunks() async throws -> [Range<Int64>] {
        try await pool.query("SELECT first, last FROM done_chunks ORDER BY first").map {
            try $0.decode("first", as: Int64.self)..<$0.decode("last", as: Int64.self)
        }
    }

    /// The sessions that may still be at work without a lease, or only those that may use a lane; once for each lease that ended.
    func holdouts(inLanes: Bool = false) async throws -> [Int64] {
        try await values("SELECT session_id FROM holdouts WHERE lane > 0 OR NOT \(inLanes) ORDER BY session_id")
    }

    /// The sum of all ready chunks' failures without progress.
    func tries() async throws -> Int32 { try await readyChunks().reduce(0) { $0 + $1.attempts } }

    /// How long chunks, or those of one kind, still wait, in seconds.
    func waits(of kind: String? = nil) async throws -> [Double] {
        try await readyChunks().filter { $0.status == "waiting" && $0.kind == kind ?? $0.kind }.compactMap(\.wait)
    }

    /// What the group was charged for, in bytes by its weight.
    func served(_ group: String) async throws -> Int64 {
        try #require(try await groups().first { $0.name == group }).served
    }

    /// What origins served and has not been added up: bytes, and leases.
    func originFlow() async throws -> [Int64] {
        try await value("SELECT ARRAY[sum(bytes), sum(answers)]::bigint[] FROM origin_flow")
    }

    /// What the events of a type (`task.failed`) tell at a path of their data, in their order.
    func told(_ type: String, _ path: String...) async throws -> [String?] {
        try await logEvents()
        return try await values(
            "SELECT data #>> \(path) FROM events WHERE type = 'dev.muster.' || \(type) || '.v1' ORDER BY position")
    }
}

struct TaskRow: Decodable {
    let id: Int64
    let key: String
    let version: Int32
    let rung: String
    let fenced: Bool
    let dateStrong: Bool
    let statedDigests: [String: String]?
    let source: Int32?
    let mixes: Bool
    let chunksLeft: Int32
    let attempts: Int32
    let failureKind: String?
    let failureStatus: Int32?
    let failureSource: Int32?
    let failureRequest: String?
}

struct SourceRow: Decodable {
    let dead: Bool
    let failures: Int32
    let mismatches: Int32
    let freshUrl: String?
    let freshHeaders: [String: String]?
    let bytes: Int64
}

struct GroupRow: Decodable {
    let name: String
    let desired: String
    let queued: Int64
    let bytesDone: Int64
    let served: Int64
    let sharesAt: Int32?
}

struct OriginRow: Decodable {
    let learned: Int32?
    let servesAgain: Bool
    let limitsWith: [Int32]
    let tryAt: String?
    let rateBytes: Double
    let rest: Double?
    let restAfterRefusal: Double?
    let silenceBeforeRefusal: Double
}

struct LeaseRow: Decodable {
    let chunkId: Int64
    let kind: String
    let last: Int64?
    let attempts: Int32
    let deaths: Int32
    let removePath: String?
    let charged: Int64
    let shrinkAsks: Int32
    let tile: Int64?
}

struct ChunkRow: Decodable {
    let key: String?
    let origin: String?
    let kind: String
    let first: Int64
    let last: Int64?
    let resume: Int64
    let status: String
    let attempts: Int32
    let deaths: Int32
    let removePath: String?
    let wait: Double?
}

struct AttemptRow: Decodable {
    let taskId: Int64
    let worker: String?
    let source: Int32?
    let kind: String
    let status: Int32?
    let detail: String
    let address: String?
    let byte: Int64
    let outcome: String
}
