-- What groups are charged for leases, so that they share by bytes: what a lease can bring when it is granted, and what it brought when it
-- ends. Replacements of functions of before, with their signatures.

-- What a group is charged for bytes: at least what a request costs, so that empty files don't go first for ever (I15).
CREATE FUNCTION byte_charge(p_bytes bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(16384, p_bytes)
$$;

-- What a lease on a chunk can bring. p_mean is what files of the group have on average, if the size of this one is not known;
-- without that, it brings all of the chunk, or 8 MiB of a stream.
CREATE FUNCTION chunk_charge(p_first bigint, p_last bigint, p_resume bigint, p_mean bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT byte_charge(coalesce(least(p_last, p_mean), p_first + 8388608) - p_resume)
$$;

-- The mean size of a group's files, as far as sizes are known; NULL where all are, or none is.
CREATE FUNCTION mean_size(g groups) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN g.unknown_tasks > 0
        THEN g.bytes_total / nullif(g.remaining + g.succeeded + g.failed - g.unknown_tasks, 0) END
$$;

-- What files of its group have on average, for a task whose size is not known; NULL for one whose size is.
CREATE FUNCTION mean_of(p_task bigint, p_mean bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.size IS NULL THEN p_mean END FROM tasks t WHERE t.id = p_task
$$;

-- Sets right what groups were charged for leases on tasks that are taken back now: they brought what is durable. The caller
-- holds the locks of the groups.
CREATE FUNCTION settle_charges(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE groups g SET served = g.served + n.charge / g.weight
    FROM (
        SELECT group_id, sum(byte_charge(durable - resume) - charged)::bigint AS charge
        FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'fetch' GROUP BY 1
    ) AS n
    WHERE g.id = n.group_id AND n.charge <> 0;
END
$$;

-- The first response to a task: its size, its validators and what else it stated, and the plan of the rest. Returns whether the
-- lease is still there.
CREATE OR REPLACE FUNCTION report_answer(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_size bigint, p_etag text, p_last_modified text, p_date_strong boolean,
    p_digests jsonb, p_url text, p_name text, p_splittable boolean, p_chunk_size bigint
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_more bigint := 0;
    v_charge bigint := 0;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'fetch';
    IF NOT FOUND THEN RETURN false; END IF;
    SELECT * INTO t FROM tasks WHERE id = l.task_id FOR NO KEY UPDATE;
    IF t.planned THEN RETURN true; END IF;

    IF p_splittable AND p_size > l.last THEN
        -- The chunks tile [0, size): this one, and the rest from its end on (I3). That will be fetched from where the source's
        -- URL leads now, which a resolver may have changed since the lease was granted.
        INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank)
        SELECT t.id, t.group_id, coalesce(s.fresh_origin_id, s.origin_id), l.source, t.sink, t.version, start,
            least(start + p_chunk_size, p_size), start, chunk_rank('fetch', t.priority, false)
        FROM sources s, generate_series(l.last, p_size - 1, p_chunk_size) AS start
        WHERE s.task_id = t.id AND s.ordinal = l.source;
        GET DIAGNOSTICS v_more = ROW_COUNT;
    ELSE
        v_charge := coalesce(byte_charge(p_size - l.resume) - l.charged, 0);
        UPDATE leases SET last = p_size, charged = charged + v_charge WHERE chunk_id = p_chunk;
    END IF;
    UPDATE tasks
    SET planned = true, stream = stream OR NOT p_splittable, size = p_size, etag = p_etag, last_modified = p_last_modified,
        date_strong = p_date_strong, stated_digests = p_digests, effective_url = p_url, source = l.source,
        -- Bytes of several sources are one content only where their size and a strong tag or a digest say so (I8, http.md row 30).
        mixes = mirrors > 1 AND NOT clean AND NOT stream AND p_splittable AND p_size IS NOT NULL
            AND (expected_digests IS NOT NULL OR p_digests IS NOT NULL OR coalesce(p_etag LIKE '"%"', false)),
        chunks_left = 1 + v_more
    WHERE id = t.id;
    UPDATE groups
    SET bytes_total = bytes_total + coalesce(p_size, 0) - coalesce(t.size, 0),
        unknown_tasks = unknown_tasks - (t.size IS NULL AND p_size IS NOT NULL)::integer
            + (t.size IS NOT NULL AND p_size IS NULL)::integer,
        served = served + v_charge / weight
    WHERE id = t.group_id;
    IF p_name IS NOT NULL THEN
        PERFORM name_task(t.id, p_name);
    END IF;
    RETURN true;
END
$$;

-- Chunks that are durable to their end. The last one of a task makes it ready to be finalized.
CREATE OR REPLACE FUNCTION report_done(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_crcs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_groups_of(p_chunks);
    PERFORM settle_doubles(p_sessions, p_chunks, p_epochs);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_sessions, p_chunks, p_epochs, p_crcs) AS u (session_id, chunk_id, epoch, crc)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id
            AND (l.kind = 'purge' OR l.kind = 'fetch' AND EXISTS (
                SELECT 1 FROM tasks t WHERE t.id = l.task_id AND t.planned AND t.size IS NOT NULL))
        RETURNING l.*, u.crc AS done_crc
    ), fetched AS MATERIALIZED (
        SELECT * FROM taken WHERE kind = 'fetch'
    ), recorded AS (
        INSERT INTO done_chunks (task_id, version, first, last, crc)
        SELECT task_id, version, first, last, done_crc FROM fetched
    ), touched AS MATERIALIZED (
        UPDATE tasks t
        SET chunks_left = t.chunks_left - n.count, leases = t.leases - n.count, bytes_done = t.bytes_done + n.bytes,
            state = CASE WHEN t.chunks_left = n.count THEN 'finalizing' WHEN t.leases = n.count THEN 'queued' ELSE t.state END
        FROM (SELECT task_id, count(*)::integer AS count, sum(last - first)::bigint AS bytes FROM fetched GROUP BY 1) AS n
        WHERE t.id = n.task_id
        RETURNING t.*
    ), wanted AS (
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, first, last, rank)
        SELECT 'finalize', id, group_id, 0, sink, version, 0, size, chunk_rank('finalize', priority, false)
        FROM touched WHERE state = 'finalizing'
    ), served AS (
        -- What each source carried matters where there are several.
        UPDATE sources s SET bytes = s.bytes + n.bytes, busy_ms = s.busy_ms + n.busy
        FROM (
            SELECT f.task_id, f.source, sum(f.last - f.resume)::bigint AS bytes, sum(busy_ms(f.granted_at))::bigint AS busy
            FROM touched t JOIN fetched f ON f.task_id = t.id WHERE t.mirrors > 1 GROUP BY 1, 2
        ) AS n
        WHERE s.task_id = n.task_id AND s.ordinal = n.source
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes)
        SELECT origin_id, sum(last - durable) FROM fetched WHERE last > durable AND origin_id > 0 GROUP BY 1
    ), unasked AS (
        -- Nobody needs an answer from the resolver any more.
        DELETE FROM ready_chunks c USING touched t WHERE c.kind = 'resolve' AND c.task_id = t.id AND t.state = 'finalizing'
    ), unheard AS (
        DELETE FROM leases l USING touched t WHERE l.kind = 'resolve' AND l.task_id = t.id AND t.state = 'finalizing'
    )
    UPDATE groups g
    SET active = g.active - n.left_active, queued = g.queued + n.queued, finalizing = g.finalizing + n.finalizing,
        bytes_done = g.bytes_done + n.more, rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more),
        rate_at = statement_timestamp(), served = g.served + n.charge / g.weight,
        -- How fast leases are: the newer ones weigh more.
        lease_bytes = g.lease_bytes * 9 / 10 + n.brought, lease_ms = g.lease_ms * 9 / 10 + n.busy
    FROM (
        SELECT group_id, sum(left_active) AS left_active, sum(queued) AS queued, sum(finalizing) AS finalizing,
            sum(more)::bigint AS more, sum(charge)::bigint AS charge, sum(brought)::bigint AS brought, sum(busy)::bigint AS busy
        FROM (
            SELECT group_id, (state <> 'active')::integer AS left_active, (state = 'queued')::integer AS queued,
                (state = 'finalizing')::integer AS finalizing, 0 AS more, 0 AS charge, 0 AS brought, 0 AS busy
            FROM touched
            UNION ALL SELECT group_id, 0, 0, 0, last - durable, byte_charge(last - resume) - charged, last - resume,
                busy_ms(granted_at)
            FROM fetched
        ) AS parts
        GROUP BY 1
    ) AS n
    WHERE g.id = n.group_id;
END
$$;
