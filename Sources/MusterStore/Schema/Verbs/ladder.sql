-- What a source can't do, and how it is asked then (range contract, "The ladder").

-- Whether the source will fail like this for ever; decided at the third time. Either the file is larger than the whole file system of the sink,
-- unless the user waits for room without a limit; or the connection always ends without progress. Doubtful content has all of its tries, and is
-- believed at the last one.
CREATE FUNCTION is_hopeless(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN l.attempts >= 2 AND (
        f.kind = 'noSpace' AND f.max_attempts < 2147483647 AND f.detail ~ 'the whole file system has'
        OR f.kind = 'network' AND f.detail !~ 'states no other validator' AND l.kind = 'fetch' AND (l.durable < l.resume + little(l, t) OR NOT goes_on(t)) AND always_ends(l, t, f));
END
$$;

-- Whether all tries of a chunk, over at least ten seconds, have ended like this one: before an answer, in the body after the same number of bytes
-- each time, or, for a plain GET, at the same byte. A shorter time may be an outage. So may a longer silence of an origin that has served lately, and
-- bodies that end at once while other chunks have failed as well and the origin serves nothing.
CREATE FUNCTION always_ends(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT (f.is_unanswered AND NOT has_served_lately(l.origin_id) OR coalesce(f.status BETWEEN 200 AND 299, false)) THEN RETURN false; END IF;
    IF f.status IS NOT NULL AND is_in_outage(l) AND EXISTS (
        SELECT 1 FROM ready_chunks c WHERE c.origin_id = l.origin_id AND c.id <> l.chunk_id AND c.kind = 'fetch' AND c.attempts > 0
        UNION ALL SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND h.chunk_id <> l.chunk_id AND h.kind = 'fetch' AND h.attempts > 0)
    THEN RETURN false; END IF;
    RETURN (
        SELECT bool_and(a.kind = f.kind AND a.status IS NOT DISTINCT FROM f.status AND a.byte < l.durable + little(l, t)
                -- A resumed request may be cut within the bytes that are there already: the detail tells where.
                AND (t.rung <> 'whole' OR a.byte = l.durable AND a.detail = f.detail))
            -- The same number of bytes each time: a body that is cut at varying places may come with the next try.
            AND (t.rung = 'whole' OR count(DISTINCT a.more) <= 1 AND coalesce(min(a.more) = l.durable - max(a.byte), true))
            AND min(a.at) <= statement_timestamp() - interval '10 s'
        FROM (
            SELECT n.*, n.byte - lag(n.byte) OVER (ORDER BY n.serial) AS more
            FROM (
                -- The attempts on the chunk, including those that had brought more bytes, which could not be used.
                SELECT * FROM attempts WHERE task_id = t.id AND byte >= l.first AND (l.last IS NULL OR byte <= l.last) ORDER BY serial DESC LIMIT l.attempts
            ) AS n
        ) AS a);
END
$$;

-- Whether the bytes of a task are kept when it is asked for again: it comes in parts, or they are the beginning of a plain GET of content that has a
-- size, and a validator or a digest that identifies it. `FetchPlan.goesOn` has the same rule.
CREATE FUNCTION goes_on(t tasks) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT t.rung <> 'whole' OR t.size IS NOT NULL AND (
        coalesce(t.etag LIKE '"%"', false) OR t.date_strong AND t.last_modified IS NOT NULL
        OR t.expected_digests IS NOT NULL OR t.stated_digests IS NOT NULL)
$$;

-- Whether a source is known not to have the content of the task's version.
CREATE FUNCTION differs(t tasks, p_source integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT s.differs_in IS NOT DISTINCT FROM t.version FROM sources s WHERE s.task_id = t.id AND s.ordinal = p_source);
END
$$;

-- Whether a task has a live source besides this one; with p_version, a source that may serve this content version.
CREATE FUNCTION has_another_source(p_task bigint, p_source integer, p_version integer DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM sources s
        WHERE s.task_id = p_task AND NOT s.dead AND s.ordinal <> p_source
            AND (p_version IS NULL OR s.differs_in IS DISTINCT FROM p_version));
END
$$;

-- Whether it is time to look, since bodies of a chunk's parts have ended early: at the second ending, the fourth, the eighth and so on. A line on
-- which every body breaks off still brings the file, and is not asked for more each time. Another source is the better remedy, unless its parts have
-- ended early too.
CREATE FUNCTION endings_want_a_look(p_chunk bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    l leases;
    v_before bigint;
BEGIN
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk;
    IF EXISTS (
        SELECT 1 FROM sources s WHERE s.task_id = l.task_id AND NOT s.dead AND s.ordinal <> l.source AND NOT EXISTS (
            SELECT 1 FROM attempts a
            WHERE a.task_id = l.task_id AND a.source = s.ordinal AND a.kind IN ('network', 'tooSlow') AND a.status BETWEEN 200 AND 299))
    THEN
        RETURN false;
    END IF;
    SELECT count(*) INTO v_before FROM attempts a
    WHERE a.task_id = l.task_id AND a.kind IN ('network', 'tooSlow') AND a.status BETWEEN 200 AND 299
        AND a.byte >= l.first AND (l.last IS NULL OR a.byte < l.last);
    RETURN v_before > 0 AND (v_before & (v_before + 1)) = 0;
END
$$;

-- Bytes that an origin may send before it stops, though it serves nothing: they were in flight.
CREATE FUNCTION hardly_anything() RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT 65536 $$;

-- Fewer bytes than this count as none: 64 KiB if the origin stopped, otherwise 1 KiB or a sixteenth of the rest, whichever is less. A chunk that
-- comes in smaller pieces would take hours, since each piece costs a request and a pause.
CREATE FUNCTION little(l leases, t tasks) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN t.failure_kind = 'tooSlow' THEN hardly_anything() ELSE greatest(1, least(1024, (l.last - l.resume) / 16)) END
$$;

-- Whether hardly anything has come of a leased chunk, and of its file nothing but the beginning. Fewer bytes than p_little count as none.
CREATE FUNCTION has_little(p_chunk bigint, p_little bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT l.durable < l.first + p_little
            AND NOT EXISTS (SELECT 1 FROM done_chunks d WHERE d.task_id = l.task_id AND d.first > 0)
            AND NOT EXISTS (SELECT 1 FROM ready_chunks c
                WHERE c.task_id = l.task_id AND c.kind = 'fetch' AND c.first > 0 AND c.resume >= c.first + p_little)
            AND NOT EXISTS (SELECT 1 FROM leases h
                WHERE h.task_id = l.task_id AND h.kind = 'fetch' AND h.first > 0 AND h.durable >= h.first + p_little)
        FROM leases l WHERE l.chunk_id = p_chunk);
END
$$;

-- The five rules below are part of every grant. For most leases the lease and the task decide, without a query, and PostgreSQL inlines that into the
-- grant's statement. Functions that need a query take ids, so that no row value is built for them.

-- Whether a source may be asked by a plain GET, to see whether that is served before the bytes of the version are given up: it is the only source
-- that is left, whichever taught the version.
CREATE FUNCTION may_look(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.kind = 'fetch' AND t.rung <> 'whole' AND (t.mirrors = 1 OR NOT has_another_source(t.id, l.source))
$$;

-- Whether another source, not tried for the chunk yet, can follow a silent one: then the worker waits less.
CREATE FUNCTION may_move_on(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.kind = 'fetch' AND l.attempts < t.mirrors - 1 AND (t.mixes OR NOT t.planned) AND has_another_source(t.id, l.source, t.version)
        AND NOT is_asked_again(l.task_id, l.source)
$$;

-- The number of earlier rounds in which all sources were tried for a chunk that another source may bring too; NULL for other leases, and in the first
-- round as long as a source is left that has not been tried.
CREATE FUNCTION round_of(l leases, t tasks) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN l.kind = 'fetch' AND t.mirrors > 1 AND l.reach IS NULL AND l.attempts >= t.mirrors - 1 AND (t.mixes OR NOT t.planned)
        AND has_another_source(t.id, l.source, t.version) THEN l.attempts / live_sources(t) END
$$;

-- How many earlier tries have ended because the origin was slower than the limits allow, beyond one of each source: each such try gives a slow origin
-- more time.
CREATE FUNCTION slow_tries(l leases, t tasks) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.failure_kind IN ('timeout', 'tooSlow') THEN greatest(0, l.attempts - t.mirrors + 1) ELSE 0 END
$$;

-- Whether it is time to look whether a plain GET goes further than parts, whose bodies have ended early within the chunk.
CREATE FUNCTION looks_at_endings(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT t.failure_kind IS NOT NULL AND l.kind = 'fetch' AND t.rung <> 'whole' AND endings_want_a_look(l.chunk_id)
$$;

-- Whether a failed chunk tries a plain GET before all its tries are used up: answers of the origin have ended early twice, which is given up soon
-- (`is_hopeless`); or there are few bytes to lose.
CREATE FUNCTION looks_early(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.attempts >= 2 AND t.failure_kind = 'network' AND t.failure_status BETWEEN 200 AND 299
        OR l.attempts > 0 AND has_little(l.chunk_id, little(l, t))
$$;

-- A source contradicts the way in which it was asked: the task starts over on a lower rung, which is no try. If there is no lower rung, it is a try.
-- A mirror of the source that taught the version is only skipped for this version.
CREATE FUNCTION report_restart(p_session bigint, p_chunk bigint, p_epoch bigint, p_rung text, p_detail text, p_policy policy) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    l leases;
    t tasks;
    f failure;
    v_tries integer;
    v_outcome text;
BEGIN
    f.session_id := p_session;
    f.kind := 'badRange';
    f.detail := p_detail;
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'fetch';
    IF NOT FOUND THEN RETURN; END IF;
    p_policy.max_deaths := 2147483647;
    f.policy := p_policy;
    IF spare_chunk(l, f) THEN
        PERFORM note_attempt(l.task_id, l.source, l.durable, 'returned', f);
        RETURN;
    END IF;
    UPDATE tasks SET failure_kind = f.kind, failure_detail = f.detail, failure_at = statement_timestamp(),
        failure_status = NULL, failure_source = l.source, failure_request = NULL
    WHERE id = l.task_id RETURNING * INTO t;
    UPDATE sources SET failures = failures + 1 WHERE task_id = t.id AND ordinal = l.source;
    IF t.source <> l.source THEN
        v_outcome := leave_mirror(l, t, l.source, p_policy);
    END IF;
    IF v_outcome IS NULL THEN
        v_tries := (p_rung <= t.rung)::integer;
        UPDATE tasks SET attempts = greatest(attempts, l.attempts + v_tries) WHERE id = t.id;
        UPDATE sources SET rung = greatest(rung, p_rung)
        WHERE task_id = t.id AND ordinal = l.source;
        IF v_tries = 1 AND l.attempts + 1 >= for_each(p_policy.max_attempts, live_sources(t)) THEN
            PERFORM fail_task(t.id, f.kind, f.detail, l.chunk_id);
            v_outcome := 'failed';
        ELSE
            PERFORM start_over(t.id, p_policy.first_chunk, l.source, l.attempts + v_tries, l.deaths, l.chunk_id);
            v_outcome := 'startOver';
        END IF;
    END IF;
    PERFORM note_attempt(t.id, l.source, l.durable, v_outcome, f);
END
$$;

-- Whether the content of a task's version may be a page that came in the place of the file: it is small, and stated no validator.
CREATE FUNCTION may_be_page(t tasks) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT t.planned AND t.size <= 65536 AND t.etag IS NULL AND t.last_modified IS NULL $$;

-- Remembers what a source has shown of a content version that is given up, to compare the next version with it (row 27), whichever source that comes
-- from: its size, or how many bytes had come, and its validators. The size of a page says nothing, unless it was the file, whose body broke off.
CREATE FUNCTION remember_version(t tasks, p_source integer, p_bytes bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    -- The validators of one source say nothing of another source.
    v_own jsonb := CASE WHEN t.earlier ->> 'source' = p_source::text THEN t.earlier END;
BEGIN
    IF t.size IS NULL AND p_bytes <= hardly_anything() AND (p_bytes = 0 OR t.etag IS NULL AND t.last_modified IS NULL)
        OR t.size IS NOT NULL AND (NOT t.planned OR may_be_page(t) AND t.failure_kind IS DISTINCT FROM 'network' AND t.failure_kind IS DISTINCT FROM 'tooSlow')
    THEN
        RETURN;
    END IF;
    UPDATE tasks
    SET earlier = jsonb_strip_nulls(jsonb_build_object(
        'source', p_source,
        'size', coalesce(t.size, CASE WHEN coalesce(t.etag = v_own ->> 'etag', true) THEN (t.earlier ->> 'size')::bigint END),
        'bytes', CASE WHEN t.size IS NULL THEN greatest((t.earlier ->> 'bytes')::bigint, p_bytes) ELSE (t.earlier ->> 'bytes')::bigint END,
        'etag', coalesce(t.etag, v_own ->> 'etag'), 'lastModified', coalesce(t.last_modified, v_own ->> 'lastModified')))
    WHERE id = t.id;
END
$$;
