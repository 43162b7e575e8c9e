public import MusterCore
import MusterPostgres

/// A lease that was just granted, with everything that its work needs.
public struct GrantedLease: Sendable {
    /// The session that holds it.
    public let session: SessionID
    /// Its name.
    public let name: LeaseName
    /// The lane: the connection that it uses, after the leases that were put into the lane before it (adr/0024); 0 for work
    /// without a connection.
    public let lane: Int64
    /// The kind of work.
    public let kind: LeaseKind
    /// The task.
    public let task: TaskID
    /// The name of its group; empty for a purge, which may outlive its group.
    public let group: String
    /// The task's key; empty for a purge.
    public let key: String
    /// The sink.
    public let sink: String
    /// The path of the file; for a purge the path of the finished file to delete, or empty if there is none.
    public let path: String
    /// The content version.
    public let version: Int32
    /// The chunk's first byte.
    public let start: Int64
    /// The end of the chunk (exclusive), if known.
    public let end: Int64?
    /// Whether the task is planned: its file is cut into chunks.
    public let isPlanned: Bool
    /// The rung on which its source is asked.
    public let rung: Rung
    /// Whether a lease on this content version was lost (I8).
    public let isFenced: Bool
    /// The durable prefix that an earlier lease left.
    public let resume: DurablePrefix
    /// What is known of the content, including the digests that the origin stated.
    public let representation: Representation
    /// The size that the caller expects.
    public let expectedSize: Int64?
    /// The digests that the caller expects, as a JSON object.
    public let expectedDigests: String?
    /// The media type that the caller expects.
    public let contentType: String?
    /// The ordinal of the source to fetch from, or to ask the resolver about.
    public let source: Int32
    /// Whether the content version was learned from another source than this one (range contract, row 30).
    public let isOtherMirror: Bool
    /// What a source has shown of an earlier content version that was given up (row 27).
    public let earlier: EarlierVersion?
    /// Whether this is the source's last try of the chunk. After it, only mirrors of the source may have tries left.
    public let isLastTry: Bool
    /// Whether the first request asks for the whole file, since the origin is not known to serve a second request (row 22).
    public let asksForAll: Bool
    /// The failures after which the worker may look whether a plain GET is served; `nil` if it may not.
    public let looks: Look?
    /// Whether another source is left that has not been tried for the chunk.
    public let mayMoveOn: Bool
    /// The number of earlier rounds in which all sources were tried for the chunk; `nil` if no other source may bring it, or a
    /// source is left that has not been tried.
    public let round: Int32?
    /// Where the first request for the chunk ends, if that may be beyond the chunk's end: the chunk was cut off a request
    /// that still runs (adr/0037).
    public let reach: Int64?
    /// The minimum speed of the request that `reach` extends, in bytes per second, 0 for none; `nil` without `reach`.
    public let pace: Int64?
    /// The number of earlier tries that ended because the origin was slower than the limits allow, not counting one for
    /// each source.
    public let slowTries: Int32
    /// The source's URL, as given when the task was added; `nil` for work without a source.
    public let url: String?
    /// The caller's headers, as a JSON object; may hold secrets.
    public let headers: String?
    /// The fresh URL from the resolver, which replaces `url` (row 21); `nil` for a question to the resolver.
    public let freshURL: String?
    /// The headers for `freshURL`, as a JSON object; may hold secrets.
    public let freshHeaders: String?
    /// The group's request options, as a JSON object; may hold secrets.
    public let groupOptions: String?
    /// The task's request options, as a JSON object; may hold secrets.
    public let taskOptions: String?
    /// The group's policy, as a JSON object.
    public let policy: String?
    /// For `resolve`: the resolver, as a JSON object; may hold secrets.
    public let resolver: String?
    /// The HTTP status of the task's last failure, if there was an answer.
    public let failureStatus: Int32?
    /// For a finalize lease: all chunks of the file.
    public let chunks: [FinishedChunk]
    /// The origin that the lease counts against; `nil` for work that fetches nothing.
    public let origin: String?
    /// Whether the work draws from a byte budget. Its session has a share of that budget.
    public let isLimited: Bool
    /// For the first lease of a task: a file in the sink that may be the one asked for.
    public let have: HeldFile?
    /// Ended sessions that must be revoked in the sink before anything is done under the lease (adr/0017).
    public let revoke: [SessionID]
}

