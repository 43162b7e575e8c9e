public import MusterCore
import MusterPostgres

/// A lease that was granted just now, with all that its work needs.
public struct GrantedLease: Sendable {
    /// Who holds it.
    public let session: SessionID
    /// Its name.
    public let name: LeaseName
    /// The connection that it uses, after the leases that were put there before it (adr/0024); 0 for work that uses none.
    public let lane: Int64
    /// What to do.
    public let kind: LeaseKind
    /// The task.
    public let task: TaskID
    /// The name of its group; empty for a purge, which may outlive that.
    public let group: String
    /// The task's key; empty for a purge.
    public let key: String
    /// The sink.
    public let sink: String
    /// Where the file shall stand; for a purge the finished file that shall go, or nothing.
    public let path: String
    /// The content version.
    public let version: Int32
    /// The chunk's first byte.
    public let start: Int64
    /// The byte after its last, when known.
    public let end: Int64?
    /// Whether the task's chunks are cut.
    public let isPlanned: Bool
    /// How its source is asked.
    public let rung: Rung
    /// Whether a lease on this content version was lost (I8).
    public let isFenced: Bool
    /// What a predecessor left.
    public let resume: DurablePrefix
    /// What is known of the content, with the digests that the origin stated.
    public let representation: Representation
    /// The size that the caller expects.
    public let expectedSize: Int64?
    /// The digests that the caller expects, as a JSON object.
    public let expectedDigests: String?
    /// The media type that the caller expects.
    public let contentType: String?
    /// Which source to fetch from, or to ask the resolver about.
    public let source: Int32
    /// Whether another source than this one taught the content version (range contract, row 30).
    public let isOtherMirror: Bool
    /// What the source has shown of a content version that was given up since (row 27).
    public let earlier: EarlierVersion?
    /// Whether the source has its last try: none of the chunk is left after this one, but for those of its mirrors.
    public let isLastTry: Bool
    /// Whether the first request is for all of the file, since the origin is not known to serve another one (row 22).
    public let asksForAll: Bool
    /// After which failures the worker may look whether a plain GET is served.
    public let looks: Look?
    /// Whether another source is left that has not been tried.
    public let mayMoveOn: Bool
    /// Where the first request for the chunk ends, if it was cut off one that others fetch (adr/0037).
    public let reach: Int64?
    /// The least bytes per second that it has to bring, 0 for any; `nil` with `reach`.
    public let pace: Int64?
    /// How many tries before have ended since the origin was slower than the limits allow, beyond one of each source.
    public let slowTries: Int32
    /// The source's URL as the task was added with it; `nil` for work that has no source.
    public let url: String?
    /// The caller's headers, as a JSON object; may hold secrets.
    public let headers: String?
    /// What the resolver gave in the URL's place (row 21); `nil` for a question to it.
    public let freshURL: String?
    /// The headers that go with that, as a JSON object; may hold secrets.
    public let freshHeaders: String?
    /// How the group's sources are asked, as a JSON object; may hold secrets.
    public let groupOptions: String?
    /// How the task's sources are asked, as a JSON object; may hold secrets.
    public let taskOptions: String?
    /// What the group wants where there is a choice, as a JSON object.
    public let policy: String?
    /// For `resolve`: whom to ask, as a JSON object; may hold secrets.
    public let resolver: String?
    /// The status of the answer that the task failed with last, if there was one.
    public let failureStatus: Int32?
    /// For a finalize lease: every chunk.
    public let chunks: [FinishedChunk]
    /// The origin that the lease counts against; `nil` for work that fetches nothing.
    public let origin: String?
    /// Whether the work draws from some byte budget, of which its session has a share.
    public let isLimited: Bool
    /// For the first lease of a task: a file of the sink that may be what it asks for.
    public let have: HeldFile?
    /// Sessions that are over and have to be revoked in the sink before anything is done under the lease (adr/0017).
    public let revoke: [SessionID]

    /// A row of `granted_leases`. `lastAttempt` is how many failures of each source in a row end a chunk.
    init(_ row: PostgresRow, lastAttempt: Int32) throws {
        session = try row.decode("session_id")
        lane = try row.decode("lane")
        name = LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch"))
        kind = try row.decode("kind")
        task = try row.decode("task_id")
        // A purge may outlive what it is of.
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
        // Sources take turns: each of them has a last try.
        let sources: Int32 = try row.decode("sources")
        let (tries, isUnbounded) = lastAttempt.multipliedReportingOverflow(by: sources)
        isLastTry = !isUnbounded && attempts + sources >= tries
        looks = try Self.looks(row, attempts: attempts, isLastTry: !isUnbounded && attempts + 1 >= tries)
        mayMoveOn = try row.decode("may_move_on")
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

    /// A look for a failure that may pass is made before the chunk is given up, and early where it has little to give up.
    private static func looks(_ row: PostgresRow, attempts: Int32, isLastTry: Bool) throws -> Look? {
        guard try row.decode("may_look") else { return try row.decode("looks_at_endings") ? .ended : nil }
        let isEarly = try row.decode("planned") ? try row.decode("looks_early") : attempts >= 2
        if isEarly || isLastTry {
            return try isToldToWait(row, isLast: isLastTry) ? .atOnce : .failed
        }
        return try row.decode("looks_at_endings") ? .ended : .refused
    }

    /// Whether a task of which nothing is known may be told to wait because it asks for a range. 503 mostly ends by itself.
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
