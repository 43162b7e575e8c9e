-- How chunks come back where a task may have several sources and a resolver be asked: replacements of functions of before, with
-- their signatures, so that an older coordinator does the same (fault F18).
--
-- A chunk of kind `resolve` is a question to the group's resolver. It fetches nothing: it counts neither in its task's leases nor in
-- its chunks or bytes. It is not kept when its task stops, starts over or ends: whoever is refused next asks again.
-- A purge of an old content version outlives whatever becomes of its task.

-- Adds to the record of what was tried. The newest 50 are kept (Limits.attemptsKept).
CREATE FUNCTION note_attempt(
    p_task bigint, p_session bigint, p_source integer, p_kind text, p_status integer, p_detail text, p_request text,
    p_address text, p_byte bigint, p_outcome text
) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO attempts (task_id, worker, source, kind, status, detail, request_id, address, byte, outcome)
    VALUES (p_task, (SELECT s.worker FROM sessions s WHERE s.id = p_session), p_source, p_kind, p_status, p_detail, p_request,
        p_address, p_byte, p_outcome);
    DELETE FROM attempts a WHERE a.task_id = p_task AND a.serial <= (
        SELECT o.serial FROM attempts o WHERE o.task_id = p_task ORDER BY o.serial DESC OFFSET 50 LIMIT 1);
$$;

-- Drops everything of the task's content version, its part file included, and begins the next one with a single chunk, which it
-- returns. If the task was to be paused as soon as it would not be put in place any more, that is now.
CREATE OR REPLACE FUNCTION start_over(
    p_task bigint, p_stream boolean, p_first_chunk bigint, p_source integer, p_attempts integer, p_deaths integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_counted bigint;
    v_source integer;
    v_origin bigint;
    v_chunk bigint;
    v_state text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    v_state := CASE WHEN t.desired = 'pause' THEN 'paused' ELSE 'queued' END;
    SELECT t.bytes_done + coalesce(sum(n), 0) INTO v_counted FROM (
        SELECT durable - first AS n FROM leases WHERE task_id = p_task AND kind = 'fetch'
        UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = p_task AND kind = 'fetch'
    ) AS parts;
    PERFORM hold_out(ARRAY[p_task]);
    PERFORM settle_charges(ARRAY[p_task]);
    DELETE FROM leases WHERE task_id = p_task AND kind <> 'purge';
    DELETE FROM ready_chunks WHERE task_id = p_task AND kind <> 'purge';
    DELETE FROM done_chunks WHERE task_id = p_task;
    SELECT s.ordinal, coalesce(s.fresh_origin_id, s.origin_id) INTO v_source, v_origin FROM sources s
    WHERE s.task_id = p_task ORDER BY s.dead, s.ordinal <> p_source, s.ordinal LIMIT 1;
    UPDATE tasks
    SET version = version + 1, planned = false, stream = p_stream, fenced = false, chunks_left = 1, leases = 0,
        bytes_done = 0, size = expected_size, etag = NULL, last_modified = NULL, date_strong = false, stated_digests = NULL,
        source = NULL, mixes = false, state = v_state
    WHERE id = p_task;
    UPDATE groups
    SET queued = queued + (v_state = 'queued')::integer - (t.state = 'queued')::integer,
        active = active - (t.state = 'active')::integer, finalizing = finalizing - (t.state = 'finalizing')::integer,
        paused = paused + (v_state = 'paused')::integer - (t.state = 'paused')::integer,
        bytes_done = bytes_done - v_counted,
        bytes_total = bytes_total - coalesce(t.size, 0) + coalesce(t.expected_size, 0),
        unknown_tasks = unknown_tasks + (t.expected_size IS NULL)::integer - (t.size IS NULL)::integer
    WHERE id = t.group_id;
    IF t.started_at IS NOT NULL THEN
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status)
        VALUES ('purge', p_task, 0, 0, t.sink, t.version, chunk_rank('purge', 0, false), purge_status(p_task));
    END IF;
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, rank, attempts, deaths, status)
    VALUES (p_task, t.group_id, v_origin, v_source, t.sink, t.version + 1, 0,
        CASE WHEN p_stream THEN t.expected_size ELSE least(t.expected_size, p_first_chunk) END,
        chunk_rank('fetch', t.priority, true), p_attempts, p_deaths, CASE WHEN v_state = 'paused' THEN 'parked' ELSE 'ready' END)
    RETURNING id INTO v_chunk;
    RETURN v_chunk;
END
$$;

