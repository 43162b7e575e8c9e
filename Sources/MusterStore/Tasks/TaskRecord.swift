public import MusterCore
import MusterPostgres

/// Why a task failed, or what last went wrong with it.
public struct TaskFailure: Sendable, Hashable {
    /// The closed kind.
    public let kind: FailureKind
    /// What was seen, in words.
    public let detail: String
    /// When, by the database's clock.
    public let at: Timestamp
    /// The status of the answer, if there was one.
    public let status: Int32?
    /// The URL of the source that it came from, as the task was added with it.
    public let source: String?
    /// The origin's own name for the request.
    public let requestID: String?
}

/// What is tried next, after a failure that is not the end.
public struct TaskRetry: Sendable, Hashable {
    /// The number of the next try, or of the one under way, from 1: progress makes it begin anew (I12).
    public let number: Int32
    /// After how many tries without progress the task fails; `nil` where that is not known beforehand, or it never does.
    public let limit: Int32?
    /// In how many seconds it is due; `nil` when it is under way, or as soon as there is room for it.
    public let inSeconds: Int64?
    /// For how many seconds it is not given up, whatever the number of tries: nobody is reached of an origin that has served lately. `nil` where only
    /// the number counts.
    public let onForSeconds: Int64?
}

/// A task as it is stored, without its headers: nobody but leases sees these.
public struct TaskRecord: Sendable {
    /// Its identity.
    public let id: TaskID
    /// Its key.
    public let key: String
    /// What is observed of it.
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
    /// Digests as computed, or as expected, as a JSON object.
    public let digests: String?
    /// CRC32C of the finished file, where it is known.
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
    /// When the time for it is over.
    public let deadlineAt: Timestamp?
    /// The names of the options by which its sources are asked, where they are its own. Their values may be secrets.
    public let optionNames: [String]
    /// Bytes per second of the leases that are held on it now, since they were granted, but for those under which nothing has
    /// come for 20 seconds.
    public let bytesPerSecond: Int64
    /// The seconds that it takes still at the least, if it is being fetched: its slowest lease needs them, or one of its chunks may
    /// not be leased before. `nil` when nothing is known of that.
    public let secondsAtLeast: Int64?
    /// The seconds until the window of its group closes, if it is being fetched and that ever closes.
    public let secondsInWindow: Int64?
    /// The path of the file that it was made of, if nothing was fetched.
    public let reusedFrom: String?
    /// What is tried next, if its last try failed and nothing has come since.
    public let retry: TaskRetry?

    /// The most tries without progress of one of its chunks.
    private static let tries: SQL = """
        coalesce(greatest(
            (SELECT max(c.attempts) FROM ready_chunks c WHERE c.task_id = t.id AND c.kind <> 'purge'),
            (SELECT max(l.attempts) FROM leases l WHERE l.task_id = t.id AND l.durable = l.resume)), 0)
        """

    /// The seconds until that chunk may be leased; NULL for one that is leased. One that asked to be left alone is tried sooner (row 25).
    private static let secondsToTry: SQL = """
        (SELECT ceil(extract(epoch FROM greatest(c.not_before, least(o.not_before, o.try_at)) - statement_timestamp()))::bigint
            FROM ready_chunks c LEFT JOIN origins o ON o.id = c.origin_id WHERE c.task_id = t.id AND c.kind <> 'purge'
            ORDER BY c.attempts DESC, c.not_before, c.id LIMIT 1)
        """

    /// Whether it goes on after a failure, and nothing has come since. One that nobody works on is in trouble although its failure did
    /// not count: it waits for its turn at an origin that said that there was too much at once.
    static let isInTrouble: SQL = """
        (t.failure_at IS NOT NULL AND t.state IN ('queued', 'finalizing')
            AND (\(tries) > 0 OR \(secondsToTry) > 0 OR NOT EXISTS (SELECT 1 FROM leases l WHERE l.task_id = t.id)))
        """

