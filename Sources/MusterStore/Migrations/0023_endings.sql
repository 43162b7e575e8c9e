-- What becomes of leases that are taken away: groups are charged for what they brought, and whoever may still be writing under
-- them is remembered (I13). Replacements of functions of before, with their signatures.

-- Drops everything of the task's content version, its part file included, and begins the next one with a single chunk, which it
-- returns. If the task was to be paused as soon as it would not be put in place any more, that is now. One that has failed stays so; if it is
-- tried again, it begins with nothing.
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
    v_state := CASE WHEN t.state = 'failed' THEN 'failed' WHEN t.desired = 'pause' THEN 'paused' ELSE 'queued' END;
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
        failed = failed + (v_state = 'failed')::integer - (t.state = 'failed')::integer,
        bytes_done = bytes_done - v_counted,
        bytes_total = bytes_total - coalesce(t.size, 0) + coalesce(t.expected_size, 0),
        unknown_tasks = unknown_tasks + (t.expected_size IS NULL)::integer - (t.size IS NULL)::integer
    WHERE id = t.group_id;
    IF t.started_at IS NOT NULL THEN
        -- Its file may stand at the path already, without anybody having said so. Where it goes on, its next version takes that place.
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status, remove_path)
        VALUES ('purge', p_task, 0, 0, t.sink, t.version, chunk_rank('purge', 0, false), purge_status(p_task),
            CASE WHEN v_state = 'failed' THEN t.path END);
    END IF;
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, rank, attempts, deaths, status)
    VALUES (p_task, t.group_id, v_origin, v_source, t.sink, t.version + 1, 0,
        CASE WHEN p_stream THEN t.expected_size ELSE least(t.expected_size, p_first_chunk) END,
        chunk_rank('fetch', t.priority, true), p_attempts, p_deaths, CASE WHEN v_state = 'queued' THEN 'ready' ELSE 'parked' END)
    RETURNING id INTO v_chunk;
    RETURN v_chunk;
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
    DELETE FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'double';
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
    v_doubles bigint;
    v_count bigint;
    v_row record;
BEGIN
    -- Whoever is heard of still, and has not said that he has stopped, may be writing.
    IF p_lost THEN
        PERFORM hold_out_leases(p_chunks, p_epochs);
    END IF;
    v_doubles := return_doubles(p_chunks, p_epochs, p_lost);
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
    SELECT count(*) + v_doubles INTO v_count FROM taken;

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
-- who held a lease has stopped (I13). With the path and no size, a file goes that one of these put in place without saying so: it is
-- known by its mark (adr/0014).
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
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status, remove_path)
    SELECT 'purge', id, 0, 0, sink, version, chunk_rank('purge', 0, false), purge_status(id), path
    FROM tasks WHERE id = ANY (p_tasks) AND started_at IS NOT NULL AND state <> 'succeeded' ORDER BY id;
END
$$;

