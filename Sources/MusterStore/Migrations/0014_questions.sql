-- Questions to a group's resolver (row 21 of http.md): chunks of kind `resolve`, one at a time per task.

-- A question without an answer: asked again after a backoff, until its source is given up, and with it whatever waits for it.
-- Returns what followed.
CREATE FUNCTION fail_question(
    l leases, t tasks, p_retry_after bigint, p_detail text, p_first_chunk bigint, p_max_attempts integer, p_deaths integer,
    p_base_ms bigint, p_maximum_ms bigint, p_random double precision
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE tasks SET attempts = attempts + 1 WHERE id = t.id;
    IF l.attempts + 1 < p_max_attempts THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_first_chunk, p_deaths);
        UPDATE ready_chunks
        SET attempts = l.attempts + 1, status = 'waiting', not_before = statement_timestamp() + greatest(
            backoff(l.attempts + 1, p_base_ms, p_maximum_ms, p_random), least(3600, coalesce(p_retry_after, 0)) * interval '1 s')
        WHERE id = l.chunk_id;
        RETURN 'retry';
    END IF;

    DELETE FROM leases WHERE chunk_id = l.chunk_id;
    UPDATE sources SET dead = true WHERE task_id = t.id AND ordinal = l.source;
    IF NOT EXISTS (SELECT 1 FROM sources WHERE task_id = t.id AND NOT dead) THEN
        PERFORM fail_task(t.id, 'authentication', p_detail);
        RETURN 'failed';
    END IF;
    v_next := next_source(t, l.source, false);
    IF v_next IS NULL OR t.planned AND NOT t.mixes THEN
        PERFORM start_over(t.id, false, p_first_chunk, coalesce(v_next, l.source), 0, 0);
    ELSE
        PERFORM move_chunks(t.id, l.source, v_next);
        UPDATE ready_chunks SET status = 'ready', not_before = NULL
        WHERE task_id = t.id AND kind = 'fetch' AND status = 'waiting';
    END IF;
    RETURN 'nextSource';
END
$$;

-- The resolver's answer: every further request to the source goes to the fresh URL, and whoever waited for it goes on.
CREATE FUNCTION report_resolved(p_session bigint, p_chunk bigint, p_epoch bigint, p_url text, p_origin text, p_headers jsonb)
RETURNS void
LANGUAGE plpgsql AS $$
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
    -- After the lock: every lease with the URL of before was granted earlier.
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

-- Ranges don't work after all: the task starts over as one stream, as long as there are tries left. A mirror of the source that
-- taught the version is only left alone for it.
CREATE OR REPLACE FUNCTION report_restart(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_detail text, p_first_chunk bigint, p_max_attempts integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_outcome text;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'fetch';
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE tasks SET failure_kind = 'badRange', failure_detail = p_detail, failure_at = statement_timestamp(),
        failure_status = NULL, failure_source = l.source, failure_request = NULL
    WHERE id = l.task_id RETURNING * INTO t;
    UPDATE sources SET failures = failures + 1 WHERE task_id = t.id AND ordinal = l.source;
    IF t.source <> l.source THEN
        v_outcome := leave_mirror(l, t, l.source, p_first_chunk, 2147483647);
    END IF;
    IF v_outcome IS NULL THEN
        UPDATE tasks SET attempts = attempts + 1 WHERE id = t.id;
        IF l.attempts + 1 >= p_max_attempts THEN
            PERFORM fail_task(t.id, 'badRange', p_detail);
            v_outcome := 'failed';
        ELSE
            PERFORM start_over(t.id, true, p_first_chunk, l.source, l.attempts + 1, l.deaths);
            v_outcome := 'startOver';
        END IF;
    END IF;
    PERFORM note_attempt(t.id, p_session, l.source, 'badRange', NULL, p_detail, NULL, NULL, l.durable, v_outcome);
END
$$;