-- Gives up a task that is not terminal. What it has is kept, out of reach of any claim, until it is retried or cancelled. Which
-- answer it was is told if it is the one that was recorded with the task last.
CREATE OR REPLACE FUNCTION fail_task(p_task bigint, p_kind text, p_detail text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_group_name text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    IF t.state IN ('succeeded', 'failed', 'cancelled') THEN RETURN; END IF;
    IF t.failure_kind IS DISTINCT FROM p_kind OR t.failure_detail IS DISTINCT FROM p_detail THEN
        t.failure_status := NULL;
        t.failure_source := NULL;
        t.failure_request := NULL;
    END IF;
    PERFORM park_chunks(ARRAY[p_task]);
    UPDATE tasks
    SET state = 'failed', leases = 0, failure_kind = p_kind, failure_detail = p_detail, failure_at = statement_timestamp(),
        failure_status = t.failure_status, failure_source = t.failure_source, failure_request = t.failure_request,
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
            'failure', jsonb_build_object('kind', p_kind, 'detail', p_detail) || jsonb_strip_nulls(jsonb_build_object(
                'status', t.failure_status, 'requestID', t.failure_request,
                'source', (SELECT s.url FROM sources s WHERE s.task_id = p_task AND s.ordinal = t.failure_source)))));
    PERFORM close_groups(ARRAY[t.group_id]);
END
$$;

-- Takes every chunk of the tasks out of reach: leased ones are taken back with their durable offsets. Whoever held a lease
-- may still be writing, so the tasks are fenced. The source may have got a fresh URL at another origin meanwhile.
CREATE OR REPLACE FUNCTION park_chunks(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'resolve';
    DELETE FROM ready_chunks WHERE task_id = ANY (p_tasks) AND kind = 'resolve';
    PERFORM hold_out(p_tasks);
    PERFORM settle_charges(p_tasks);
    UPDATE tasks t SET fenced = true
    WHERE t.id = ANY (p_tasks) AND NOT t.fenced AND EXISTS (
        SELECT 1 FROM leases l WHERE l.task_id = t.id AND l.kind <> 'purge');
    WITH taken AS MATERIALIZED (
        DELETE FROM leases WHERE task_id = ANY (p_tasks) AND kind <> 'purge' RETURNING *
    )
    INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc, rank,
        status, attempts, deaths, moves)
    SELECT l.chunk_id, l.kind, l.task_id, l.group_id, coalesce(s.fresh_origin_id, l.origin_id), l.source, l.sink, l.version,
        l.first, l.last, l.durable, l.crc, l.rank, 'parked', l.attempts, l.deaths, l.moves
    FROM taken l LEFT JOIN sources s ON s.task_id = l.task_id AND s.ordinal = l.source AND l.kind = 'fetch';
    UPDATE ready_chunks SET status = 'parked', not_before = NULL
    WHERE task_id = ANY (p_tasks) AND status <> 'parked' AND kind <> 'purge';
END
$$;