-- Drops what failed tasks kept for a retry: whoever cancels them or their group does not want it any more (I13). They stay failed, and
-- have no more begun than those that were just added. So many at the most; returns how many there were.
CREATE FUNCTION drop_failed(p_group bigint, p_keys text[], p_first_chunk bigint, p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
    v_count bigint := 0;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    FOR v_row IN
        SELECT t.id, t.stream, coalesce(t.source, 0) AS source FROM tasks t
        WHERE t.group_id = p_group AND t.state = 'failed' AND t.started_at IS NOT NULL AND (p_keys IS NULL OR t.key = ANY (p_keys))
        ORDER BY t.id LIMIT p_limit
    LOOP
        PERFORM start_over(v_row.id, v_row.stream, p_first_chunk, v_row.source, 0, 0);
        UPDATE tasks SET started_at = NULL WHERE id = v_row.id;
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END
$$;

-- Takes back chunks that are much slower than their peers (row 32 of http.md): a fetch lease that is older than p_age,
-- whose bytes came at less than a fifth of the median speed of at least two others that get on, of the same task or else of
-- the same origin, and that would need longer than p_age still. It goes to another worker, and to another source where that
-- may serve it. A chunk is moved three times at the most, so that it does not go round for ever where every place is slow.
-- What its holder writes from now on reaches no file: the task is fenced (I8). Streams stay, since they can't be taken up
-- in the middle. Returns how many there were.
CREATE OR REPLACE FUNCTION sweep_slow(p_age interval, p_limit integer, p_first_chunk bigint, p_deaths integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    WITH speed AS MATERIALIZED (
        SELECT l.chunk_id, l.epoch, l.task_id, l.origin_id, l.moves, l.last - l.durable AS bytes_left,
            statement_timestamp() - l.granted_at AS age,
            (l.durable - l.resume) / greatest(0.001, extract(epoch FROM statement_timestamp() - l.granted_at)::double precision)
                AS speed
        FROM leases l WHERE l.kind = 'fetch'
    ), slow AS MATERIALIZED (
        -- What is below a fifth of the others' median is below a fifth of the fastest: few are left to be looked at closely.
        SELECT * FROM (
            SELECT s.*, max(s.speed) OVER (PARTITION BY s.task_id) AS fastest_of_task,
                max(s.speed) OVER (PARTITION BY s.origin_id) AS fastest_of_origin
            FROM speed s
        ) AS s
        WHERE s.age >= p_age AND s.moves < 3 AND s.bytes_left > s.speed * extract(epoch FROM p_age)
            AND s.speed < greatest(s.fastest_of_task, s.fastest_of_origin) / 5
    )
    SELECT array_agg(x.chunk_id), array_agg(x.epoch) INTO v_chunks, v_epochs FROM (
        SELECT s.chunk_id, s.epoch
        FROM slow s
        JOIN tasks t ON t.id = s.task_id AND NOT t.stream
        CROSS JOIN LATERAL (
            SELECT count(*) AS peers, percentile_cont(0.5) WITHIN GROUP (ORDER BY p.speed) AS median
            FROM speed p WHERE p.task_id = s.task_id AND p.chunk_id <> s.chunk_id AND p.speed > 0
        ) AS siblings
        CROSS JOIN LATERAL (
            SELECT count(*) AS peers, percentile_cont(0.5) WITHIN GROUP (ORDER BY p.speed) AS median
            FROM speed p WHERE p.origin_id = s.origin_id AND p.chunk_id <> s.chunk_id AND p.speed > 0
        ) AS neighbours
        WHERE s.speed < CASE WHEN siblings.peers >= 2 THEN siblings.median WHEN neighbours.peers >= 2 THEN neighbours.median END / 5
        ORDER BY s.chunk_id LIMIT p_limit
    ) AS x;
    IF v_chunks IS NULL THEN RETURN 0; END IF;

    PERFORM lock_groups_of(v_chunks);
    -- Some may be gone by now, or be held by somebody else: the epoch tells.
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l JOIN unnest(v_chunks, v_epochs) AS u (chunk_id, epoch) ON l.chunk_id = u.chunk_id AND l.epoch = u.epoch;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = ANY (v_chunks) AND t.id = l.task_id;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    PERFORM return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
    UPDATE ready_chunks c
    SET moves = c.moves + 1, source = coalesce(n.ordinal, c.source), origin_id = coalesce(n.origin_id, c.origin_id)
    FROM ready_chunks r
    JOIN tasks t ON t.id = r.task_id
    LEFT JOIN LATERAL (
        -- The fastest of the others, as far as that is known.
        SELECT s.ordinal, coalesce(s.fresh_origin_id, s.origin_id) AS origin_id FROM sources s
        WHERE s.task_id = t.id AND s.ordinal <> r.source AND t.mixes AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version
        ORDER BY s.bytes::double precision / nullif(s.busy_ms, 0) DESC NULLS LAST, s.ordinal LIMIT 1
    ) AS n ON true
    WHERE c.id = ANY (v_chunks) AND r.id = c.id;
    RETURN cardinality(v_chunks);
END
$$;
