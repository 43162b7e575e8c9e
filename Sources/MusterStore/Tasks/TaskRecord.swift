public import MusterCore
import MusterPostgres

/// A task as it is stored, without its headers: only leases carry these.
public struct TaskRecord: Sendable {
    /// Its identity.
    public let id: TaskID
    /// Its key.
    public let key: String
    /// Its observed state.
    public let state: TaskState
    /// Its sources.
    public let urls: [String]
    /// Its destination.
    public let path: String
    /// The size that the caller expects.
    public let expectedSize: Int64?
    /// Priority within the group.
    public let priority: Int32
    /// The caller's data, as JSON.
    public let metadata: String?
    /// Durable bytes.
    public let bytesDone: Int64
    /// The known size.
    public let size: Int64?
    /// The content version.
    public let version: Int32
    /// The entity tag that the origin stated.
    public let etag: String?
    /// The Last-Modified that the origin stated.
    public let lastModified: String?
    /// Where the content came from, after redirects.
    public let effectiveURL: String?
    /// The computed digests, or the expected ones while there are none, as a JSON object.
    public let digests: String?
    /// CRC32C of the finished file, if known.
    public let contentCRC: UInt32?
    /// Failures so far.
    public let attempts: Int32
    /// The last failure, unless it succeeded.
    public let failure: TaskFailure?
    /// When it was added.
    public let createdAt: Timestamp
    /// When it was first leased.
    public let startedAt: Timestamp?
    /// When it became terminal.
    public let finishedAt: Timestamp?
    /// The media type that the content must have.
    public let contentType: String?
    /// Its deadline.
    public let deadlineAt: Timestamp?
    /// The names of the task's own request options. Their values may be secrets.
    public let optionNames: [String]
    /// The recent speed of its present leases together, in bytes per second, and no more than its group may have now.
    /// Leases under which nothing has come for ten seconds, and those of silent workers, don't count.
    public let bytesPerSecond: Int64
    /// The minimum number of seconds that it still takes, if it is being fetched: its slowest lease needs them, or one of
    /// its chunks can't be leased before. `nil` if unknown.
    public let secondsAtLeast: Int64?
    /// Seconds until the window of its group closes, if it is being fetched; `nil` if the window never closes.
    public let secondsInWindow: Int64?
    /// The path of the file that it was copied from, if nothing was fetched.
    public let reusedFrom: String?
    /// The next try, if the last try failed and nothing has come since.
    public let retry: TaskRetry?

    /// The highest number of tries without progress of any of its chunks.
    private static let tries: SQL = """
        coalesce(greatest(
            (SELECT max(c.attempts) FROM ready_chunks c WHERE c.task_id = t.id AND c.kind <> 'purge'),
            (SELECT max(l.attempts) FROM leases l WHERE l.task_id = t.id AND l.durable = l.resume)), 0)
        """

    /// Seconds until the chunk with the most tries may be leased; NULL if it is leased. A chunk of an origin that asked for
    /// a pause is tried sooner (row 25).
    private static let secondsToTry: SQL = """
        (SELECT ceil(extract(epoch FROM greatest(c.not_before, least(o.not_before, o.try_at)) - statement_timestamp()))::bigint
            FROM ready_chunks c LEFT JOIN origins o ON o.id = c.origin_id WHERE c.task_id = t.id AND c.kind <> 'purge'
            ORDER BY c.attempts DESC, c.not_before, c.id LIMIT 1)
        """

    /// Whether the task goes on after a failure and nothing has come since. A task without leases is in trouble even if its
    /// failure did not count: it waits for its turn at an origin that refused for too much at once.
    static let isInTrouble: SQL = """
        (t.failure_at IS NOT NULL AND t.state IN ('queued', 'finalizing')
            AND (\(tries) > 0 OR \(secondsToTry) > 0 OR NOT EXISTS (SELECT 1 FROM leases l WHERE l.task_id = t.id)))
        """

    /// Whether the task has succeeded with content like that which an earlier try refused as a page, and nothing tells
    /// whether it is the file: nothing is known of the file beforehand, its origin states nothing that tells versions apart,
    /// and the refused content was about as large, within a factor of 8 (range contract, row 27).
    static let isDoubtful: SQL = """
        (t.state = 'succeeded' AND t.expected_size IS NULL AND t.expected_digests IS NULL AND t.stated_digests IS NULL
            AND t.etag IS NULL AND t.last_modified IS NULL AND EXISTS (
                SELECT 1 FROM attempts a WHERE a.task_id = t.id AND coalesce(a.kind = 'httpStatus(200)', false)
                    AND substring(a.detail FROM '^[0-9]+(?= bytes of )')::numeric BETWEEN t.size / 8 AND t.size * 8))
        """