-- Puts leases back: `p_lost` when their session is gone, which counts as a death and fences the task. A stream can't be taken
-- up in the middle, so what a predecessor had of it is dropped with its content version. Returns how many came back.
CREATE OR REPLACE FUNCTION return_leases(
    p_chunks bigint[], p_epochs bigint[], p_lost boolean, p_first_chunk bigint, p_deaths integer
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
    v_row record;
BEGIN
    -- Whoever is heard of still, and has not said that he has stopped, may be writing.
    IF p_lost THEN
        PERFORM hold_out_leases(p_chunks, p_epochs);
    END IF;
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch
        RETURNING l.*
    ), returned AS (
        INSERT INTO ready_chunks (id, kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, crc,
            rank, attempts, deaths, moves, remove_path, remove_size)
        SELECT l.chunk_id, l.kind, l.task_id, l.group_id, coalesce(s.fresh_origin_id, l.origin_id), l.source, l.sink,
            l.version, l.first, l.last, l.durable, l.crc, l.rank,
            -- Progress clears the record, but not that of a stream, whose progress is lost with its lease.
            CASE WHEN l.durable > l.resume AND NOT t.stream THEN 0 ELSE l.attempts END,
            CASE WHEN NOT p_lost THEN l.deaths WHEN l.durable > l.resume AND NOT t.stream THEN 1 ELSE l.deaths + 1 END,
            l.moves, l.remove_path, l.remove_size
        FROM taken l LEFT JOIN tasks t ON t.id = l.task_id
        -- The source may have got a fresh URL at another origin meanwhile.
        LEFT JOIN sources s ON s.task_id = l.task_id AND s.ordinal = l.source AND l.kind = 'fetch'
    ), touched AS (
        UPDATE tasks t
        -- Whoever asks a resolver writes nothing, and needs no fence.
        SET leases = t.leases - n.fetches, fenced = t.fenced OR p_lost AND n.writers > 0,
            state = CASE WHEN t.state = 'active' AND t.leases = n.fetches THEN 'queued' ELSE t.state END
        FROM (
            SELECT task_id, count(*) FILTER (WHERE kind = 'fetch')::integer AS fetches,
                count(*) FILTER (WHERE kind <> 'resolve') AS writers
            FROM taken WHERE kind <> 'purge' GROUP BY 1
        ) AS n
        WHERE t.id = n.task_id
        RETURNING t.group_id, (t.state = 'queued' AND n.fetches > 0)::integer AS stops
    ), served AS (
        -- What each source carried matters where there are several.
        UPDATE sources s SET bytes = s.bytes + n.bytes, busy_ms = s.busy_ms + n.busy
        FROM (
            SELECT l.task_id, l.source, sum(l.durable - l.resume)::bigint AS bytes, sum(busy_ms(l.granted_at))::bigint AS busy
            FROM taken l JOIN tasks t ON t.id = l.task_id WHERE l.kind = 'fetch' AND t.mirrors > 1 GROUP BY 1, 2
        ) AS n
        WHERE s.task_id = n.task_id AND s.ordinal = n.source
    ), counted AS (
        UPDATE groups g
        SET queued = g.queued + n.stops, active = g.active - n.stops, served = g.served + n.charge / g.weight
        FROM (
            SELECT group_id, sum(stops) AS stops, sum(charge)::bigint AS charge
            FROM (
                SELECT group_id, stops, 0 AS charge FROM touched
                -- It brought what is durable, whatever the group was charged.
                UNION ALL SELECT group_id, 0, byte_charge(durable - resume) - charged FROM taken WHERE kind = 'fetch'
            ) AS parts
            GROUP BY 1
        ) AS n
        WHERE g.id = n.group_id AND (n.stops > 0 OR n.charge <> 0)
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

-- Takes tasks out of everything that could be leased, and has what is left of them on disk deleted. That covers what was to be
-- deleted of their older versions; what is left of a task that succeeded is older versions alone. It is deleted when everybody
-- who held a lease has stopped (I13).
CREATE OR REPLACE FUNCTION drop_chunks(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hold_out(p_tasks);
    PERFORM settle_charges(p_tasks);
    DELETE FROM leases l USING tasks t
    WHERE l.task_id = ANY (p_tasks) AND t.id = l.task_id AND (l.kind <> 'purge' OR t.state <> 'succeeded');
    DELETE FROM ready_chunks c USING tasks t
    WHERE c.task_id = ANY (p_tasks) AND t.id = c.task_id AND (c.kind <> 'purge' OR t.state <> 'succeeded');
    DELETE FROM done_chunks WHERE task_id = ANY (p_tasks);
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status)
    SELECT 'purge', id, 0, 0, sink, version, chunk_rank('purge', 0, false), purge_status(id)
    FROM tasks WHERE id = ANY (p_tasks) AND started_at IS NOT NULL AND state <> 'succeeded' ORDER BY id;
END
$$;

-- Puts failed tasks back with what they had, every source usable again and the time for them given anew. A group that had
-- finished opens its next generation. It gets its time anew too, and so does a group whose time was over. Returns how many tasks there
-- were.
CREATE OR REPLACE FUNCTION retry_group(p_group bigint, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    v_tasks := chosen_tasks(p_group, p_keys, '{failed}');
    IF cardinality(v_tasks) = 0 THEN RETURN 0; END IF;
    UPDATE sources SET dead = false, mismatches = 0, refreshes = 0
    WHERE task_id = ANY (v_tasks) AND (dead OR mismatches > 0 OR refreshes > 0);
    UPDATE tasks
    SET state = CASE WHEN EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = tasks.id AND c.kind = 'finalize')
            THEN 'finalizing' ELSE 'queued' END,
        desired = 'run', run = run + 1, restarts = 0, clean = false, finished_at = NULL,
        deadline_at = statement_timestamp() + time_limit
    WHERE id = ANY (v_tasks);
    UPDATE ready_chunks SET status = 'ready', not_before = NULL, attempts = 0, deaths = 0, moves = 0
    WHERE task_id = ANY (v_tasks) AND kind <> 'purge';
    UPDATE groups g
    SET failed = g.failed - cardinality(v_tasks), queued = g.queued + n.queued, finalizing = g.finalizing + n.finalizing,
        generation = g.generation + (g.state NOT IN ('open', 'sealed'))::integer,
        state = CASE WHEN g.state = 'open' THEN 'open' ELSE 'sealed' END,
        -- Whoever retries wants it to go on; other tasks that were paused stay so.
        desired = 'run', finished_at = NULL, overdue = false,
        deadline_at = CASE WHEN g.overdue OR g.state NOT IN ('open', 'sealed') THEN statement_timestamp() + g.time_limit
            ELSE g.deadline_at END
    FROM (
        SELECT count(*) FILTER (WHERE t.state = 'queued') AS queued, count(*) FILTER (WHERE t.state = 'finalizing') AS finalizing
        FROM tasks t WHERE t.id = ANY (v_tasks)
    ) AS n
    WHERE g.id = p_group;
    PERFORM restart_streams(v_tasks);
    RETURN cardinality(v_tasks);
END
$$;
