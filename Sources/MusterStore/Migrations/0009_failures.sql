-- A lease that could not be fulfilled: what the refusal means, and where the chunk goes from there. In this order: the URL has
-- expired (row 21 of http.md); there is too much at once (row 24); the content is not what it was (rows 6, 29, 30); and the rule
-- of the failure's kind for everything else.
--
-- clock_timestamp() is used where a moment is compared with those at which leases were granted: it is taken after the locks were,
-- so that a lease of before the lock is always older.

-- What the chunk waits for after so many failures: 1 s × 2ⁿ with full jitter, unless the coordinator says otherwise.
CREATE FUNCTION backoff(p_attempts integer, p_base_ms bigint, p_maximum_ms bigint, p_random double precision) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(p_maximum_ms, p_base_ms * power(2, least(greatest(p_attempts, 1), 20) - 1)) * p_random * interval '1 ms'
$$;

-- The source that a chunk goes on with after one that failed: the next one that may serve this content version, in a circle. NULL
-- if there is none. p_stays: better the same again.
CREATE FUNCTION next_source(t tasks, p_source integer, p_stays boolean) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT s.ordinal FROM sources s
    WHERE s.task_id = t.id AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version
    ORDER BY p_stays AND s.ordinal <> p_source, s.ordinal <= p_source, s.ordinal LIMIT 1
$$;

-- Hands the chunks of one source that nobody holds to another one.
CREATE FUNCTION move_chunks(p_task bigint, p_from integer, p_to integer) RETURNS void
LANGUAGE sql AS $$
    UPDATE ready_chunks c SET source = s.ordinal, origin_id = coalesce(s.fresh_origin_id, s.origin_id)
    FROM sources s
    WHERE c.task_id = p_task AND c.kind = 'fetch' AND c.source = p_from AND s.task_id = p_task AND s.ordinal = p_to
$$;

-- A URL that worked before was refused, or any was where a resolver knows fresh ones. Either way the lease comes back uncounted
-- and what followed is returned; NULL if it is a failure like any other: it was none of these, or was taken for one so often
-- without progress that nothing is gained (I12).
CREATE FUNCTION renew_source(
    l leases, t tasks, p_source integer, p_first_chunk bigint, p_max_attempts integer, p_deaths integer, p_base_ms bigint,
    p_maximum_ms bigint, p_random double precision
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    s sources;
    v_asks boolean;
    v_is_asked boolean;
    v_is_echo boolean;
    v_bytes bigint;
    v_refreshes integer;
BEGIN
    SELECT * INTO s FROM sources WHERE task_id = t.id AND ordinal = p_source;
    SELECT resolver IS NOT NULL INTO v_asks FROM groups WHERE id = t.group_id;
    IF NOT v_asks AND l.durable = l.first AND s.bytes = 0
        AND NOT (t.planned AND coalesce(t.source, p_source) = p_source)
    THEN RETURN NULL; END IF;

    v_is_asked := EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND c.kind = 'resolve')
        OR EXISTS (SELECT 1 FROM leases h WHERE h.task_id = t.id AND h.kind = 'resolve');
    -- Late refusals of the URL of before say nothing of the fresh one.
    v_is_echo := coalesce(l.epoch <= s.stale_epoch, false);
    -- Progress is whatever differs from last time. That of a stream is lost each time.
    SELECT CASE WHEN t.stream THEN 0 WHEN t.mirrors > 1 THEN s.bytes + l.durable - l.resume
        ELSE t.bytes_done + coalesce(sum(n), 0) END INTO v_bytes
    FROM (
        SELECT durable - first AS n FROM leases WHERE task_id = t.id AND kind = 'fetch'
        UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = t.id AND kind = 'fetch'
    ) AS parts;
    v_refreshes := CASE WHEN v_bytes IS DISTINCT FROM s.refreshed_bytes THEN 0 ELSE s.refreshes END;
    IF NOT v_is_asked AND NOT v_is_echo AND v_refreshes >= (CASE WHEN v_asks THEN p_max_attempts ELSE 1 END) THEN
        RETURN NULL;
    END IF;

    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_first_chunk, p_deaths);
    -- A stream that came back starts over, and then nobody asks for it any more.
    v_is_asked := v_is_asked AND EXISTS (SELECT 1 FROM tasks WHERE id = t.id AND version = t.version);
    IF NOT v_is_asked THEN
        IF v_is_echo THEN RETURN 'returned'; END IF;
        UPDATE sources
        SET stale_epoch = (SELECT last_value FROM lease_epochs), refreshes = v_refreshes + 1, refreshed_bytes = v_bytes
        WHERE task_id = t.id AND ordinal = p_source;
        IF NOT v_asks THEN RETURN 'retry'; END IF;
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, source, sink, version, last, rank, status, not_before)
        SELECT 'resolve', t.id, t.group_id, 0, p_source, t.sink, n.version, 0, chunk_rank('resolve', t.priority, false),
            CASE WHEN v_refreshes = 0 THEN 'ready' ELSE 'waiting' END,
            CASE WHEN v_refreshes > 0
                THEN statement_timestamp() + backoff(v_refreshes, p_base_ms, p_maximum_ms, p_random) END
        FROM tasks n WHERE n.id = t.id;
    END IF;
    -- Everybody waits for the answer, for a while: whoever waits longer is refused again, and waits again.
    UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + interval '5 min'
    WHERE task_id = t.id AND kind = 'fetch' AND source = p_source;
    RETURN CASE WHEN v_is_asked THEN 'returned' ELSE 'resolve' END;