    /// Whether the last failure is an outage: no connection was made to an origin that has served lately.
    private static let isOutage: SQL = """
        (t.failure_kind IN ('dns', 'network', 'proxy') AND t.failure_status IS NULL AND (
            SELECT has_served_lately(coalesce(s.fresh_origin_id, s.origin_id)) FROM sources s
            WHERE s.task_id = t.id AND s.ordinal = t.failure_source))
        """

    /// Seconds for which an outage does not yet fail the task, whatever the number of tries (`tried_until`); NULL if there is
    /// no outage, or if it has lasted longer.
    private static let onForSeconds: SQL = """
        (SELECT ceil(extract(epoch FROM u.moment - statement_timestamp()))::bigint
            FROM sources s, LATERAL (SELECT tried_until(coalesce(s.fresh_origin_id, s.origin_id)) AS moment) AS u
            WHERE s.task_id = t.id AND s.ordinal = t.failure_source AND u.moment > statement_timestamp() AND \(isOutage))
        """

    /// Milliseconds since something last came from the origin of the last refusal, if that may be a limit that passes
    /// (`may_pass`): in that case no try is the last one. NULL where so few tries are wanted that a limit is hardly waited for.
    private static func millisecondsSinceServed(_ policy: Store.Policy) -> SQL {
        """
        (SELECT floor(extract(epoch FROM statement_timestamp() - served_at(coalesce(s.fresh_origin_id, s.origin_id))) * 1000)::bigint
            FROM sources s WHERE s.task_id = t.id AND s.ordinal = t.failure_source AND s.failures <= 32 AND t.failure_status >= 400
                AND \(policy.attempts) > 3)
        """
    }

    /// The columns that are read of the tasks `t`.
    ///
    /// - Parameter policy: the limits on tries without progress.
    static func columns(_ policy: Store.Policy) -> SQL {
        """
        \(standing),
        CASE WHEN \(isInTrouble) THEN \(tries) + 1 END AS next_try, \(secondsToTry) AS next_try_seconds,
        \(onForSeconds) AS on_for_seconds, \(millisecondsSinceServed(policy)) AS ms_since_served,
        CASE
            WHEN t.failure_kind = 'noSpace' AND \(policy.waitsForRoom) THEN NULL
            -- As is_hopeless has it.
            WHEN t.failure_kind = 'noSpace' AND t.failure_detail ~ 'the whole file system has' THEN 3
            WHEN \(onForSeconds) > 0 THEN NULL
            WHEN \(isOutage) THEN for_each(\(policy.attempts), live_sources(t))
            WHEN t.failure_kind IN ('dns', 'proxy', 'timeout', 'noPermission')
                THEN for_each(\(policy.attempts(isToldSoon: true)), live_sources(t))
            -- Refused, which is given up as early, or cut on its way: which of both is not stored. A body may break off at the same byte
            -- each time (is_hopeless).
            WHEN t.failure_kind = 'network' AND (\(policy.attempts(isToldSoon: true) < policy.attempts)
                OR t.failure_status BETWEEN 200 AND 299) THEN NULL
            ELSE for_each(\(policy.attempts), live_sources(t))
        END AS retry_limit
        """
    }

