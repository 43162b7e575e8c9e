-- Files that a sink has already: a task that asks for the same as one that has succeeded asks whether that is still so, and is
-- given the file that is there (adr/0013). A task that asks for the same as one that is being fetched waits for that file.

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

-- The tasks under way that others may wait for.
CREATE INDEX tasks_under_way ON tasks (reuse_key)
    WHERE state IN ('queued', 'active', 'finalizing') AND started_at IS NOT NULL AND reuse_key IS NOT NULL;

-- The task whose file a waiting chunk waits for, instead of for a moment.
ALTER TABLE ready_chunks ADD COLUMN awaits bigint;
CREATE INDEX ready_chunks_awaiting ON ready_chunks (id) WHERE status = 'waiting' AND awaits IS NOT NULL;

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
-- doesn't contradict what the task expects, and was asked for in the same way. A hundred are looked at if need be: most of the time
-- it is the first one.
CREATE FUNCTION held_file(t tasks, p_group_options jsonb, p_url text, p_headers jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_build_object('path', d.path, 'crc', d.content_crc, 'digests', coalesce(d.digests, '{}'),
            'effectiveURL', d.effective_url,
            'representation', jsonb_build_object('size', d.size, 'etag', d.etag, 'lastModified', d.last_modified,
                'isDateStrong', d.date_strong))::text
        FROM (
            SELECT * FROM tasks WHERE reuse_key = t.reuse_key AND state = 'succeeded' ORDER BY id DESC LIMIT 100
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

-- Whether somebody gets on with a task, so that it is worth waiting for its file: it is being fetched or put in place, or has chunks that
-- are, and nothing holds it up that would not hold up whoever waits. A wait never outlasts this (I14).
CREATE FUNCTION gets_on(t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN t.state IN ('active', 'finalizing') AND EXISTS (
            SELECT 1 FROM leases l WHERE l.task_id = t.id AND l.progress_at > statement_timestamp() - interval '20 s') THEN true
        -- Between two leases. A chunk that failed waits for longer than somebody else should.
        WHEN t.state = 'finalizing' OR t.state = 'queued' AND t.planned
        THEN EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND c.status = 'ready')
            AND NOT EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND c.status = 'waiting')
        ELSE false
    END
$$;

-- Of chunks that the caller has locked and is about to lease, those that are to be leased now. The others are the first ones of
-- tasks that ask for the same as a task which is under way, or as another one of these: they wait for its file, so that it is fetched
-- once. Nobody waits for a group that is less urgent or has a byte budget, and nobody where a file is there to be asked about.
-- Whoever asks for the same asks the same origin, whose lock the caller holds: two claims can't both begin.
CREATE FUNCTION without_repeats(p_chunks bigint[], p_group bigint) RETURNS bigint[]
LANGUAGE plpgsql STRICT AS $$
DECLARE
    v_later bigint[];
BEGIN
    WITH first AS MATERIALIZED (
        SELECT c.id, c.rank, t.id AS task_id, t.reuse_key, t.expected_size, t.expected_digests
        FROM ready_chunks c JOIN tasks t ON t.id = c.task_id
        WHERE c.id = ANY (p_chunks) AND c.first = 0 AND c.resume = 0 AND c.source = 0 AND c.version = 1 AND NOT t.planned
            AND t.reuse_key IS NOT NULL
    ), found AS (
        SELECT f.id, coalesce((
                SELECT d.id FROM tasks d JOIN groups e ON e.id = d.group_id JOIN groups g ON g.id = p_group
                WHERE d.reuse_key = f.reuse_key AND d.state IN ('queued', 'active', 'finalizing') AND d.started_at IS NOT NULL
                    AND d.id <> f.task_id AND gets_on(d) AND group_may_run(e) AND e.priority >= g.priority
                    AND group_rate(e) IS NULL
                    AND (f.expected_size IS NULL OR d.expected_size IS NULL OR d.expected_size = f.expected_size)
                    AND (f.expected_digests IS NULL OR d.expected_digests IS NULL OR d.expected_digests = f.expected_digests)
                ORDER BY d.id LIMIT 1
            ), nullif(first_value(f.task_id) OVER (PARTITION BY f.reuse_key ORDER BY f.rank, f.id), f.task_id)) AS awaits
        FROM first f
        WHERE NOT EXISTS (SELECT 1 FROM tasks h WHERE h.reuse_key = f.reuse_key AND h.state = 'succeeded')
    ), held AS (
        UPDATE ready_chunks c SET status = 'waiting', awaits = f.awaits FROM found f WHERE c.id = f.id AND f.awaits IS NOT NULL
        RETURNING c.id
    )
    SELECT array_agg(id) INTO v_later FROM held;
    IF v_later IS NULL THEN RETURN p_chunks; END IF;
    RETURN (SELECT array_agg(id ORDER BY n) FROM unnest(p_chunks) WITH ORDINALITY AS u (id, n) WHERE id <> ALL (v_later));
END
$$;

-- Lets chunks go that wait for a task which has ended or does not get on. If its file can be used, they are told of it by their
-- leases; otherwise one of them is fetched, and the others wait for that. Costs a probe of an index where there are none. Returns
-- how many there were.
CREATE FUNCTION release_repeats(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_vain bigint[];
    v_count bigint;
BEGIN
    SELECT array_agg(r.id), array_agg(r.task_id) FILTER (WHERE r.is_vain) INTO v_chunks, v_vain FROM (
        SELECT c.id, c.task_id, d.state = 'succeeded' AND d.reuse_key IS NULL AS is_vain
        FROM ready_chunks c
        LEFT JOIN tasks d ON d.id = c.awaits
        LEFT JOIN groups g ON g.id = d.group_id
        WHERE c.status = 'waiting' AND c.awaits IS NOT NULL AND (d.id IS NULL OR NOT gets_on(d) OR NOT group_may_run(g))
        ORDER BY c.id LIMIT p_limit
    ) AS r;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    PERFORM g.id FROM groups g
    WHERE g.id IN (SELECT c.group_id FROM ready_chunks c WHERE c.id = ANY (v_chunks)) ORDER BY g.id FOR NO KEY UPDATE;
    -- The origin states nothing that could be asked about: waiting for each other would make them slow, and help nobody.
    UPDATE tasks SET reuse_key = NULL WHERE id = ANY (v_vain) AND state = 'queued';
    WITH released AS (
        UPDATE ready_chunks SET status = 'ready', awaits = NULL
        WHERE id = ANY (v_chunks) AND status = 'waiting' AND awaits IS NOT NULL RETURNING 1
    )
    SELECT count(*) INTO v_count FROM released;
    RETURN v_count;
END
$$;
