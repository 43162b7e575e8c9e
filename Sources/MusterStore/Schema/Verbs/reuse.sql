-- Reuse of files that a sink has already (adr/0013): a task for the same content as one that has succeeded asks the origin whether the file is
-- unchanged, and gets the file. A task for the same content as one that is being fetched waits for that file.

-- A hash of what tasks must have in common to share a file: the sink, the first source, and whether codings are taken off. NULL if the group
-- does not reuse files, a resolver decides on the URLs, or the origin on the names. It is a hash: a caller that finds tasks by it compares these
-- values too.
CREATE FUNCTION reuse_key(g groups, p_url text, p_options jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN g.reuses AND g.resolver IS NULL AND coalesce(g.policy ->> 'names', 'given') = 'given'
            AND lower(left(p_url, 4)) = 'http'
        THEN hashtextextended(g.sink || E'\n' || p_url || E'\n' || decodes(p_options, g.fetch_options), 0)
    END
$$;

-- Whether codings are taken off the contents of a task, by its options or those of its group.
CREATE FUNCTION decodes(p_options jsonb, p_group_options jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_options ->> 'decode', p_group_options ->> 'decode', 'false') $$;

-- The newest file of the sink that a task may reuse, as the JSON of a `HeldFile`; NULL when there is none. It doesn't contradict what the task
-- expects. It has a strong ETag, which no other representation of the URL has, or was asked for in the same way: a date may be that of another
-- representation. A hundred files are checked at the most; usually the first one fits.
CREATE FUNCTION held_file(p_task bigint, p_group_options jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t tasks;
    v_url text;
    v_headers jsonb;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task;
    SELECT s.url, s.headers INTO v_url, v_headers FROM sources s WHERE s.task_id = p_task AND s.ordinal = 0;
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
        WHERE d.sink = t.sink AND s.url = v_url AND decodes(d.fetch_options, g.fetch_options) = decodes(t.fetch_options, p_group_options)
            AND (d.etag NOT LIKE 'W/%'
                OR coalesce(s.headers, '{}') = coalesce(v_headers, '{}')
                    AND coalesce(d.fetch_options, '{}') = coalesce(t.fetch_options, '{}')
                    AND coalesce(g.fetch_options, '{}') = coalesce(p_group_options, '{}')
                    AND (g.asked_anew_at IS NULL OR d.started_at > g.asked_anew_at))
            AND (t.expected_size IS NULL OR t.expected_size = d.size)
            AND NOT EXISTS (
                SELECT 1 FROM jsonb_each_text(coalesce(t.expected_digests, '{}')) AS e
                WHERE d.digests ->> e.key <> e.value)
        ORDER BY d.id DESC LIMIT 1
    );
END
$$;

-- Of chunks that the caller has locked and is about to lease, returns those that are to be leased now. The others are the first chunks of tasks for
-- the same content as a task under way, or as another task of these chunks: they wait for its file, so that it is fetched once. No task waits for a
-- group that is less urgent or has a byte budget, or if there is a file that it may reuse. Tasks for the same content ask the same origin, whose lock
-- the caller holds: two claims can't both begin.
CREATE FUNCTION without_repeats(p_chunks bigint[], p_group bigint) RETURNS bigint[]
LANGUAGE plpgsql STRICT AS $$
DECLARE
    v_later bigint[];
    v_awaits bigint[];
BEGIN
    -- Each chunk is looked for by its index, however few there were when the plan was made.
    WITH first AS MATERIALIZED (
        SELECT c.id, c.rank, c.task_id, t.reuse_key, t.expected_size, t.expected_digests
        FROM unnest(p_chunks) AS u (id)
        CROSS JOIN LATERAL (
            SELECT id, rank, task_id FROM ready_chunks
            WHERE id = u.id AND first = 0 AND resume = 0 AND source = 0 AND version = 1 OFFSET 0
        ) AS c
        CROSS JOIN LATERAL (
            SELECT reuse_key, expected_size, expected_digests FROM tasks
            WHERE id = c.task_id AND NOT planned AND reuse_key IS NOT NULL OFFSET 0
        ) AS t
    ), found AS (
        SELECT f.id, coalesce((
                SELECT d.id FROM tasks_under_way(f.reuse_key) AS u (id)
                CROSS JOIN task_of(u.id) AS d CROSS JOIN group_of(d.group_id) AS e CROSS JOIN group_of(p_group) AS g
                WHERE d.id <> f.task_id AND gets_on(d) AND group_may_run(e) AND e.priority >= g.priority
                    AND group_rate(e) IS NULL
                    AND (f.expected_size IS NULL OR d.expected_size IS NULL OR d.expected_size = f.expected_size)
                    AND (f.expected_digests IS NULL OR d.expected_digests IS NULL OR d.expected_digests = f.expected_digests)
                ORDER BY d.id LIMIT 1
            ), nullif(first_value(f.task_id) OVER (PARTITION BY f.reuse_key ORDER BY f.rank, f.id), f.task_id)) AS awaits
        FROM first f
        WHERE (SELECT h.id FROM tasks h WHERE h.reuse_key = f.reuse_key AND h.state = 'succeeded' LIMIT 1) IS NULL
    )
    SELECT array_agg(id), array_agg(awaits) INTO v_later, v_awaits FROM found WHERE awaits IS NOT NULL;
    IF v_later IS NULL THEN RETURN p_chunks; END IF;
    UPDATE ready_chunks c SET status = 'waiting', awaits = u.awaits FROM unnest(v_later, v_awaits) AS u (id, awaits) WHERE has_id(c.id, u.id);
    RETURN (SELECT array_agg(id ORDER BY n) FROM unnest(p_chunks) WITH ORDINALITY AS u (id, n) WHERE id <> ALL (v_later));
END
$$;

-- The tasks of a key that are fetched, or put in place: those with a lease on the first bytes of their file, and those that have had one.
CREATE FUNCTION tasks_under_way(p_reuse_key bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT l.task_id FROM leases l WHERE l.reuse_key = p_reuse_key
    UNION SELECT t.id FROM tasks t
    WHERE t.reuse_key = p_reuse_key AND t.state IN ('queued', 'finalizing') AND t.started_at IS NOT NULL
$$;

-- Whether a task makes progress, so that it is worth waiting for its file: it is being fetched or put in place, or is about to be, and
-- nothing holds it up that would not hold up the waiting task too. A wait never outlasts this (I14).
CREATE FUNCTION gets_on(t tasks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN t.state IN ('queued', 'finalizing') AND EXISTS (
            SELECT 1 FROM leases l
            WHERE l.task_id = t.id AND l.kind IN ('fetch', 'finalize') AND l.progress_at > statement_timestamp() - interval '20 s') THEN true
        -- Between two leases. A chunk that failed waits for longer than another task should.
        WHEN t.state = 'finalizing' OR t.state = 'queued' AND t.planned AND leased_since(t.id) IS NULL
        THEN EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND is_ready(c.status))
            AND NOT EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND is_waiting(c.status))
        ELSE false
    END
$$;

-- Releases chunks that wait for a task which has ended or does not get on. If its file can be used, their leases name it; otherwise one of the chunks
-- is fetched, and the others wait for that one. Costs a probe of an index where there are none. Returns how many there were.
CREATE FUNCTION release_repeats(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_vain bigint[];
    v_groups bigint[];
    v_count bigint;
BEGIN
    SELECT array_agg(r.id), array_agg(r.task_id) FILTER (WHERE r.is_vain) INTO v_chunks, v_vain FROM (
        SELECT c.id, c.task_id, d.state = 'succeeded' AND d.reuse_key IS NULL AS is_vain
        FROM ready_chunks c
        LEFT JOIN task_of(c.awaits) AS d ON true
        LEFT JOIN group_of(d.group_id) AS g ON true
        WHERE is_awaiting(c.status, c.awaits) AND (d.id IS NULL OR NOT gets_on(d) OR NOT group_may_run(g))
        ORDER BY c.id LIMIT p_limit
    ) AS r;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    v_groups := lock_free_groups(ARRAY (SELECT DISTINCT c.group_id FROM ready_chunks c WHERE c.id = ANY (v_chunks)));
    SELECT array_agg(c.id), array_agg(c.task_id) FILTER (WHERE c.task_id = ANY (v_vain)) INTO v_chunks, v_vain
    FROM ready_chunks c WHERE c.id = ANY (v_chunks) AND c.group_id = ANY (v_groups);
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    -- The origin states no validators to ask with: waiting for each other would only make the tasks slow.
    UPDATE tasks SET reuse_key = NULL WHERE id = ANY (v_vain) AND state = 'queued';
    WITH released AS (
        UPDATE ready_chunks SET status = 'ready', awaits = NULL
        WHERE id = ANY (v_chunks) AND status = 'waiting' AND awaits IS NOT NULL RETURNING 1
    )
    SELECT count(*) INTO v_count FROM released;
    RETURN v_count;
END
$$;