    private static let standing: SQL = """
        t.id, t.key, shown_state(t) AS state, t.path, t.expected_size, t.priority, t.metadata::text AS metadata, t.size, t.version, t.etag,
        t.last_modified, t.effective_url, coalesce(t.digests, t.expected_digests)::text AS digests,
        -- While it is tried again these are the tries of now: its next one has the number after them.
        CASE WHEN \(isInTrouble) THEN \(tries) ELSE t.attempts END AS attempts,
        t.failure_kind, t.failure_detail, t.failure_at, t.failure_status, t.failure_request,
        (SELECT s.url FROM sources s WHERE s.task_id = t.id AND s.ordinal = t.failure_source) AS failure_url,
        t.created_at, t.started_at, t.finished_at, CASE WHEN t.state = 'succeeded' THEN t.content_crc END AS content_crc,
        ARRAY (SELECT s.url FROM sources s WHERE s.task_id = t.id ORDER BY s.ordinal) AS urls,
        (t.bytes_done
            + coalesce((SELECT sum(l.durable - l.first) FROM leases l WHERE l.task_id = t.id AND l.kind = 'fetch'), 0)
            + coalesce((SELECT sum(c.resume - c.first) FROM ready_chunks c WHERE c.task_id = t.id AND c.kind = 'fetch'), 0)
        )::bigint AS done,
        t.content_type, t.deadline_at, t.reused_from,
        ARRAY (SELECT name FROM jsonb_object_keys(coalesce(t.fetch_options, '{}')) AS name ORDER BY name) AS option_names,
        -- No more than its group may have: what came faster is past.
        least(coalesce((SELECT sum(bytes_per_second(l.rate_bytes, l.progress_at, l.granted_at))
            FROM leases l JOIN sessions s ON s.id = l.session_id WHERE l.task_id = t.id AND l.kind = 'fetch'
                AND NOT \(SilentWorker.isSilent)), 0), (SELECT group_rate(g) FROM groups g WHERE g.id = t.group_id))::bigint AS rate,
        CASE WHEN shown_state(t) = 'active' THEN greatest(
            (SELECT max(\(LeasedBytes.seconds)) FROM leases l WHERE l.task_id = t.id AND l.kind = 'fetch'),
            (SELECT ceil(extract(epoch FROM max(greatest(c.not_before, CASE WHEN c.status = 'ready' THEN least(o.not_before, o.try_at) END))
                    - statement_timestamp()))::bigint
                FROM ready_chunks c LEFT JOIN origins o ON o.id = c.origin_id WHERE c.task_id = t.id AND c.kind = 'fetch')
        ) END AS seconds_at_least,
        CASE WHEN shown_state(t) = 'active' THEN (
            SELECT extract(epoch FROM next_time(g.window_to, g.window_zone) - statement_timestamp())::bigint FROM groups g
            WHERE g.id = t.group_id AND g.window_from <> g.window_to AND is_open(g.window_from, g.window_to, g.window_zone)
        ) END AS seconds_in_window
        """

    init(_ row: PostgresRow) throws {
        id = try row.decode("id")
        key = try row.decode("key")
        state = try row.decode("state")
        urls = try row.decode("urls")
        path = try row.decode("path")
        expectedSize = try row.decode("expected_size")
        priority = try row.decode("priority")
        metadata = try row.decode("metadata")
        bytesDone = try row.decode("done")
        size = try row.decode("size")
        version = try row.decode("version")
        etag = try row.decode("etag")
        lastModified = try row.decode("last_modified")
        effectiveURL = try row.decode("effective_url")
        digests = try row.decode("digests")
        attempts = try row.decode("attempts")
        failure = try row.decode("failure_kind", as: FailureKind?.self).map { kind in
            TaskFailure(
                kind: kind, detail: try row.decode("failure_detail"), at: Timestamp(try row.decode("failure_at")),
                status: try row.decode("failure_status"), source: try row.decode("failure_url"),
                requestID: try row.decode("failure_request"))
        }
        createdAt = Timestamp(try row.decode("created_at"))
        startedAt = try row.moment("started_at")
        finishedAt = try row.moment("finished_at")
        contentType = try row.decode("content_type")
        deadlineAt = try row.moment("deadline_at")
        optionNames = try row.decode("option_names")
        bytesPerSecond = try row.decode("rate")
        secondsAtLeast = try row.decode("seconds_at_least")
        secondsInWindow = try row.decode("seconds_in_window")
        reusedFrom = try row.decode("reused_from")
        contentCRC = try row.decode("content_crc", as: Int64?.self).flatMap { UInt32(exactly: $0) }
        let seconds = try row.decode("next_try_seconds", as: Int64?.self)
        // A refusal whose kind gives up the source is tried again only because it may be a limit (row 24). The number of
        // such tries is not known.
        let isGivenUp = failure?.kind.rule == .nextSource
        let limit = isGivenUp ? nil : try row.decode("retry_limit", as: Int32?.self)
        let sinceServed = try row.decode("ms_since_served", as: Int64?.self).map(Duration.milliseconds)
        let longestLimit = FailureKind.longestLimit(status: failure?.status)
        let mayPass = sinceServed.map { $0 < longestLimit } ?? false
        retry = try row.decode("next_try", as: Int32?.self).map { number in
            // The last try is made again and again as long as the origin may have a limit that passes.
            // A failure that gives up the source is told of as soon as another answer shows that it is meant, so that no time is named.
            let isRepeated = mayPass && limit.map { last in number >= last } ?? false
            let rest = isRepeated ? sinceServed.map { (longestLimit - $0).components.seconds } : nil
            return TaskRetry(
                number: min(number, limit ?? number), limit: limit, inSeconds: seconds.flatMap { $0 > 0 ? $0 : nil },
                onForSeconds: try row.decode("on_for_seconds") ?? rest)
        }
    }
}