END
$$;

-- An origin refused because of too much at once, or may have. What it may have is halved, at most once for a burst: only by a lease
-- that was granted after the last time. NULL if it is no such refusal. Otherwise whether it counts as a try of the chunk: not
-- while others hold leases that the origin may have preferred, as long as there was something left to halve (I12). The caller has
-- locked the origin.
CREATE FUNCTION heed_limit(l leases, t tasks, p_kind text, p_limit text, p_origin_cap integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    o origins;
    v_is_shared boolean;
    v_is_echo boolean;
    v_is_plausible boolean;
    v_allowed integer;
BEGIN
    SELECT * INTO o FROM origins WHERE id = l.origin_id;
    IF NOT FOUND OR p_limit = 'none' THEN RETURN NULL; END IF;
    v_is_echo := coalesce(l.epoch <= o.limited_epoch, false);
    v_is_shared := v_is_echo OR EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = o.id AND h.chunk_id <> l.chunk_id);
    -- What may have another reason is believed if there was something to limit, and if it worked before or nothing came at all.
    -- Whoever shared the origin may be gone by now: then what worked before is tried once more before the refusal is believed,
    -- and some more times where the origin is known to have limits, since it may count connections that have ended already.
    IF p_limit = 'possible' THEN
        v_is_plausible := CASE p_kind
            WHEN 'network' THEN l.durable = l.resume
            ELSE t.planned AND (coalesce(t.source, l.source) = l.source OR EXISTS (
                SELECT 1 FROM sources s WHERE s.task_id = t.id AND s.ordinal = l.source AND s.bytes > 0)) END;
        IF NOT v_is_plausible THEN RETURN NULL; END IF;
        IF NOT v_is_shared THEN
            RETURN CASE WHEN p_kind <> 'network' AND l.attempts < CASE WHEN o.learned IS NULL THEN 1 ELSE 4 END THEN true END;
        END IF;
    END IF;
    IF v_is_echo THEN RETURN false; END IF;
    v_allowed := allowed_connections(o, p_origin_cap);
    UPDATE origins
    SET learned = greatest(1, v_allowed / 2), learned_at = clock_timestamp(), limited_at = clock_timestamp(),
        limited_epoch = (SELECT last_value FROM lease_epochs)
    WHERE id = o.id;
    RETURN NOT v_is_shared OR v_allowed = 1;
END
$$;

