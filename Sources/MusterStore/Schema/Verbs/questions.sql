-- Questions to a group's resolver (row 21): chunks of kind `resolve`, one at a time per task. A question fetches nothing: it counts neither
-- in its task's leases nor in its chunks or bytes. It is not kept when its task stops, starts over or ends: the next refusal asks again.

-- Whether a source's URL has worked: bytes of the content version came from it, or bytes came once that could not be resumed. A response that may be
-- a page in the place of the file does not count.
CREATE FUNCTION has_worked(t tasks, p_source integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN t.planned AND coalesce(t.source, p_source) = p_source
        OR EXISTS (SELECT 1 FROM sources s WHERE s.task_id = t.id AND s.ordinal = p_source AND s.bytes > 0)
        OR EXISTS (
            SELECT 1 FROM attempts a
            WHERE a.task_id = t.id AND a.source = p_source AND a.status BETWEEN 200 AND 299 AND a.kind NOT LIKE 'httpStatus%');
END
$$;

-- Handles the refusal of a URL that worked before, or of any URL if the group has a resolver. The lease comes back without a try being counted, and
-- the outcome is returned; NULL if the refusal is a failure like any other: the URL is none of these, or it was renewed so often without progress
-- that nothing is gained: once without a resolver, f.max_attempts times with one (I12).
CREATE FUNCTION renew_source(l leases, t tasks, p_source integer, f failure) RETURNS text
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
    IF NOT v_asks AND l.durable = l.first AND NOT has_worked(t, p_source) THEN RETURN NULL; END IF;

    v_is_asked := EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND c.kind = 'resolve')
        OR EXISTS (SELECT 1 FROM leases h WHERE h.task_id = t.id AND h.kind = 'resolve');
    -- Late refusals of the expired URL say nothing of the fresh one.
    v_is_echo := coalesce(l.epoch <= s.stale_epoch, false);
    -- Any other number of bytes than last time is progress. A plain GET that can't be resumed may lose its bytes each time.
    SELECT CASE WHEN NOT goes_on(t) THEN 0 WHEN t.mirrors > 1 THEN s.bytes + l.durable - l.resume
        ELSE t.bytes_done + coalesce(sum(n), 0) END INTO v_bytes
    FROM (
        SELECT durable - first AS n FROM leases WHERE task_id = t.id AND kind = 'fetch'
        UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = t.id AND kind = 'fetch'
    ) AS parts;
    v_refreshes := CASE WHEN v_bytes IS DISTINCT FROM s.refreshed_bytes THEN 0 ELSE s.refreshes END;
    IF NOT v_is_asked AND NOT v_is_echo AND v_refreshes >= (CASE WHEN v_asks THEN f.max_attempts ELSE 1 END) THEN
        RETURN NULL;
    END IF;

    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
    -- A plain GET that came back starts over, and its question is gone.
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
                THEN statement_timestamp() + backoff(v_refreshes, f) END
        FROM tasks n WHERE n.id = t.id;
    END IF;
    -- Every chunk of the source waits for the answer, five minutes at the most: then it is refused again, and waits again.
    UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + interval '5 min'
    WHERE task_id = t.id AND kind = 'fetch' AND source = p_source;
    RETURN CASE WHEN v_is_asked THEN 'returned' ELSE 'resolve' END;
END
$$;

-- The resolver gave no answer: the question is asked again after a backoff, until its tries are used up. Then the source is given up, and its chunks
-- go to the next source. Returns the outcome.
CREATE FUNCTION fail_question(l leases, t tasks, f failure) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE tasks SET attempts = greatest(attempts, l.attempts + 1) WHERE id = t.id;
    IF l.attempts + 1 < most_attempts(l, l.attempts + 1, f) THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
        UPDATE ready_chunks
        SET attempts = l.attempts + 1, status = 'waiting', not_before = statement_timestamp() + greatest(
            backoff(l.attempts + 1, f), least(3600, coalesce(f.retry_after, 0)) * interval '1 s')
        WHERE id = l.chunk_id;
        RETURN 'retry';
    END IF;

    DELETE FROM leases WHERE chunk_id = l.chunk_id;
    UPDATE sources SET dead = true WHERE task_id = t.id AND ordinal = l.source;
    IF NOT EXISTS (SELECT 1 FROM sources WHERE task_id = t.id AND NOT dead) THEN
        PERFORM fail_task(t.id, 'authentication', f.detail);
        RETURN 'failed';
    END IF;
    v_next := next_source(t, l.source, false);
    IF v_next IS NULL OR t.planned AND NOT t.mixes THEN
        PERFORM start_over(t.id, (f.policy).first_chunk, coalesce(v_next, l.source), 0, 0);
    ELSE
        PERFORM move_chunks(t.id, l.source, v_next);
        UPDATE ready_chunks SET status = 'ready', not_before = NULL
        WHERE task_id = t.id AND kind = 'fetch' AND status = 'waiting';
    END IF;
    RETURN 'nextSource';
END
$$;

-- The resolver answered: every further request to the source goes to the fresh URL, and the chunks that waited for it go on.
CREATE FUNCTION report_resolved(p_session bigint, p_chunk bigint, p_epoch bigint, p_url text, p_origin text, p_headers jsonb)
RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    l leases;
    v_origin bigint;
BEGIN
    SELECT * INTO l FROM leases
    WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'resolve';
    IF NOT FOUND THEN RETURN; END IF;
    -- Origins come before groups in the order of locks.
    INSERT INTO origins (key) VALUES (p_origin) ON CONFLICT (key) DO NOTHING;
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    DELETE FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT id INTO v_origin FROM origins WHERE key = p_origin;
    -- After the lock: every lease with the expired URL was granted earlier.
    UPDATE sources
    SET fresh_url = p_url, fresh_headers = p_headers, fresh_origin_id = v_origin, resolved_at = clock_timestamp(),
        stale_epoch = (SELECT last_value FROM lease_epochs)
    WHERE task_id = l.task_id AND ordinal = l.source;
    UPDATE ready_chunks
    SET origin_id = CASE WHEN source = l.source THEN v_origin ELSE origin_id END,
        status = CASE WHEN status = 'waiting' THEN 'ready' ELSE status END, not_before = NULL
    WHERE task_id = l.task_id AND kind = 'fetch';
END
$$;
