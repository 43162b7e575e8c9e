-- What is taken back although its worker lives: chunks that are much slower than others, and tasks whose time is over.

-- Takes back chunks that are much slower than their peers (row 32 of http.md): a fetch lease that is older than p_age,
-- whose bytes came at less than a fifth of the median speed of at least two others that get on, of the same task or else of
-- the same origin, and that would need longer than p_age still. It goes to another worker, and to another source where that
-- may serve it. A chunk is moved three times at the most, so that it does not go round for ever where every place is slow.
-- What its holder writes from now on reaches no file: the task is fenced (I8). Streams stay, since they can't be taken up
-- in the middle. Returns how many there were.
CREATE FUNCTION sweep_slow(p_age interval, p_limit integer, p_first_chunk bigint, p_deaths integer) RETURNS bigint
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

-- Fails tasks whose time is over (row 33), so many at the most. Groups and tasks that somebody else has locked are left for
-- the next round. Returns how many there were.
CREATE FUNCTION fail_overdue(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_count bigint := 0;
    v_row record;
BEGIN
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g WHERE g.id IN (
            SELECT o.group_id FROM (
                SELECT t.group_id FROM tasks t
                WHERE t.deadline_at <= statement_timestamp() AND t.state IN ('queued', 'active', 'paused', 'finalizing')
                ORDER BY t.deadline_at LIMIT p_limit
            ) AS o)
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_groups IS NULL THEN RETURN 0; END IF;
    FOR v_row IN
        SELECT t.id, t.time_limit FROM tasks t
        WHERE t.group_id = ANY (v_groups) AND t.deadline_at <= statement_timestamp()
            AND t.state IN ('queued', 'active', 'paused', 'finalizing')
        ORDER BY t.id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM fail_task(v_row.id, 'deadline',
            format('it was not done within %s of when it was added or retried', v_row.time_limit));
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END
$$;
