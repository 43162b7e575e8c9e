-- Returns of chunks: lost with their session, given back, or dropped because the task stops or starts over. The callers hold the locks of the groups.
-- A purge of an old content version stays, whatever happens to its task.

-- Puts leases back: `p_lost` when their session is gone or they are stalled, which counts as a death and fences the task. The death of a session in
-- p_killed is not counted: all of the installation was killed, and no chunk is to blame for that. Returns how many came back.
CREATE FUNCTION return_leases(p_chunks bigint[], p_epochs bigint[], p_lost boolean, p_policy policy, p_killed bigint[] DEFAULT '{}') RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    -- A holder whose session lives, and that has not said that it has stopped, may be writing.
    IF p_lost THEN
        PERFORM hold_out_leases(p_chunks, p_epochs);
    END IF;
    PERFORM divide_returned(p_chunks, p_epochs);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
        WHERE has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
        RETURNING l.*, heads_lane(l) AS heads
    ), returned AS (
        INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc,
            rank, attempts, deaths, moves, shrink_asks, remove_path, remove_size, remove_group, remove_failure, may_move)
        SELECT l.chunk_id, l.kind, l.task_id, l.group_id, coalesce(s.fresh_origin_id, l.origin_id), l.source, l.sink,
            l.version, l.first, l.last, l.durable, l.crc, l.rank,
            -- Progress resets the tries, unless its bytes are lost with the lease.
            CASE WHEN l.durable > l.resume AND goes_on(t) THEN 0 ELSE l.attempts END,
            -- A lease that waits in its lane was not worked on.
            CASE WHEN NOT p_lost OR NOT l.heads OR l.session_id = ANY (p_killed) THEN l.deaths
                WHEN l.durable > l.resume AND goes_on(t) THEN 1 ELSE l.deaths + 1 END,
            l.moves, CASE WHEN l.durable > l.resume OR t.planned THEN 0 ELSE l.shrink_asks END, l.remove_path, l.remove_size, l.remove_group, l.remove_failure,
            coalesce(l.kind = 'fetch' AND NOT t.planned AND t.mirrors > 1, false)
        FROM taken l LEFT JOIN task_of(l.task_id) AS t ON true
        -- The source may have got a fresh URL at another origin meanwhile.
        LEFT JOIN source_of(l.task_id, l.source) AS s ON l.kind = 'fetch'
        -- A trial is made again as long as one request brings all of a file.
        WHERE l.kind <> 'trial' OR EXISTS (SELECT 1 FROM leases h WHERE h.task_id = l.task_id AND h.tile IS NOT NULL)
    ), touched AS (
        UPDATE tasks t SET fenced = t.fenced OR p_lost, started_at = coalesce(t.started_at, n.since)
        FROM (
            -- A question writes nothing, and needs no fence.
            SELECT task_id, min(granted_at) AS since FROM taken WHERE kind NOT IN ('purge', 'resolve', 'trial') GROUP BY 1
        ) AS n
        WHERE has_id(t.id, n.task_id) AND (t.started_at IS NULL OR p_lost AND NOT t.fenced)
    ), served AS (
        -- The bytes of each source matter only for tasks with several sources.
        UPDATE sources s SET bytes = s.bytes + n.bytes, busy_ms = s.busy_ms + n.busy
        FROM (
            SELECT l.task_id, l.source, sum(l.durable - l.resume)::bigint AS bytes, sum(busy_ms(l.granted_at))::bigint AS busy
            FROM taken l CROSS JOIN task_of(l.task_id) AS t WHERE l.kind = 'fetch' AND t.mirrors > 1 GROUP BY 1, 2
        ) AS n
        WHERE has_id(s.task_id, n.task_id) AND s.ordinal = n.source
    ), counted AS (
        -- Corrects the charge of the group: the lease brought what is durable.
        UPDATE groups g SET served = g.served + n.charge / g.weight
        FROM (
            SELECT group_id, sum(byte_charge(durable - resume) - charged)::bigint AS charge FROM taken WHERE kind = 'fetch' GROUP BY 1
        ) AS n
        WHERE has_id(g.id, n.group_id) AND n.charge <> 0
    )
    SELECT count(*) INTO v_count FROM taken;
    PERFORM settle_returned(p_chunks, p_policy);
    RETURN v_count;
END
$$;

