-- Files that a sink has already: a task that asks for the same as one that has succeeded asks whether that is still so, and is
-- given the file that is there (adr/0013).

-- Whether the group's tasks are made of files that are there, and its files are for others.
ALTER TABLE groups ADD COLUMN reuses boolean NOT NULL DEFAULT true;
ALTER TABLE tasks
    -- Equal for tasks of one sink that ask for the same in the same way; NULL where that can't be told or is not wanted. A task that
    -- has succeeded keeps it if its file can be given to others: the check of its content and its validators are known.
    ADD COLUMN reuse_key   bigint,
    ADD COLUMN content_crc bigint,                           -- CRC32C of the whole finished file
    ADD COLUMN reused_from text,                             -- the path of the file that it was made of, if nothing was fetched
    ADD CONSTRAINT tasks_reuse_is_checked CHECK (state <> 'succeeded' OR reuse_key IS NULL OR content_crc IS NOT NULL);

-- The files that can be given to others, the newest last.
CREATE INDEX tasks_reusable ON tasks (reuse_key, id) WHERE state = 'succeeded' AND reuse_key IS NOT NULL;

-- What tasks must have in common to be asked for as one: the sink, the first source, and all that the request is made of. Where a
-- resolver or the origin has a say in URLs or names, nothing is compared. It is a hash: whoever goes by it compares the rest.
CREATE FUNCTION reuse_key(g groups, p_url text, p_headers jsonb, p_options jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN g.reuses AND g.resolver IS NULL AND coalesce(g.policy ->> 'names', 'given') = 'given'
            AND lower(left(p_url, 4)) = 'http'
        THEN hashtextextended(
            g.sink || E'\n' || p_url || E'\n' || coalesce(p_headers, '{}')::text || E'\n' || coalesce(p_options, '{}')::text
                || E'\n' || coalesce(g.fetch_options, '{}')::text, 0)
    END
$$;

-- The newest file of the sink that may be what a task asks for, as the document of the same name; NULL when there is none. It
-- doesn't contradict what the task expects, and was asked for in the same way. Few are looked at: older ones are hardly newer.
CREATE FUNCTION held_file(t tasks, p_group_options jsonb, p_url text, p_headers jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_build_object('path', d.path, 'crc', d.content_crc, 'digests', coalesce(d.digests, '{}'),
            'effectiveURL', d.effective_url,
            'representation', jsonb_build_object('size', d.size, 'etag', d.etag, 'lastModified', d.last_modified,
                'isDateStrong', d.date_strong))::text
        FROM (
            SELECT * FROM tasks WHERE reuse_key = t.reuse_key AND state = 'succeeded' ORDER BY id DESC LIMIT 8
        ) AS d
        JOIN groups g ON g.id = d.group_id
        JOIN sources s ON s.task_id = d.id AND s.ordinal = 0
        WHERE d.sink = t.sink AND s.url = p_url AND coalesce(s.headers, '{}') = coalesce(p_headers, '{}')
            AND coalesce(d.fetch_options, '{}') = coalesce(t.fetch_options, '{}')
            AND coalesce(g.fetch_options, '{}') = coalesce(p_group_options, '{}')
            AND (t.expected_size IS NULL OR t.expected_size = d.size)
            AND NOT EXISTS (
                SELECT 1 FROM jsonb_each_text(coalesce(t.expected_digests, '{}')) AS e
                WHERE d.digests ->> e.key <> e.value)
        ORDER BY d.id DESC LIMIT 1
    );
END
$$;

-- Files that stand at their paths (I8): deletes the lease, finishes the task, counts it, writes its event and closes the group in
-- one transaction (I6, I7). A path is given where it is not the task's; p_crcs are of whole files, where the worker knows them;
-- p_reused are the paths of the files that they were made of, where nothing was fetched.
CREATE FUNCTION report_contents(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_sizes bigint[], p_digests jsonb[],
    p_etags text[], p_last_modified text[], p_dates_strong boolean[], p_urls text[], p_paths text[], p_stated jsonb[],
    p_crcs bigint[], p_reused text[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
BEGIN
    PERFORM lock_groups_of(p_chunks);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l
        USING unnest(p_sessions, p_chunks, p_epochs, p_sizes, p_digests, p_etags, p_last_modified, p_dates_strong, p_urls, p_paths,
            p_stated, p_crcs, p_reused)
            AS u (session_id, chunk_id, epoch, size, digests, etag, last_modified, date_strong, url, path, stated, crc, reused)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id
            -- A fetch lease ends with a file only if it covers all of it.
            AND (l.kind = 'finalize' OR l.kind = 'fetch' AND EXISTS (
                SELECT 1 FROM tasks t WHERE t.id = l.task_id
                    AND (NOT t.planned OR l.first = 0 AND l.last IS NOT DISTINCT FROM t.size)))
        RETURNING l.task_id, l.kind, l.origin_id, l.source, l.first, l.resume, l.durable, l.charged, l.granted_at, u.size,
            u.digests, u.etag, u.last_modified, u.date_strong, u.url, u.path, u.stated, u.crc, u.reused
    ), finished AS MATERIALIZED (
        UPDATE tasks t
        SET state = 'succeeded', planned = true, size = f.size, chunks_left = 0, leases = 0, bytes_done = f.size,
            digests = f.digests, etag = coalesce(f.etag, t.etag), last_modified = coalesce(f.last_modified, t.last_modified),
            stated_digests = coalesce(f.stated, t.stated_digests), effective_url = coalesce(f.url, t.effective_url),
            source = coalesce(t.source, CASE WHEN f.kind = 'fetch' THEN f.source END), path = coalesce(f.path, t.path),
            named = t.named OR f.path <> t.path IS TRUE, date_strong = coalesce(f.date_strong, t.date_strong),
            content_crc = f.crc, reused_from = f.reused,
            -- Given to others is what can be asked about at the first source, and be checked.
            reuse_key = CASE
                WHEN f.crc IS NOT NULL AND f.size > 0
                    AND coalesce(t.source, CASE WHEN f.kind = 'fetch' THEN f.source END) = 0
                    AND (coalesce(f.etag, t.etag) IS NOT NULL OR coalesce(f.date_strong, t.date_strong)
                        AND coalesce(f.last_modified, t.last_modified) IS NOT NULL)
                THEN t.reuse_key
            END,
            finished_at = statement_timestamp(), failure_kind = NULL, failure_detail = NULL, failure_at = NULL,
            failure_status = NULL, failure_source = NULL, failure_request = NULL
        FROM taken f JOIN tasks before ON before.id = f.task_id
        WHERE t.id = f.task_id AND t.state IN ('active', 'finalizing')
        RETURNING t.*, before.state AS was, before.size AS size_before,
            CASE WHEN f.kind = 'finalize' THEN 0 ELSE f.size - (f.durable - f.first) END AS more,
            -- What was there already came from no origin, and takes nothing from others.
            CASE WHEN f.kind = 'finalize' OR f.reused IS NOT NULL THEN 0 ELSE f.size - (f.durable - f.first) END AS came,
            CASE WHEN f.reused IS NOT NULL THEN 0 ELSE f.size - f.resume END AS brought,
            f.kind AS done_by, f.origin_id, f.source AS served_by, f.charged, f.granted_at
    ), swept AS (
        DELETE FROM done_chunks d USING finished f WHERE d.task_id = f.id AND f.was = 'finalizing'
    ), served AS (
        UPDATE sources s SET bytes = s.bytes + f.brought, busy_ms = s.busy_ms + busy_ms(f.granted_at)
        FROM finished f WHERE f.mirrors > 1 AND f.done_by = 'fetch' AND s.task_id = f.id AND s.ordinal = f.served_by
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes)
        SELECT origin_id, sum(came) FROM finished WHERE came > 0 AND done_by = 'fetch' AND origin_id > 0 GROUP BY 1
    ), unasked AS (
        DELETE FROM ready_chunks c USING finished t WHERE c.kind = 'resolve' AND c.task_id = t.id
    ), unheard AS (
        DELETE FROM leases l USING finished t WHERE l.kind = 'resolve' AND l.task_id = t.id
    ), counted AS MATERIALIZED (
        UPDATE groups g
        SET active = g.active - n.active, finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded + n.count,
            bytes_done = g.bytes_done + n.more, bytes_total = g.bytes_total + n.grown,
            unknown_tasks = g.unknown_tasks - n.unknown,
            rate_bytes = decayed(g.rate_bytes, g.rate_at, n.came), rate_at = statement_timestamp(),
            served = g.served + n.charge / g.weight
        FROM (
            SELECT group_id, count(*) AS count, sum((was = 'active')::integer) AS active,
                sum((was = 'finalizing')::integer) AS finalizing, sum(more)::bigint AS more, sum(came)::bigint AS came,
                sum(size - coalesce(size_before, 0))::bigint AS grown, sum((size_before IS NULL)::integer) AS unknown,
                sum(CASE WHEN done_by = 'fetch' THEN byte_charge(brought) - charged ELSE 0 END)::bigint AS charge
            FROM finished GROUP BY 1
        ) AS n
        WHERE g.id = n.group_id
        RETURNING g.id, g.name, g.remaining
    ), said AS (
        INSERT INTO events (id, type, subject, data)
        SELECT 'tsk-' || f.id || '-' || f.run || '-succeeded', 'dev.muster.task.succeeded.v1', 'groups/' || c.name,
            jsonb_build_object('group', c.name, 'key', f.key, 'path', f.path, 'size', f.size, 'digests', f.digests,
                'contentVersion', f.version, 'metadata', f.metadata)
                || CASE WHEN f.reused_from IS NULL THEN '{}' ELSE jsonb_build_object('reusedFrom', f.reused_from) END
        FROM finished f JOIN counted c ON c.id = f.group_id
        ON CONFLICT (id) DO NOTHING
    )
    SELECT array_agg(id) INTO v_groups FROM counted WHERE remaining = 0;
    IF v_groups IS NOT NULL THEN
        PERFORM close_groups(v_groups);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION report_files(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_sizes bigint[], p_digests jsonb[],
    p_etags text[], p_last_modified text[], p_urls text[], p_paths text[], p_stated jsonb[]
) RETURNS void
LANGUAGE sql AS $$
    SELECT report_contents(p_sessions, p_chunks, p_epochs, p_sizes, p_digests, p_etags, p_last_modified, NULL, p_urls, p_paths,
        p_stated, NULL, NULL)
$$;