    /// Whether it has succeeded with what was taken for a page in its place before, and nothing tells whether it is the file: nothing is known of it
    /// beforehand, its origin states nothing that tells one version from another, and what was refused was about as large (range contract, row 27).
    static let isDoubtful: SQL = """
        (t.state = 'succeeded' AND t.expected_size IS NULL AND t.expected_digests IS NULL AND t.stated_digests IS NULL
            AND t.etag IS NULL AND t.last_modified IS NULL AND EXISTS (
                SELECT 1 FROM attempts a WHERE a.task_id = t.id AND coalesce(a.kind = 'httpStatus(200)', false)
                    AND substring(a.detail FROM '^[0-9]+(?= bytes of )')::numeric BETWEEN t.size / 8 AND t.size * 8))
        """

    /// Whether nobody was reached of an origin that has served lately.
    private static let isOutage: SQL = """
        (t.failure_kind IN ('dns', 'network', 'proxy') AND t.failure_status IS NULL AND (
            SELECT has_served_lately(coalesce(s.fresh_origin_id, s.origin_id)) FROM sources s
            WHERE s.task_id = t.id AND s.ordinal = t.failure_source))
        """

    /// For how many seconds such an outage costs nothing; NULL where it is none, or has lasted for longer.
    private static let onForSeconds: SQL = """
        (SELECT ceil(extract(epoch FROM u.moment - statement_timestamp()))::bigint
            FROM sources s, LATERAL (SELECT tried_until(coalesce(s.fresh_origin_id, s.origin_id)) AS moment) AS u
            WHERE s.task_id = t.id AND s.ordinal = t.failure_source AND u.moment > statement_timestamp() AND \(isOutage))
        """

    /// How long ago something came of the origin that refused it last, where that may be a limit that passes (may_pass): then no try is the last one.
    private static let millisecondsSinceServed: SQL = """
        (SELECT floor(extract(epoch FROM statement_timestamp() - served_at(coalesce(s.fresh_origin_id, s.origin_id))) * 1000)::bigint
            FROM sources s WHERE s.task_id = t.id AND s.ordinal = t.failure_source AND s.failures <= 32 AND t.failure_status >= 400)
        """

    /// What is read of the tasks `t`.
    ///
    /// - Parameter policy: says after how many tries without progress a task fails.
    static func columns(_ policy: Store.Policy) -> SQL {
        """
        \(standing),
        CASE WHEN \(isInTrouble) THEN \(tries) + 1 END AS next_try, \(secondsToTry) AS next_try_seconds,
        \(onForSeconds) AS on_for_seconds, \(millisecondsSinceServed) AS ms_since_served,
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
        startedAt = try row.decode("started_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        finishedAt = try row.decode("finished_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        contentType = try row.decode("content_type")
        deadlineAt = try row.decode("deadline_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        optionNames = try row.decode("option_names")
        bytesPerSecond = try row.decode("rate")
        secondsAtLeast = try row.decode("seconds_at_least")
        secondsInWindow = try row.decode("seconds_in_window")
        reusedFrom = try row.decode("reused_from")
        contentCRC = try row.decode("content_crc", as: Int64?.self).flatMap { UInt32(exactly: $0) }
        let seconds = try row.decode("next_try_seconds", as: Int64?.self)
        // What is given up for what was answered is tried again only since that may have been a limit (row 24), nobody knows how often.
        let isGivenUp = failure?.kind.rule == .nextSource
        let limit = isGivenUp ? nil : try row.decode("retry_limit", as: Int32?.self)
        let sinceServed = try row.decode("ms_since_served", as: Int64?.self).map(Duration.milliseconds)
        let longestLimit = FailureKind.longestLimit(status: failure?.status.map { Int($0) })
        let mayPass = sinceServed.map { $0 < longestLimit } ?? false
        retry = try row.decode("next_try", as: Int32?.self).map {
            let limit = mayPass && $0 >= limit ?? 0 ? nil : limit
            return TaskRetry(
                number: min($0, limit ?? $0), limit: limit, inSeconds: seconds.flatMap { $0 > 0 ? $0 : nil },
                onForSeconds: try row.decode("on_for_seconds"))
        }
    }
}