-- Like `return_leases`. If data raise an error, such as counts that don't add up, the leases come back group by group (I19). Groups for which that
-- fails too keep their leases, and are named in `stuck`.
CREATE FUNCTION return_leases_apart(
    p_chunks bigint[], p_epochs bigint[], p_lost boolean, p_policy policy, OUT count bigint, OUT stuck text[], p_killed bigint[] DEFAULT '{}'
)
LANGUAGE plpgsql AS $$
DECLARE
    v_group record;
BEGIN
    stuck := '{}';
    count := return_leases(p_chunks, p_epochs, p_lost, p_policy, p_killed);
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
    count := 0;
    FOR v_group IN
        SELECT coalesce(g.name, 'group ' || l.group_id) AS name, array_agg(l.chunk_id) AS chunks, array_agg(l.epoch) AS epochs
        FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
        LEFT JOIN group_of(l.group_id) AS g ON true GROUP BY l.group_id, g.name ORDER BY l.group_id
    LOOP
        BEGIN
            count := count + return_leases(v_group.chunks, v_group.epochs, p_lost, p_policy, p_killed);
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
            stuck := stuck || v_group.name;
        END;
    END LOOP;
END
$$;

-- Settles chunks that came back. A plain GET that can't be resumed starts over: the bytes and the plan of the previous holder are dropped with the
-- content version. A session that died after 64 KiB of it had come was stopped in the middle, rather than killed by it: its death is not counted, for
-- the first 49 versions. A chunk on which too many sessions died is halved, or fails its task.
CREATE FUNCTION settle_returned(p_chunks bigint[], p_policy policy) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    FOR v_row IN
        SELECT t.id, c.source, c.attempts,
            c.deaths - (c.deaths > 0 AND c.resume >= c.first + hardly_anything() AND t.version < 50)::integer AS deaths
        FROM ready_chunks c CROSS JOIN task_of(c.task_id) AS t
        WHERE c.id = ANY (p_chunks) AND c.kind = 'fetch' AND NOT goes_on(t) AND (c.resume > c.first OR t.planned)
    LOOP
        CONTINUE WHEN v_row.deaths >= p_policy.max_deaths;
        PERFORM start_over(v_row.id, p_policy.first_chunk, v_row.source, v_row.attempts, v_row.deaths);
    END LOOP;

    -- A chunk that kills every session which touches it must not go on for ever (I12).
    FOR v_row IN
        SELECT c.task_id, c.deaths FROM ready_chunks c
        WHERE c.id = ANY (p_chunks) AND c.kind NOT IN ('purge', 'trial') AND c.deaths >= p_policy.max_deaths AND NOT halve_chunk(c.id, p_policy.max_deaths)
    LOOP
        PERFORM fail_task(v_row.task_id, 'poison', format('%s sessions in a row died while working on it', v_row.deaths));
    END LOOP;
END
$$;

-- Halves what is left of a chunk on which too many sessions died, unless that is 64 KiB already: all bytes that can be fetched are fetched before a
-- chunk counts as poison. Each half may see one more death. Returns whether the chunk was halved.
CREATE FUNCTION halve_chunk(p_chunk bigint, p_deaths integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    c ready_chunks;
    v_end bigint;
BEGIN
    SELECT r.* INTO c FROM ready_chunks r CROSS JOIN task_of(r.task_id) AS t
    WHERE r.id = p_chunk AND r.kind = 'fetch' AND t.rung = 'chunks' AND r.last - r.resume > 65536;
    IF NOT FOUND THEN RETURN false; END IF;
    v_end := c.resume + greatest(65536, (c.last - c.resume) / 2);
    UPDATE ready_chunks SET last = v_end, deaths = p_deaths - 1 WHERE id = p_chunk;
    -- The chunks tile as before (I3). Before the first answer there is only one chunk, and the rest is not planned yet.
    UPDATE tasks SET chunks_left = chunks_left + 1 WHERE id = c.task_id AND planned;
    IF FOUND THEN
        INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank, deaths, moves)
        VALUES (c.task_id, c.group_id, c.origin_id, c.source, c.sink, c.version, v_end, c.last, v_end,
            c.rank, p_deaths - 1, c.moves);
    END IF;
    RETURN true;
END
$$;

