-- How chunks come back: lost with their session, given back, put off after a failure, or dropped because the task starts
-- over or ends. The callers hold the locks of the groups concerned.

-- When something that was put off is due, it can be leased. A transaction of its own: it takes no other lock.
CREATE FUNCTION promote_due_chunks(p_limit integer) RETURNS bigint
LANGUAGE sql AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ready_chunks
        WHERE status = 'waiting' AND not_before <= statement_timestamp()
        ORDER BY not_before LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), promoted AS (
        UPDATE ready_chunks c SET status = 'ready', not_before = NULL FROM due WHERE c.id = due.id RETURNING 1
    )
    SELECT count(*) FROM promoted
$$;

-- The rank of a chunk: finalizing before fetching, higher priority before lower, begun files before new ones.
CREATE FUNCTION chunk_rank(p_kind text, p_priority integer, p_is_first boolean) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_kind = 'fetch' THEN -2 * p_priority - (NOT p_is_first)::integer ELSE -1000000 END
$$;

-- Drops everything of the task's content version and begins the next one with a single chunk, which it returns.
CREATE FUNCTION start_over(
    p_task bigint, p_stream boolean, p_first_chunk bigint, p_source integer, p_attempts integer, p_deaths integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_counted bigint;
    v_source integer;
    v_origin bigint;
    v_chunk bigint;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    SELECT t.bytes_done + coalesce(sum(n), 0) INTO v_counted FROM (
        SELECT durable - first AS n FROM leases WHERE task_id = p_task AND kind = 'fetch'
        UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = p_task AND kind = 'fetch'
    ) AS parts;
    DELETE FROM leases WHERE task_id = p_task;
    DELETE FROM ready_chunks WHERE task_id = p_task;
    DELETE FROM done_chunks WHERE task_id = p_task;
    SELECT s.ordinal, s.origin_id INTO v_source, v_origin FROM sources s
    WHERE s.task_id = p_task ORDER BY s.dead, s.ordinal <> p_source, s.ordinal LIMIT 1;
    UPDATE tasks
    SET version = version + 1, planned = false, stream = p_stream, fenced = false, chunks_left = 1, leases = 0,
        bytes_done = 0, size = expected_size, etag = NULL, last_modified = NULL, state = 'queued'
    WHERE id = p_task;
    UPDATE groups
    SET queued = queued + (t.state <> 'queued')::integer, active = active - (t.state = 'active')::integer,
        finalizing = finalizing - (t.state = 'finalizing')::integer, paused = paused - (t.state = 'paused')::integer,
        bytes_done = bytes_done - v_counted,
        bytes_total = bytes_total - coalesce(t.size, 0) + coalesce(t.expected_size, 0),
        unknown_tasks = unknown_tasks + (t.expected_size IS NULL)::integer - (t.size IS NULL)::integer
    WHERE id = t.group_id;
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, rank, attempts, deaths)
    VALUES (p_task, t.group_id, v_origin, v_source, t.sink, t.version + 1, 0,
        CASE WHEN p_stream THEN t.expected_size ELSE least(t.expected_size, p_first_chunk) END,
        chunk_rank('fetch', t.priority, true), p_attempts, p_deaths)
    RETURNING id INTO v_chunk;
    RETURN v_chunk;
END
$$;

-- Gives up a task that is not terminal. What it has is kept, out of reach of any claim, until it is retried or cancelled.
CREATE FUNCTION fail_task(p_task bigint, p_kind text, p_detail text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_group_name text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    IF t.state IN ('succeeded', 'failed', 'cancelled') THEN RETURN; END IF;
    PERFORM park_chunks(ARRAY[p_task]);
    UPDATE tasks
    SET state = 'failed', leases = 0, failure_kind = p_kind, failure_detail = p_detail, failure_at = statement_timestamp(),
        finished_at = statement_timestamp()
    WHERE id = p_task;
    UPDATE groups
    SET queued = queued - (t.state = 'queued')::integer, active = active - (t.state = 'active')::integer,
        paused = paused - (t.state = 'paused')::integer, finalizing = finalizing - (t.state = 'finalizing')::integer,
        failed = failed + 1
    WHERE id = t.group_id
    RETURNING name INTO v_group_name;
    PERFORM write_event('tsk-' || p_task || '-' || t.run || '-failed', 'dev.muster.task.failed.v1', v_group_name,
        jsonb_build_object('group', v_group_name, 'key', t.key, 'path', t.path,
            'failure', jsonb_build_object('kind', p_kind, 'detail', p_detail)));
    PERFORM close_groups(ARRAY[t.group_id]);
END
$$;

-- Takes every chunk of the tasks out of reach: leased ones are taken back with their durable offsets. Whoever held a lease
-- may still be writing, so the tasks are fenced.
CREATE FUNCTION park_chunks(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks t SET fenced = true
    WHERE t.id = ANY (p_tasks) AND NOT t.fenced AND EXISTS (SELECT 1 FROM leases l WHERE l.task_id = t.id);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases WHERE task_id = ANY (p_tasks) RETURNING *
    )
    INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc, rank,
        status, attempts, deaths)
    SELECT chunk_id, kind, task_id, group_id, origin_id, source, sink, version, first, last, durable, crc, rank,
        'parked', attempts, deaths
    FROM taken;
    UPDATE ready_chunks SET status = 'parked', not_before = NULL WHERE task_id = ANY (p_tasks) AND status <> 'parked';
