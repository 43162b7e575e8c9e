-- What a source will never do, and how it is asked then (range contract, "The ladder").

-- Whether a failure is what the source will always come to, at the third time: a file that is larger than the whole file system of the sink, unless
-- room is waited for as long as it takes; or a connection that always ends without progress. What is doubted has all of its tries: it is believed at the last.
CREATE FUNCTION is_hopeless(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN l.attempts >= 2 AND (
        f.kind = 'noSpace' AND f.max_attempts < 2147483647 AND f.detail ~ 'the whole file system has'
        OR f.kind = 'network' AND f.detail !~ 'states no other validator' AND l.kind = 'fetch' AND (l.durable < l.resume + little(l, t) OR NOT goes_on(t)) AND always_ends(l, t, f));
END
$$;

-- Whether each try of a chunk has ended like this one for ten seconds: before an answer, or in the body, after as many bytes each time, or a plain GET at
-- the same byte. What lasts for less may be an outage, and so may a silence for longer than that of an origin that has served lately, and bodies that
-- end at once where other chunks have failed as well, and nothing comes of the origin.
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
                -- One that is gone on with may be cut within what is there: what was seen tells where.
                AND (t.rung <> 'whole' OR a.byte = l.durable AND a.detail = f.detail))
            -- As much of each: what is cut here and there may come with the next try.
            AND (t.rung = 'whole' OR count(DISTINCT a.more) <= 1 AND coalesce(min(a.more) = l.durable - max(a.byte), true))
            AND min(a.at) <= statement_timestamp() - interval '10 s'
        FROM (
            SELECT n.*, n.byte - lag(n.byte) OVER (ORDER BY n.serial) AS more
            FROM (
                -- Those of the chunk, also where more had come that was of no use.
                SELECT * FROM attempts WHERE task_id = t.id AND byte >= l.first AND (l.last IS NULL OR byte <= l.last) ORDER BY serial DESC LIMIT l.attempts
            ) AS n
        ) AS a);
END
$$;

-- Whether what has come of a task is of use when it is asked for again: it comes in parts, or it is the beginning of a plain GET of a content that has a
-- size, and a validator or a digest that tells it from any other. `FetchPlan.goesOn` has the same.
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

-- Whether a task has a live source besides this one; one that serves this content version, if it is named.
CREATE FUNCTION has_another_source(p_task bigint, p_source integer, p_version integer DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM sources s
        WHERE s.task_id = p_task AND NOT s.dead AND s.ordinal <> p_source
            AND (p_version IS NULL OR s.differs_in IS DISTINCT FROM p_version));
END
$$;

-- Bodies of a chunk's parts have ended early: at the second ending, the fourth, the eighth and so on it is time to look. A line on which every
-- body breaks off brings the file on, and is not asked for more each time. Another source is the better way out, unless its parts have ended
-- early too.
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

-- So many bytes an origin may send before it stops, though it serves nothing: what is on its way by then.
CREATE FUNCTION hardly_anything() RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT 65536 $$;

-- Fewer bytes than these are as good as none: those after which an origin stopped, and otherwise 1 KiB, or a sixteenth of what was left. A chunk that comes in
-- smaller pieces than these would take hours, each of them a request and a pause.
CREATE FUNCTION little(l leases, t tasks) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN t.failure_kind = 'tooSlow' THEN hardly_anything() ELSE greatest(1, least(1024, (l.last - l.resume) / 16)) END
$$;

-- Whether hardly anything has come of a leased chunk, and nothing else but the beginning of its file. Fewer bytes than p_little are as good as none.
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

-- The five rules below are part of every grant: what they ask of most leases first is in the lease and the task, and is written into the
-- grant's own statement (SQL functions without queries are). What has to be looked up is asked by ids, so that no row is put together for it.