-- A holder gives leases back, and has stopped writing.
CREATE FUNCTION report_released(
    p_session bigint, p_chunks bigint[], p_epochs bigint[], p_offsets bigint[], p_crcs bigint[], p_policy policy
) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    PERFORM report_progress(array_fill(p_session, ARRAY[array_length(p_chunks, 1)]), p_chunks, p_epochs, p_offsets, p_crcs);
    PERFORM set_config('synchronous_commit', 'on', true);
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
    WHERE l.session_id = p_session;
    IF v_chunks IS NOT NULL THEN
        PERFORM return_leases(v_chunks, v_epochs, false, p_policy);
    END IF;
END
$$;

-- Drops everything of the task's content version, its part file included, and begins the next one with a single chunk, which it returns. The source
-- is asked on its own rung. A task whose pause waited for its file to be put in place is paused now. A task that has failed stays failed; if it is
-- retried, it begins without any bytes.
CREATE FUNCTION start_over(
    p_task bigint, p_first_chunk bigint, p_source integer, p_attempts integer, p_deaths integer, p_reported bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_counted bigint;
    v_source integer;
    v_rung text;
    v_origin bigint;
    v_chunk bigint;
    v_state text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    PERFORM lock_paths_of(ARRAY[p_task]);
    v_state := CASE WHEN t.state = 'failed' THEN 'failed' WHEN t.desired = 'pause' THEN 'paused' ELSE 'queued' END;
    SELECT t.bytes_done + coalesce(sum(n), 0) INTO v_counted FROM (
        SELECT durable - first AS n FROM leases WHERE task_id = p_task AND kind = 'fetch'
        UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = p_task AND kind = 'fetch'
    ) AS parts;
    t.started_at := coalesce(t.started_at, leased_since(p_task));
    PERFORM hold_out(ARRAY[p_task], p_reported);
    PERFORM settle_charges(ARRAY[p_task]);
    DELETE FROM leases WHERE task_id = p_task AND kind <> 'purge';
    DELETE FROM ready_chunks WHERE task_id = p_task AND kind <> 'purge';
    DELETE FROM done_chunks WHERE task_id = p_task;
    PERFORM remember_version(t, coalesce(t.source, p_source), v_counted);
    SELECT s.ordinal, s.rung, coalesce(s.fresh_origin_id, s.origin_id) INTO v_source, v_rung, v_origin FROM sources s
    WHERE s.task_id = p_task ORDER BY s.dead, s.ordinal <> p_source, s.ordinal LIMIT 1;
    UPDATE tasks
    SET version = version + 1, planned = false, rung = v_rung, fenced = false, chunks_left = 1, started_at = t.started_at,
        bytes_done = 0, size = expected_size, etag = NULL, last_modified = NULL, date_strong = false, stated_digests = NULL,
        source = NULL, mixes = false, state = v_state
    WHERE id = p_task;
    UPDATE groups
    SET queued = queued + (v_state = 'queued')::integer - (t.state = 'queued')::integer,
        finalizing = finalizing - (t.state = 'finalizing')::integer,
        paused = paused + (v_state = 'paused')::integer - (t.state = 'paused')::integer,
        failed = failed + (v_state = 'failed')::integer - (t.state = 'failed')::integer,
        bytes_done = bytes_done - v_counted,
        bytes_total = bytes_total - coalesce(t.size, 0) + coalesce(t.expected_size, 0),
        unknown_tasks = unknown_tasks + (v_state <> 'failed' AND t.expected_size IS NULL)::integer
            - (t.state <> 'failed' AND t.size IS NULL)::integer
    WHERE id = t.group_id;
    IF t.started_at IS NOT NULL THEN
        -- Its file may be at the path already, although no report said so. If the task goes on, its next version replaces that file.
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status, remove_path)
        VALUES ('purge', p_task, 0, 0, t.sink, t.version, chunk_rank('purge', 0, false), purge_status(p_task),
            CASE WHEN v_state = 'failed' AND had_path_last(t) THEN t.path END);
    END IF;
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, rank, attempts, deaths, status, may_move)
    VALUES (p_task, t.group_id, v_origin, v_source, t.sink, t.version + 1, 0,
        CASE WHEN v_rung <> 'chunks' THEN t.expected_size ELSE least(t.expected_size, p_first_chunk) END,
        chunk_rank('fetch', t.priority, true), p_attempts, p_deaths, CASE WHEN v_state = 'queued' THEN 'ready' ELSE 'parked' END,
        t.mirrors > 1)
    RETURNING id INTO v_chunk;
    RETURN v_chunk;