extension GrantedLease {
    /// Reads a row of `granted_leases`.
    init(_ row: PostgresRow, policy limits: Store.Policy) throws {
        session = try row.decode("session_id")
        lane = try row.decode("lane")
        name = LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch"))
        kind = try row.decode("kind")
        task = try row.decode("task_id")
        // A purge may outlive its task and its group.
        group = kind == .purge ? "" : try row.decode("group_name")
        key = kind == .purge ? "" : try row.decode("key")
        sink = try row.decode("sink")
        path = try row.decode("path")
        version = try row.decode("version")
        start = try row.decode("first")
        end = try row.decode("last")
        isPlanned = try row.decode("planned")
        rung = try row.decode("rung")
        isFenced = try row.decode("fenced")
        resume = DurablePrefix(offset: try row.decode("resume"), crc: try row.decode("crc"))
        representation = Representation(
            size: try row.decode("size"), etag: try row.decode("etag"), lastModified: try row.decode("last_modified"),
            isDateStrong: try row.decode("date_strong"),
            digests: try StoredJSON.document(
                [String: String].self, ifAny: try row.decode("stated_digests", as: String?.self),
                column: "tasks.stated_digests", of: "task \(task)"))
        expectedSize = try row.decode("expected_size")
        expectedDigests = try row.decode("expected_digests")
        contentType = try row.decode("content_type")
        source = try row.decode("source")
        isOtherMirror = try row.decode("is_other_mirror")
        earlier = try StoredJSON.document(
            EarlierVersion.self, ifAny: try row.decode("earlier", as: String?.self), column: "tasks.earlier",
            of: "task \(task)")
        asksForAll = try row.decode("asks_for_all")
        let attempts: Int32 = try row.decode("attempts")
        // Sources are tried in turn, so each source has its own last try.
        let sources: Int32 = try row.decode("sources")
        let (tries, isUnbounded) = limits.attempts.multipliedReportingOverflow(by: sources)
        // A source that has brought bytes again and again, and never all, keeps the task in the end (`following_source`): this is the last turn of
        // the others before. A source that is given up is not waited for.
        let restarts: Int32 = try row.decode("restarts")
        let isGone: Bool = try row.decode("is_measure_gone")
        let isLastTurn =
            !isPlanned && earlier?.source ?? source != source
            && (isGone || sources > 1 && restarts + 1 >= limits.contentVersions)
        isLastTry = !isUnbounded && attempts + sources >= tries || isLastTurn
        looks = try Self.looks(row, attempts: attempts, isLastTry: !isUnbounded && attempts + 1 >= tries)
        mayMoveOn = try row.decode("may_move_on")
        round = try row.decode("round")
        reach = try row.decode("reach")
        pace = try row.decode("pace")
        slowTries = try row.decode("slow_tries")
        url = try row.decode("url")
        headers = try row.decode("headers")
        freshURL = try row.decode("fresh_url")
        freshHeaders = try row.decode("fresh_headers")
        groupOptions = try row.decode("group_options")
        taskOptions = try row.decode("task_options")
        policy = try row.decode("policy")
        resolver = try row.decode("resolver")
        failureStatus = try row.decode("failure_status")
        chunks = try Self.finishedChunks(row)
        origin = try row.decode("origin")
        isLimited = try row.decode("is_limited")
        have = try StoredJSON.document(
            HeldFile.self, ifAny: try row.decode("have", as: String?.self), column: "held_file", of: "task \(task)")
        revoke = try row.decode("revoke", as: [Int64]?.self).map { $0.map { SessionID($0) } } ?? []
    }

    /// The failures after which the worker may look whether a plain GET is served. After a failure that may pass, the look
    /// is made before the chunk is given up, or earlier if few bytes would be given up.
    private static func looks(_ row: PostgresRow, attempts: Int32, isLastTry: Bool) throws -> Look? {
        guard try row.decode("may_look") else { return try row.decode("looks_at_endings") ? .ended : nil }
        let isEarly = try row.decode("planned") ? try row.decode("looks_early") : attempts >= 2
        if isEarly || isLastTry {
            return try isToldToWait(row, isLast: isLastTry) ? .atOnce : .failed
        }
        return try row.decode("looks_at_endings") ? .ended : .refused
    }

    /// Whether a task of which nothing is known may have been told to wait because it asks for a range. 503 mostly ends by
    /// itself, so it counts at the last try only.
    private static func isToldToWait(_ row: PostgresRow, isLast: Bool) throws -> Bool {
        guard !(try row.decode("planned")) else { return false }
        let status: Int32? = try row.decode("failure_status")
        return status == 429 || status == 503 && isLast
    }

    private static func finishedChunks(_ row: PostgresRow) throws -> [FinishedChunk] {
        guard let starts = try row.decode("done_first", as: [Int64]?.self) else { return [] }
        let ends: [Int64] = try row.decode("done_last")
        let crcs: [UInt32] = try row.decode("done_crc")
        return try starts.indices.map { index in
            guard ends.count == starts.count, crcs.count == starts.count,
                let range = ByteRange(start: starts[index], end: ends[index])
            else {
                throw StoredValueError(
                    column: "done_chunks.last", row: "task \(try row.decode("task_id", as: TaskID.self))",
                    requested: "\(ByteRange.self)", problem: "the range that begins at \(starts[index]) is none")
            }
            return FinishedChunk(range: range, crc: crcs[index])
        }
    }
}