-- The task starts over with the next content version, and an event says why.
CREATE FUNCTION start_over_because(
    t tasks, p_stream boolean, p_first_chunk bigint, p_source integer, p_deaths integer, p_kind text, p_detail text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_group_name text;
BEGIN
    SELECT name INTO v_group_name FROM groups WHERE id = t.group_id;
    PERFORM start_over(t.id, p_stream, p_first_chunk, p_source, 0, p_deaths);
    PERFORM write_event('tsk-' || t.id || '-' || t.version || '-changed', 'dev.muster.task.changed.v1', v_group_name,
        jsonb_build_object('group', v_group_name, 'key', t.key, 'path', t.path, 'contentVersion', t.version + 1,
            'reason', jsonb_build_object('kind', p_kind, 'detail', p_detail)));
END
$$;

-- The representation is another one. It may have become that so often; then the task fails, without the bytes of any version.
CREATE FUNCTION accept_change(
    l leases, t tasks, p_source integer, p_first_chunk bigint, p_max_restarts integer, p_kind text, p_detail text
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks SET restarts = restarts + 1 WHERE id = t.id;
    PERFORM start_over_because(t, t.stream, p_first_chunk, p_source, l.deaths, p_kind, p_detail);
    IF t.restarts + 1 < p_max_restarts THEN RETURN 'startOver'; END IF;
    PERFORM fail_task(t.id, p_kind, p_detail);
    RETURN 'failed';
END
$$;

-- The content is whole, and has another digest than is expected (row 29): it is fetched once more from where it came from, past
-- caches and without mixing sources; after that every other source is tried once. The wrong bytes are dropped each time.
CREATE FUNCTION fetch_again(l leases, t tasks, p_source integer, p_first_chunk bigint, p_kind text, p_detail text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE sources SET mismatches = mismatches + 1, dead = dead OR t.clean WHERE task_id = t.id AND ordinal = p_source;
    UPDATE tasks SET clean = true WHERE id = t.id;
    SELECT s.ordinal INTO v_next FROM sources s
    WHERE s.task_id = t.id AND NOT s.dead ORDER BY s.ordinal <> p_source, s.ordinal < p_source, s.ordinal LIMIT 1;
    PERFORM start_over_because(t, t.stream AND v_next IS NOT DISTINCT FROM p_source, p_first_chunk,
        coalesce(v_next, p_source), l.deaths, p_kind, p_detail);
    IF v_next IS NULL THEN
        PERFORM fail_task(t.id, p_kind, p_detail);
        RETURN 'failed';
    END IF;
    RETURN CASE WHEN v_next = p_source THEN 'startOver' ELSE 'nextSource' END;
END
$$;

-- A mirror whose content is not that of this version, or that won't give parts of it (row 30): it is left alone for this version,
-- and its chunks go to the others with the bytes that they have. NULL if no other is left: then it is the one to start over with.
CREATE FUNCTION leave_mirror(l leases, t tasks, p_source integer, p_first_chunk bigint, p_deaths integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE sources SET differs_in = t.version WHERE task_id = t.id AND ordinal = p_source;
    v_next := next_source(t, p_source, false);
    IF v_next IS NULL THEN RETURN NULL; END IF;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_first_chunk, p_deaths);
    PERFORM move_chunks(t.id, p_source, v_next);
    RETURN 'nextSource';
END
$$;

-- A lease that could not be fulfilled. p_rule is the retry rule of the failure's kind, p_limit whether it is a sign of too much at
-- once (none, possible, certain), p_expiry whether it is what an expired URL is answered with; p_random within [0, 1) sets the
-- jitter. What followed is noted.
CREATE FUNCTION report_failure(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_offset bigint, p_crc bigint, p_rule text, p_kind text, p_detail text,
    p_source integer, p_retry_after bigint, p_status integer, p_request text, p_address text, p_limit text, p_expiry boolean,
    p_random double precision, p_first_chunk bigint, p_max_attempts integer, p_max_restarts integer, p_deaths integer,
    p_origin_cap integer, p_base_ms bigint, p_maximum_ms bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_source integer;
    v_outcome text;
BEGIN
    -- Origins come before groups in the order of locks.
    IF p_retry_after IS NOT NULL OR p_limit <> 'none' THEN
        PERFORM o.id FROM origins o
        WHERE o.id IN (SELECT held.origin_id FROM leases held WHERE held.chunk_id = p_chunk) FOR NO KEY UPDATE;
    END IF;
    PERFORM report_progress(ARRAY[p_session], ARRAY[p_chunk], ARRAY[p_epoch], ARRAY[p_offset], ARRAY[p_crc]);
    PERFORM set_config('synchronous_commit', 'on', true);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    IF NOT FOUND THEN RETURN; END IF;
    IF l.kind = 'purge' THEN
        PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_first_chunk, p_deaths);
        UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + interval '10 s' WHERE id = p_chunk;
        RETURN;
    END IF;

    SELECT * INTO t FROM tasks WHERE id = l.task_id FOR NO KEY UPDATE;
    -- What is wrong with a file as a whole is the doing of the source that taught its version.
    v_source := coalesce(CASE WHEN l.kind = 'finalize' THEN t.source END,
        (SELECT s.ordinal FROM sources s WHERE s.task_id = t.id AND s.ordinal = p_source), l.source);
    IF p_rule = 'returnChunk' THEN
        PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_first_chunk, p_deaths);
        v_outcome := 'returned';
    ELSE
        UPDATE tasks
        SET failure_kind = p_kind, failure_detail = p_detail, failure_at = statement_timestamp(), failure_status = p_status,
            failure_source = v_source, failure_request = p_request
        WHERE id = t.id RETURNING * INTO t;
        UPDATE sources SET failures = failures + 1
        WHERE task_id = t.id AND ordinal = v_source AND (l.kind = 'fetch' OR p_kind = 'digestMismatch');
        -- An origin that says when to come back is left alone by the whole fleet, for an hour at the most (row 25).
        IF p_retry_after IS NOT NULL AND l.origin_id > 0 THEN
            UPDATE origins SET not_before = greatest(not_before, statement_timestamp()
                + least(3600, p_retry_after) * interval '1 s' * (1 + p_random / 10))
            WHERE id = l.origin_id;
        END IF;

        IF l.kind = 'resolve' THEN
            v_outcome := fail_question(l, t, p_retry_after, p_detail, p_first_chunk, p_max_attempts, p_deaths, p_base_ms,
                p_maximum_ms, p_random);
        ELSIF l.kind = 'fetch' AND p_expiry THEN
            v_outcome := renew_source(l, t, v_source, p_first_chunk, p_max_attempts, p_deaths, p_base_ms, p_maximum_ms, p_random);
        ELSIF l.kind = 'fetch' AND p_rule = 'startOver' AND p_kind <> 'digestMismatch' AND t.source <> v_source THEN
            v_outcome := leave_mirror(l, t, v_source, p_first_chunk, p_deaths);
        END IF;
        -- So far nothing has counted as a try.
        IF v_outcome IS NULL THEN
            v_outcome := follow_rule(l, t, v_source, p_rule, p_kind, p_detail, p_limit, p_random, p_first_chunk, p_max_attempts,
                p_max_restarts, p_deaths, p_origin_cap, p_base_ms, p_maximum_ms);
        END IF;
    END IF;
    PERFORM note_attempt(t.id, p_session, CASE WHEN l.kind <> 'finalize' THEN v_source END, p_kind, p_status, p_detail, p_request,
        p_address, l.durable, v_outcome);
END
$$;

-- A failure that counts, unless it is a sign of too much at once: moves the chunk on by the rule of its kind, or fails the task.
-- Returns what followed.
CREATE FUNCTION follow_rule(
    l leases, t tasks, p_source integer, p_rule text, p_kind text, p_detail text, p_limit text, p_random double precision,
    p_first_chunk bigint, p_max_attempts integer, p_max_restarts integer, p_deaths integer, p_origin_cap integer,
    p_base_ms bigint, p_maximum_ms bigint
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_counts boolean := heed_limit(l, t, p_kind, p_limit, p_origin_cap);
    v_rule text := CASE WHEN v_counts IS NULL THEN p_rule ELSE 'retry' END;
    -- Progress clears the record (I12), but not that of a stream, whose progress is lost.
    v_before integer := CASE WHEN l.durable > l.resume AND NOT t.stream THEN 0 ELSE l.attempts END;
    v_attempts integer := v_before + coalesce(v_counts, true)::integer;
    v_next integer;
    v_wait interval;
BEGIN
    UPDATE tasks SET attempts = attempts + 1 WHERE id = t.id AND v_attempts > v_before;
    IF v_rule = 'startOver' AND p_kind = 'digestMismatch' THEN
        RETURN fetch_again(l, t, p_source, p_first_chunk, p_kind, p_detail);
    ELSIF v_rule = 'startOver' THEN
        RETURN accept_change(l, t, p_source, p_first_chunk, p_max_restarts, p_kind, p_detail);
    END IF;
    -- Another source is no help to what fetches nothing: its tries are bounded whatever the rule (I12).
    IF v_rule = 'giveUp'
        OR (v_rule = 'retry' OR l.kind <> 'fetch') AND v_attempts >= p_max_attempts AND v_attempts > v_before
    THEN
        PERFORM fail_task(t.id, p_kind, p_detail);
        RETURN 'failed';
    ELSIF l.kind <> 'fetch' THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_first_chunk, p_deaths);
        UPDATE ready_chunks SET attempts = v_attempts, status = 'waiting', not_before = statement_timestamp() + interval '1 s'
        WHERE id = l.chunk_id;
        RETURN 'retry';
    END IF;

    IF v_rule = 'nextSource' THEN
        UPDATE sources SET dead = true WHERE task_id = t.id AND ordinal = p_source;
        IF NOT EXISTS (SELECT 1 FROM sources WHERE task_id = t.id AND NOT dead) THEN
            PERFORM fail_task(t.id, p_kind, p_detail);
            RETURN 'failed';
        END IF;
    END IF;
    -- Where sources are not mixed, the chunks of a version stay with the one that taught it for some tries. Then the version
    -- starts over at another, since nothing would tell the bytes of the two apart (I8); but not for ever (I12).
    v_next := next_source(t, l.source,
        t.planned AND NOT t.mixes AND (v_attempts < 3 OR t.restarts + 1 >= p_max_restarts));
    IF v_next IS NULL OR v_next <> l.source AND t.planned AND NOT t.mixes THEN
        UPDATE tasks SET restarts = restarts + 1 WHERE id = t.id AND v_rule = 'retry';
        PERFORM start_over(t.id, false, p_first_chunk, coalesce(v_next, l.source), v_attempts, l.deaths);
        RETURN 'nextSource';
    END IF;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_first_chunk, p_deaths);
    IF v_rule = 'nextSource' THEN
        PERFORM move_chunks(t.id, p_source, v_next);
    END IF;
    v_wait := CASE WHEN v_rule = 'retry' AND v_next <= l.source
        THEN backoff(v_attempts, p_base_ms, p_maximum_ms, p_random) ELSE interval '0' END;
    UPDATE ready_chunks c
    SET attempts = v_attempts, source = s.ordinal, origin_id = coalesce(s.fresh_origin_id, s.origin_id),
        status = CASE WHEN v_wait > interval '0' THEN 'waiting' ELSE 'ready' END,
        not_before = CASE WHEN v_wait > interval '0' THEN statement_timestamp() + v_wait END
    FROM sources s
    WHERE c.task_id = t.id AND c.kind = 'fetch' AND (c.id = l.chunk_id OR t.stream) AND s.task_id = t.id AND s.ordinal = v_next;
    RETURN CASE WHEN v_next = l.source THEN 'retry' ELSE 'nextSource' END;
END
$$;

-- What an older coordinator reports: neither expiry nor limits are known to it.
CREATE OR REPLACE FUNCTION report_failed(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_offset bigint, p_crc bigint, p_rule text, p_kind text, p_detail text,
    p_source integer, p_retry_after bigint, p_random double precision, p_first_chunk bigint, p_max_attempts integer,
    p_max_restarts integer, p_deaths integer
) RETURNS void
LANGUAGE sql AS $$
    SELECT report_failure(p_session, p_chunk, p_epoch, p_offset, p_crc, p_rule, p_kind, p_detail, p_source, p_retry_after, NULL,
        NULL, NULL, 'none', false, p_random, p_first_chunk, p_max_attempts, p_max_restarts, p_deaths, 8, 1000, 300000)
$$;
