-- What responses teach, chunks that are done, and files that stand at their paths, where there may be several sources. The
-- functions of before call the new ones, for an older coordinator (fault F18).

-- Ends a task's path in the name that its origin suggests, unless that would be too long. No other live task of the sink and no
-- other file of the group has the path that comes out: `name (2).ext`, `name (3).ext` … are tried.
CREATE FUNCTION name_task(p_task bigint, p_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_folder text;
    v_stem text := p_name;
    v_extension text := '';
    v_suffix text := '';
    v_path text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task;
    v_folder := left(t.path, length(t.path) - length(split_part(t.path, '/', -1)));
    -- An extension is what follows the last dot, if anything comes before it and it is short.
    IF p_name ~ '^.+\.[^.]{1,16}$' THEN
        v_extension := '.' || split_part(p_name, '.', -1);
        v_stem := left(p_name, length(p_name) - length(v_extension));
    END IF;
    FOR n IN 2..1000 LOOP
        WHILE octet_length(v_stem || v_suffix || v_extension) > 255 AND v_stem <> '' LOOP
            v_stem := left(v_stem, -1);
        END LOOP;
        v_path := v_folder || v_stem || v_suffix || v_extension;
        IF v_stem = '' OR octet_length(v_path) > 1024 THEN RETURN; END IF;
        IF NOT EXISTS (
            SELECT 1 FROM tasks o
            WHERE o.group_id = t.group_id AND o.path = v_path AND o.named AND o.state = 'succeeded' AND o.id <> p_task)
        THEN
            BEGIN
                UPDATE tasks SET path = v_path, named = true WHERE id = p_task;
                RETURN;
            EXCEPTION WHEN unique_violation THEN
                -- A live task of this or another group has it.
                NULL;
            END;
        END IF;
        v_suffix := ' (' || n || ')';
    END LOOP;
END
$$;

-- The first response to a task: its size, its validators and what else it stated, and the plan of the rest. Returns whether the
-- lease is still there.
CREATE FUNCTION report_answer(
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
        -- The chunks tile [0, size): this one, and the rest from its end on (I3).
        INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank)
        SELECT t.id, t.group_id, l.origin_id, l.source, t.sink, t.version, start, least(start + p_chunk_size, p_size), start,
            chunk_rank('fetch', t.priority, false)
        FROM generate_series(l.last, p_size - 1, p_chunk_size) AS start;
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

CREATE OR REPLACE FUNCTION report_learned(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_size bigint, p_etag text, p_last_modified text, p_url text,
    p_splittable boolean, p_chunk_size bigint
) RETURNS boolean
LANGUAGE sql AS $$
    SELECT report_answer(p_session, p_chunk, p_epoch, p_size, p_etag, p_last_modified, false, NULL, p_url, NULL, p_splittable,
        p_chunk_size)
$$;

-- How long a lease has taken, in milliseconds.
CREATE FUNCTION busy_ms(p_granted_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT greatest(0, extract(epoch FROM statement_timestamp() - p_granted_at) * 1000)::bigint
$$;

-- Chunks that are durable to their end. The last one of a task makes it ready to be finalized.
CREATE OR REPLACE FUNCTION report_done(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_crcs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_groups_of(p_chunks);
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
        rate_at = statement_timestamp(), served = g.served + n.charge / g.weight
    FROM (
        SELECT group_id, sum(left_active) AS left_active, sum(queued) AS queued, sum(finalizing) AS finalizing,
            sum(more)::bigint AS more, sum(charge)::bigint AS charge
        FROM (
            SELECT group_id, (state <> 'active')::integer AS left_active, (state = 'queued')::integer AS queued,
                (state = 'finalizing')::integer AS finalizing, 0 AS more, 0 AS charge
            FROM touched
            UNION ALL SELECT group_id, 0, 0, 0, last - durable, byte_charge(last - resume) - charged FROM fetched
        ) AS parts
        GROUP BY 1
    ) AS n
    WHERE g.id = n.group_id;
END
$$;

-- Files that stand at their paths (I8). Deletes the lease, finishes the task, counts it, writes its event and closes the group
-- in one transaction (I6, I7). A path is given where it is not the task's.
CREATE FUNCTION report_files(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_sizes bigint[], p_digests jsonb[],
    p_etags text[], p_last_modified text[], p_urls text[], p_paths text[], p_stated jsonb[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
BEGIN
    PERFORM lock_groups_of(p_chunks);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l
        USING unnest(p_sessions, p_chunks, p_epochs, p_sizes, p_digests, p_etags, p_last_modified, p_urls, p_paths, p_stated)
            AS u (session_id, chunk_id, epoch, size, digests, etag, last_modified, url, path, stated)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id
            -- A fetch lease ends with a file only if it covers all of it.
            AND (l.kind = 'finalize' OR l.kind = 'fetch' AND EXISTS (
                SELECT 1 FROM tasks t WHERE t.id = l.task_id
                    AND (NOT t.planned OR l.first = 0 AND l.last IS NOT DISTINCT FROM t.size)))
        RETURNING l.task_id, l.kind, l.origin_id, l.source, l.first, l.resume, l.durable, l.charged, l.granted_at, u.size, u.digests, u.etag,
            u.last_modified, u.url, u.path, u.stated
    ), finished AS MATERIALIZED (
        UPDATE tasks t
        SET state = 'succeeded', planned = true, size = f.size, chunks_left = 0, leases = 0, bytes_done = f.size,
            digests = f.digests, etag = coalesce(f.etag, t.etag), last_modified = coalesce(f.last_modified, t.last_modified),
            stated_digests = coalesce(f.stated, t.stated_digests), effective_url = coalesce(f.url, t.effective_url),
            source = coalesce(t.source, CASE WHEN f.kind = 'fetch' THEN f.source END), path = coalesce(f.path, t.path),
            named = t.named OR f.path <> t.path IS TRUE,
            finished_at = statement_timestamp(), failure_kind = NULL, failure_detail = NULL, failure_at = NULL,
            failure_status = NULL, failure_source = NULL, failure_request = NULL
        FROM taken f JOIN tasks before ON before.id = f.task_id
        WHERE t.id = f.task_id AND t.state IN ('active', 'finalizing')
        RETURNING t.*, before.state AS was, before.size AS size_before,
            CASE WHEN f.kind = 'finalize' THEN 0 ELSE f.size - (f.durable - f.first) END AS more,
            f.kind AS done_by, f.origin_id, f.source AS served_by, f.resume, f.charged, f.granted_at
    ), swept AS (
        DELETE FROM done_chunks d USING finished f WHERE d.task_id = f.id AND f.was = 'finalizing'
    ), served AS (
        UPDATE sources s SET bytes = s.bytes + f.size - f.resume, busy_ms = s.busy_ms + busy_ms(f.granted_at)
        FROM finished f WHERE f.mirrors > 1 AND f.done_by = 'fetch' AND s.task_id = f.id AND s.ordinal = f.served_by
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes)
        SELECT origin_id, sum(more) FROM finished WHERE more > 0 AND done_by = 'fetch' AND origin_id > 0 GROUP BY 1
    ), unasked AS (
        DELETE FROM ready_chunks c USING finished t WHERE c.kind = 'resolve' AND c.task_id = t.id
    ), unheard AS (
        DELETE FROM leases l USING finished t WHERE l.kind = 'resolve' AND l.task_id = t.id
    ), counted AS MATERIALIZED (
        UPDATE groups g
        SET active = g.active - n.active, finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded + n.count,
            bytes_done = g.bytes_done + n.more, bytes_total = g.bytes_total + n.grown,
            unknown_tasks = g.unknown_tasks - n.unknown,
            rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more), rate_at = statement_timestamp(),
            served = g.served + n.charge / g.weight
        FROM (
            SELECT group_id, count(*) AS count, sum((was = 'active')::integer) AS active,
                sum((was = 'finalizing')::integer) AS finalizing, sum(more)::bigint AS more,
                sum(size - coalesce(size_before, 0))::bigint AS grown, sum((size_before IS NULL)::integer) AS unknown,
                sum(CASE WHEN done_by = 'fetch' THEN byte_charge(size - resume) - charged ELSE 0 END)::bigint AS charge
            FROM finished GROUP BY 1
        ) AS n
        WHERE g.id = n.group_id
        RETURNING g.id, g.name, g.remaining
    ), said AS (
        INSERT INTO events (id, type, subject, data)
        SELECT 'tsk-' || f.id || '-' || f.run || '-succeeded', 'dev.muster.task.succeeded.v1', 'groups/' || c.name,
            jsonb_build_object('group', c.name, 'key', f.key, 'path', f.path, 'size', f.size, 'digests', f.digests,
                'contentVersion', f.version, 'metadata', f.metadata)
        FROM finished f JOIN counted c ON c.id = f.group_id
        ON CONFLICT (id) DO NOTHING
    )
    SELECT array_agg(id) INTO v_groups FROM counted WHERE remaining = 0;
    IF v_groups IS NOT NULL THEN
        PERFORM close_groups(v_groups);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION report_finished(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_sizes bigint[], p_digests jsonb[],
    p_etags text[], p_last_modified text[], p_urls text[]
) RETURNS void
LANGUAGE sql AS $$
    SELECT report_files(p_sessions, p_chunks, p_epochs, p_sizes, p_digests, p_etags, p_last_modified, p_urls, NULL, NULL)
$$;
