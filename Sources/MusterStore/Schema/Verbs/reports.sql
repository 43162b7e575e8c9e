-- A report waits for a lock for a second at the most, then its statement fails (lock_not_available): the batch also has reports of other groups (I19).

-- Locks the groups of leases, by id, before any of their rows change.
CREATE FUNCTION lock_groups_of(p_chunks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM g.id FROM groups g
    WHERE g.id = ANY (ARRAY(SELECT l.group_id FROM leases l WHERE l.chunk_id = ANY (p_chunks)))
    ORDER BY g.id FOR NO KEY UPDATE;
END
$$;

-- The leases among these on which nothing can be reported now: other transactions have locked their rows, or those of their tasks or groups.
CREATE FUNCTION locked_leases(p_chunks bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_tasks bigint[];
    v_free bigint[];
BEGIN
    SELECT array_agg(f.id) INTO v_groups FROM (
        SELECT g.id FROM groups g
        WHERE g.id = ANY (ARRAY(SELECT l.group_id FROM leases l WHERE l.chunk_id = ANY (p_chunks)))
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS f;
    SELECT array_agg(f.id) INTO v_tasks FROM (
        SELECT t.id FROM tasks t
        WHERE t.id = ANY (ARRAY(SELECT l.task_id FROM leases l WHERE l.chunk_id = ANY (p_chunks) AND l.group_id = ANY (v_groups)))
        ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS f;
    SELECT array_agg(f.chunk_id) INTO v_free FROM (
        SELECT l.chunk_id FROM leases l WHERE l.chunk_id = ANY (p_chunks) AND l.task_id = ANY (v_tasks)
        ORDER BY l.chunk_id FOR NO KEY UPDATE SKIP LOCKED
    ) AS f;
    RETURN QUERY
    SELECT l.chunk_id FROM leases l
    WHERE l.chunk_id = ANY (p_chunks) AND l.chunk_id <> ALL (coalesce(v_free, '{}')) AND EXISTS (SELECT 1 FROM groups g WHERE g.id = l.group_id);
END
$$;

-- Locks the groups of leases as far as they are free (`lock_free_groups`). Returns the leases whose groups are locked here and whose epochs are still
-- the same; those of other groups are left for the next time. Leases of no group, as purges are, are always among them.
CREATE FUNCTION lock_leases(p_chunks bigint[], p_epochs bigint[], OUT chunks bigint[], OUT epochs bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
BEGIN
    v_groups := lock_free_groups((
        SELECT coalesce(array_agg(DISTINCT g.id), '{}') FROM groups g
        WHERE g.id = ANY (ARRAY(SELECT l.group_id FROM leases l WHERE l.chunk_id = ANY (p_chunks)))));
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO chunks, epochs
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
    WHERE l.group_id = ANY (v_groups) OR NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = l.group_id);
END
$$;

-- How long a lease has taken, in milliseconds.
CREATE FUNCTION busy_ms(p_granted_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT greatest(0, extract(epoch FROM statement_timestamp() - p_granted_at) * 1000)::bigint
$$;

-- Moves durable offsets forward (I4). A loss of this commit means that some bytes are fetched again, so it does not wait for the disk. Returns the
-- position (from 1) of every report whose lease does not exist. p_failed: the reports are the last ones of leases that have failed; a few bytes
-- before a failure do not count as served by the origin.
CREATE FUNCTION report_progress(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_offsets bigint[], p_crcs bigint[], p_failed boolean DEFAULT false
) RETURNS SETOF integer
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM lock_groups_of(p_chunks);
    RETURN QUERY
    WITH said AS MATERIALIZED (
        SELECT * FROM unnest(p_sessions, p_chunks, p_epochs, p_offsets, p_crcs) WITH ORDINALITY
            AS u (session_id, chunk_id, epoch, durable, crc, n)
    ), furthest AS MATERIALIZED (
        -- A batch may hold several reports about one lease, such as a sync and its repetition: the furthest one counts.
        SELECT DISTINCT ON (s.chunk_id) s.*
        FROM said s JOIN leases l ON has_id(l.chunk_id, s.chunk_id) AND l.epoch = s.epoch AND l.session_id IS NOT DISTINCT FROM s.session_id
        WHERE l.last IS NULL OR s.durable <= l.last ORDER BY s.chunk_id, s.durable DESC
    ), moved AS (
        UPDATE leases l
        SET durable = greatest(l.durable, s.durable), crc = CASE WHEN s.durable > l.durable THEN s.crc ELSE l.crc END,
            rate_bytes = flowed(l.rate_bytes, l.progress_at, greatest(0, s.durable - l.durable)), progress_at = statement_timestamp()
        FROM furthest s JOIN leases before ON has_id(before.chunk_id, s.chunk_id)
        WHERE has_id(l.chunk_id, s.chunk_id) AND l.epoch = s.epoch AND l.session_id IS NOT DISTINCT FROM s.session_id
        RETURNING l.chunk_id, l.epoch, l.session_id, l.last, l.group_id, l.origin_id, l.kind, l.resume, l.durable - before.durable AS more
    ), counted AS (
        UPDATE groups g
        SET bytes_done = g.bytes_done + n.more, rate_bytes = flowed(g.rate_bytes, g.rate_at, n.more),
            rate_at = statement_timestamp()
        FROM (SELECT group_id, sum(more)::bigint AS more FROM moved WHERE kind = 'fetch' GROUP BY 1) AS n
        WHERE has_id(g.id, n.group_id) AND n.more > 0
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes)
        SELECT origin_id, sum(more) FROM moved
        WHERE kind = 'fetch' AND more > 0 AND (NOT p_failed OR more >= greatest(1, least(1024, (last - resume) / 16))) GROUP BY 1
    )
    SELECT s.n::integer FROM said s WHERE NOT EXISTS (
        SELECT 1 FROM moved m
        WHERE m.chunk_id = s.chunk_id AND m.epoch = s.epoch AND m.session_id = s.session_id
            AND (m.last IS NULL OR s.durable <= m.last));
END
$$;

-- Finishes chunks that are durable to their end. The last one of a task makes it ready to be finalized.
CREATE FUNCTION report_done(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_crcs bigint[], p_ends bigint[], p_removed text[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
BEGIN
    PERFORM lock_groups_of(p_chunks);
    PERFORM count_removed(p_sessions, p_chunks, p_epochs, p_removed);
    PERFORM cut_done(p_sessions, p_chunks, p_epochs, p_ends);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_sessions, p_chunks, p_epochs, p_crcs) AS u (session_id, chunk_id, epoch, crc)
        WHERE has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch AND l.session_id IS NOT DISTINCT FROM u.session_id
            AND (l.kind = 'purge' OR l.kind = 'fetch' AND (
                SELECT t.planned AND t.size IS NOT NULL FROM tasks t WHERE t.id = l.task_id))
        RETURNING l.*, u.crc AS done_crc
    ), fetched AS MATERIALIZED (
        SELECT * FROM taken WHERE kind = 'fetch'
    ), recorded AS (
        INSERT INTO done_chunks (task_id, version, first, last, crc)
        SELECT task_id, version, first, last, done_crc FROM fetched
    ), touched AS MATERIALIZED (
        UPDATE tasks t
        SET chunks_left = t.chunks_left - n.count, bytes_done = t.bytes_done + n.bytes, started_at = coalesce(t.started_at, n.since),
            state = CASE WHEN t.chunks_left = n.count THEN 'finalizing' ELSE t.state END
        FROM (
            SELECT task_id, count(*)::integer AS count, sum(last - first)::bigint AS bytes, min(granted_at) AS since FROM fetched GROUP BY 1
        ) AS n
        WHERE has_id(t.id, n.task_id)
        RETURNING t.*
    ), wanted AS (
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, first, last, rank)
        SELECT 'finalize', id, group_id, 0, sink, version, 0, size, chunk_rank('finalize', priority, false)
        FROM touched WHERE state = 'finalizing'
    ), served AS (
        -- The bytes of each source matter only for tasks with several sources.
        UPDATE sources s SET bytes = s.bytes + n.bytes, busy_ms = s.busy_ms + n.busy
        FROM (
            SELECT f.task_id, f.source, sum(f.last - f.resume)::bigint AS bytes, sum(busy_ms(f.granted_at))::bigint AS busy
            FROM touched t JOIN fetched f ON f.task_id = t.id WHERE t.mirrors > 1 GROUP BY 1, 2
        ) AS n
        WHERE has_id(s.task_id, n.task_id) AND s.ordinal = n.source
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes, answers, group_id, granted_at)
        SELECT origin_id, sum(last - durable), count(*), group_id, max(granted_at) FROM fetched WHERE origin_id > 0 GROUP BY 1, 4
    ), unasked AS (
        -- The task needs no answer from the resolver any more.
        DELETE FROM ready_chunks c USING touched t WHERE c.kind = 'resolve' AND has_id(c.task_id, t.id) AND t.state = 'finalizing'
    ), unheard AS (
        DELETE FROM leases l USING touched t WHERE l.kind = 'resolve' AND has_id(l.task_id, t.id) AND t.state = 'finalizing'
    )
    UPDATE groups g
    SET queued = g.queued - n.finalizing, finalizing = g.finalizing + n.finalizing,
        bytes_done = g.bytes_done + n.more, rate_bytes = flowed(g.rate_bytes, g.rate_at, n.more),
        rate_at = statement_timestamp(), served = g.served + n.charge / g.weight,
        -- The speed of leases: newer ones weigh more.
        lease_bytes = g.lease_bytes * 9 / 10 + n.brought, lease_ms = g.lease_ms * 9 / 10 + n.busy
    FROM (
        SELECT group_id, sum(finalizing) AS finalizing, sum(more)::bigint AS more, sum(charge)::bigint AS charge, sum(brought)::bigint AS brought,
            sum(busy)::bigint AS busy
        FROM (
            SELECT group_id, (state = 'finalizing')::integer AS finalizing, 0 AS more, 0 AS charge, 0 AS brought, 0 AS busy FROM touched
            UNION ALL SELECT group_id, 0, last - durable, byte_charge(last - resume) - charged, last - resume,
                busy_ms(granted_at)
            FROM fetched
        ) AS parts
        GROUP BY 1
    ) AS n
    WHERE has_id(g.id, n.group_id);
END
$$;