-- Whether a source may be asked plainly, to see whether that is served before the bytes of the version are given up: it is the only one that is
-- left, whichever taught the version.
CREATE FUNCTION may_look(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.kind = 'fetch' AND t.rung <> 'whole' AND (t.mirrors = 1 OR NOT has_another_source(t.id, l.source))
$$;

-- Whether a silence ends with another source that has not been tried for the chunk: less patience is due then.
CREATE FUNCTION may_move_on(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.kind = 'fetch' AND l.attempts < t.mirrors - 1 AND (t.mixes OR NOT t.planned) AND has_another_source(t.id, l.source, t.version)
$$;

-- How many tries before have ended since the origin was slower than the limits allow, beyond one of each source: what takes its time comes with more.
CREATE FUNCTION slow_tries(l leases, t tasks) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.failure_kind IN ('timeout', 'tooSlow') THEN greatest(0, l.attempts - t.mirrors + 1) ELSE 0 END
$$;

-- Whether it is time to look if a plain GET goes further than parts do, whose bodies have ended early within the chunk.
CREATE FUNCTION looks_at_endings(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT t.failure_kind IS NOT NULL AND l.kind = 'fetch' AND t.rung <> 'whole' AND endings_want_a_look(l.chunk_id)
$$;

-- Whether a chunk has failed, and a plain GET is to be looked at before all tries are over: answers of the origin have ended early twice, which
-- is given up soon (`is_hopeless`); or there is little to give up.
CREATE FUNCTION looks_early(l leases, t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.attempts >= 2 AND t.failure_kind = 'network' AND t.failure_status BETWEEN 200 AND 299
        OR l.attempts > 0 AND has_little(l.chunk_id, little(l, t))
$$;

-- A source contradicts the way in which it was asked: the task starts over on a lower rung, which is no try. If there is none it is
-- one. A mirror of the source that taught the version is only left alone for it.
CREATE FUNCTION report_restart(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_rung text, p_detail text, p_first_chunk bigint, p_max_attempts integer
) RETURNS void
LANGUAGE plpgsql AS $$
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
    f.first_chunk := p_first_chunk;
    f.max_deaths := 2147483647;
    IF spare_chunk(l, f) THEN
        PERFORM note_attempt(l.task_id, l.source, l.durable, 'returned', f);
        RETURN;
    END IF;
    UPDATE tasks SET failure_kind = f.kind, failure_detail = f.detail, failure_at = statement_timestamp(),
        failure_status = NULL, failure_source = l.source, failure_request = NULL
    WHERE id = l.task_id RETURNING * INTO t;
    UPDATE sources SET failures = failures + 1 WHERE task_id = t.id AND ordinal = l.source;
    IF t.source <> l.source THEN
        v_outcome := leave_mirror(l, t, l.source, p_first_chunk, 2147483647);
    END IF;
    IF v_outcome IS NULL THEN
        v_tries := (p_rung <= t.rung)::integer;
        UPDATE tasks SET attempts = greatest(attempts, l.attempts + v_tries) WHERE id = t.id;
        UPDATE sources SET rung = greatest(rung, p_rung)
        WHERE task_id = t.id AND ordinal = l.source;
        IF v_tries = 1 AND l.attempts + 1 >= for_each(p_max_attempts, live_sources(t)) THEN
            PERFORM fail_task(t.id, f.kind, f.detail, l.chunk_id);
            v_outcome := 'failed';
        ELSE
            PERFORM start_over(t.id, p_first_chunk, l.source, l.attempts + v_tries, l.deaths);
            v_outcome := 'startOver';
        END IF;
    END IF;
    PERFORM note_attempt(t.id, l.source, l.durable, v_outcome, f);
END
$$;

-- Whether the content of a task's version may be a page that came in the place of the file: it is small, and stated no validator.
CREATE FUNCTION may_be_page(t tasks) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT t.planned AND t.size <= 65536 AND t.etag IS NULL AND t.last_modified IS NULL $$;

-- Remembers what a source has shown of a content version that is given up, as a measure of the next one (row 27), whichever source that comes from: its size,
-- or how many bytes had come, and its validators. A page is as large as it likes, unless it was the file, which broke off.
CREATE FUNCTION remember_version(t tasks, p_source integer, p_bytes bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    -- What one source states of itself says nothing of another one.
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