END
$$;

-- Parks every chunk of the tasks: leased ones are taken back with their durable offsets. Their holders may still be writing, so the tasks are fenced;
-- except for the holder of p_reported, which has just reported a failure and has stopped. The source may have got a fresh URL at another origin
-- meanwhile.
CREATE FUNCTION park_chunks(p_tasks bigint[], p_reported bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_out(p_tasks, p_reported);
    PERFORM divide_returned(array_agg(l.chunk_id), array_agg(l.epoch)) FROM leases l WHERE l.task_id = ANY (p_tasks) AND l.tile IS NOT NULL;
    DELETE FROM leases WHERE task_id = ANY (p_tasks) AND kind IN ('resolve', 'trial');
    DELETE FROM ready_chunks WHERE task_id = ANY (p_tasks) AND kind IN ('resolve', 'trial');
    PERFORM settle_charges(p_tasks);
    UPDATE tasks t SET fenced = t.fenced OR n.is_lost, started_at = coalesce(t.started_at, n.since)
    FROM (
        SELECT task_id, min(granted_at) AS since, bool_or(chunk_id IS DISTINCT FROM p_reported) AS is_lost
        FROM leases WHERE task_id = ANY (p_tasks) AND kind <> 'purge' GROUP BY 1
    ) AS n
    WHERE has_id(t.id, n.task_id) AND (t.started_at IS NULL OR n.is_lost AND NOT t.fenced);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases WHERE task_id = ANY (p_tasks) AND kind <> 'purge' RETURNING *
    )
    INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc, rank,
        status, attempts, deaths, moves, may_move)
    SELECT l.chunk_id, l.kind, l.task_id, l.group_id, coalesce(s.fresh_origin_id, l.origin_id), l.source, l.sink, l.version,
        l.first, l.last, l.durable, l.crc, l.rank, 'parked', l.attempts, l.deaths, l.moves, coalesce(l.kind = 'fetch' AND NOT t.planned AND t.mirrors > 1, false)
    FROM taken l LEFT JOIN task_of(l.task_id) AS t ON true
    LEFT JOIN source_of(l.task_id, l.source) AS s ON l.kind = 'fetch';
    UPDATE ready_chunks SET status = 'parked', not_before = NULL
    WHERE task_id = ANY (p_tasks) AND status <> 'parked' AND kind <> 'purge';
END
$$;

-- Remembers the sessions that may still be writing under leases of the tasks that are about to be taken away (I13), or have a connection
-- (I5). A question to a resolver does neither, and purges are not taken away with the rest. A session that is gone is not waited for,
-- and neither is the holder of the chunk p_reported, which has said that it has stopped.
CREATE FUNCTION hold_out(p_tasks bigint[], p_reported bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdouts (epoch, session_id, sync, lane, origin_id, group_id, task_id, sink, path)
    SELECT l.epoch, l.session_id, l.sync, l.lane, l.origin_id, l.group_id, l.task_id, t.sink, CASE WHEN may_place(l.kind, l.first, l.last, t) THEN t.path ELSE '' END
    FROM leases l CROSS JOIN task_of(l.task_id) AS t
    WHERE l.task_id = ANY (p_tasks) AND l.kind IN ('fetch', 'finalize', 'trial')
        AND l.chunk_id IS DISTINCT FROM p_reported
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id)
    ON CONFLICT (epoch) DO NOTHING;
END
$$;

-- The same for some leases alone, if they are still held. A purge that is taken away may still delete a file.
CREATE FUNCTION hold_out_leases(p_chunks bigint[], p_epochs bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO holdouts (epoch, session_id, sync, lane, origin_id, group_id, task_id, sink, path)
    SELECT l.epoch, l.session_id, l.sync, l.lane, l.origin_id, l.group_id, l.task_id, l.sink,
        CASE WHEN l.kind = 'purge' THEN coalesce(l.remove_path, '') WHEN may_place(l.kind, l.first, l.last, t) THEN coalesce(t.path, '') ELSE '' END
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
    LEFT JOIN task_of(l.task_id) AS t ON true
    WHERE l.kind <> 'resolve' AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id)
    ON CONFLICT (epoch) DO NOTHING
$$;