END
$$;

-- Puts leases back: `p_lost` when their session is gone, which counts as a death and fences the task. A stream can't be taken
-- up in the middle, so what a predecessor had of it is dropped with its content version. Returns how many came back.
CREATE FUNCTION return_leases(p_chunks bigint[], p_epochs bigint[], p_lost boolean, p_first_chunk bigint, p_deaths integer)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
    v_row record;
BEGIN
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch
        RETURNING l.*
    ), returned AS (
        INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc,
            rank, attempts, deaths, remove_path, remove_size)
        SELECT l.chunk_id, l.kind, l.task_id, l.group_id, l.origin_id, l.source, l.sink, l.version, l.first, l.last, l.durable,
            l.crc, l.rank,
            -- Progress clears the record, but not that of a stream, whose progress is lost with its lease.
            CASE WHEN l.durable > l.resume AND NOT t.stream THEN 0 ELSE l.attempts END,
            CASE WHEN NOT p_lost THEN l.deaths WHEN l.durable > l.resume AND NOT t.stream THEN 1 ELSE l.deaths + 1 END,
            l.remove_path, l.remove_size
        FROM taken l LEFT JOIN tasks t ON t.id = l.task_id
    ), touched AS (
        UPDATE tasks t
        SET leases = t.leases - n.fetches, fenced = t.fenced OR p_lost,
            state = CASE WHEN t.state = 'active' AND t.leases = n.fetches THEN 'queued' ELSE t.state END
        FROM (
            SELECT task_id, count(*) FILTER (WHERE kind = 'fetch')::integer AS fetches
            FROM taken WHERE kind <> 'purge' GROUP BY 1
        ) AS n
        WHERE t.id = n.task_id
        RETURNING t.group_id, (t.state = 'queued' AND n.fetches > 0)::integer AS stops
    ), counted AS (
        UPDATE groups g SET queued = g.queued + n.stops, active = g.active - n.stops
        FROM (SELECT group_id, sum(stops) AS stops FROM touched GROUP BY 1) AS n
        WHERE g.id = n.group_id AND n.stops > 0
    )
    SELECT count(*) INTO v_count FROM taken;

    FOR v_row IN
        SELECT t.id, c.source, c.attempts, c.deaths FROM ready_chunks c JOIN tasks t ON t.id = c.task_id
        WHERE c.id = ANY (p_chunks) AND c.kind = 'fetch' AND t.stream AND c.resume > c.first AND c.deaths < p_deaths
    LOOP
        PERFORM start_over(v_row.id, true, p_first_chunk, v_row.source, v_row.attempts, v_row.deaths);
    END LOOP;

    -- A chunk that kills whoever touches it must not go on for ever (I12).
    FOR v_row IN
        SELECT c.task_id, c.deaths FROM ready_chunks c
        WHERE c.id = ANY (p_chunks) AND c.kind <> 'purge' AND c.deaths >= p_deaths
    LOOP
        PERFORM fail_task(v_row.task_id, 'poison', format('%s sessions in a row died while working on it', v_row.deaths));
    END LOOP;
    RETURN v_count;
END
$$;

-- Locks the groups of leases, by id, before anything of them moves.
CREATE FUNCTION lock_groups_of(p_chunks bigint[]) RETURNS void
LANGUAGE sql AS $$
    SELECT g.id FROM groups g
    WHERE g.id IN (SELECT l.group_id FROM leases l WHERE l.chunk_id = ANY (p_chunks))
    ORDER BY g.id FOR NO KEY UPDATE
$$;

-- Ends sessions and takes back what they held. A session row that another sweeper has locked is left to it.
CREATE FUNCTION sweep_sessions(p_limit integer, p_first_chunk bigint, p_deaths integer) RETURNS TABLE (sessions bigint, leases bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_sessions bigint[];
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(dead.id) INTO v_sessions FROM (
        SELECT s.id FROM sessions s WHERE s.expires_at < statement_timestamp()
        ORDER BY s.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) AS dead;
    DELETE FROM sessions s WHERE s.id = ANY (v_sessions);
    -- Leases whose session is gone, whoever ended it.
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id);
    sessions := coalesce(array_length(v_sessions, 1), 0);
    leases := 0;
    IF v_chunks IS NOT NULL THEN
        PERFORM lock_groups_of(v_chunks);
        leases := return_leases(v_chunks, v_epochs, true, p_first_chunk, p_deaths);
    END IF;
    RETURN NEXT;
END
$$;

-- A heartbeat proves that a process lives, not that a transfer moves: leases without progress for so long are taken back too.
CREATE FUNCTION sweep_stalled(p_stall interval, p_limit integer, p_first_chunk bigint, p_deaths integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(s.chunk_id), array_agg(s.epoch) INTO v_chunks, v_epochs FROM (
        -- Copying and verifying a very large file may be silent for long; it gets much longer.
        SELECT chunk_id, epoch FROM leases
        WHERE progress_at < statement_timestamp() - p_stall * CASE WHEN kind = 'finalize' THEN 36 ELSE 1 END LIMIT p_limit
    ) AS s;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    PERFORM lock_groups_of(v_chunks);
    RETURN return_leases(v_chunks, v_epochs, true, p_first_chunk, p_deaths);
END
$$;
