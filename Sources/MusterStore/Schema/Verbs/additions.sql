-- Moves staged tasks into a group, all or none. `outcome` is 'added', or says why nothing was, with the line of the manifest
-- and its first URL and, where two lines disagree, the same of the other one; where a live task has the destination, `other` is its group.
--
-- p_staged is how many lines were staged. Fewer are there when the database crashed in between (the table is not logged), when
-- the upload was swept, or when this very call was committed before and its answer got lost: then nothing is added, and the
-- caller sends everything again, which is harmless.
--
-- p_reopens opens a group which is sealed or has finished for them, if any of them is new to it. The outcome 'cancelling' says that a
-- cancel of it has to be finished first.
CREATE FUNCTION add_tasks(p_group bigint, p_upload bigint, p_staged bigint, p_first_chunk bigint, p_reopens boolean)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text, added bigint, existing bigint)
LANGUAGE plpgsql
-- Planned anew each time: a plan for one task does not do for millions.
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    g groups;
    v_staged bigint;
BEGIN
    added := 0;
    existing := 0;
    -- An upload that is younger than the statistics looks like a single line. Joined line by line, thousands would take minutes.
    IF p_staged > 100 THEN
        PERFORM set_config('enable_nestloop', 'off', true);
    END IF;
    -- 1. Origins come before groups in the order of locks.
    INSERT INTO origins (key)
    SELECT DISTINCT unnest(s.origins) AS key FROM staged_tasks s WHERE s.upload = p_upload ORDER BY key
    ON CONFLICT (key) DO NOTHING;
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF NOT FOUND OR is_removing(g) THEN
        outcome := 'removed';
    ELSIF p_staged <> (SELECT count(*) FROM staged_tasks s WHERE s.upload = p_upload) THEN
        outcome := 'incomplete';
    END IF;
    IF outcome IS NOT NULL THEN RETURN NEXT; RETURN; END IF;

    -- 2. A key that comes twice is harmless when it means the same, and refused when it does not.
    SELECT k.* INTO outcome, line, other_line, subject, url, other FROM staged_key_conflict(p_upload) AS k;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;
    DELETE FROM staged_tasks s
    USING (
        SELECT t.line, row_number() OVER (PARTITION BY t.key ORDER BY t.line) AS n
        FROM staged_tasks t WHERE t.upload = p_upload
    ) AS d
    WHERE s.upload = p_upload AND s.line = d.line AND d.n > 1;

    -- 3. Keys that exist already change nothing.
    DELETE FROM staged_tasks s USING tasks t WHERE s.upload = p_upload AND t.group_id = p_group AND t.key = s.key;
    GET DIAGNOSTICS existing = ROW_COUNT;
    SELECT count(*) INTO v_staged FROM staged_tasks s WHERE s.upload = p_upload;
    IF v_staged = 0 OR overflows(g, p_upload) THEN
        outcome := CASE WHEN v_staged = 0 THEN 'added' ELSE 'tooLarge' END;
        RETURN NEXT;
        RETURN;
    END IF;
    IF g.state <> 'open' AND NOT p_reopens THEN
        SELECT CASE WHEN g.state = 'sealed' AND NOT is_cancelling(g) THEN 'sealed' ELSE 'finished' END, s.line, s.key
        INTO outcome, line, subject
        FROM staged_tasks s WHERE s.upload = p_upload ORDER BY s.line LIMIT 1;
        RETURN NEXT;
        RETURN;
    END IF;

    -- 4. Two live tasks never have one destination (I17). The unique index stands behind this.
    SELECT p.* INTO outcome, line, other_line, subject, url, other FROM staged_path_conflict(p_upload, g.sink) AS p;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;

    IF g.state <> 'open' THEN
        IF NOT reopen_group(p_group) THEN
            outcome := 'cancelling';
            RETURN NEXT;
            RETURN;
        END IF;
        SELECT * INTO g FROM groups WHERE id = p_group;
    END IF;

    -- 5. The tasks, their sources, and the first chunk of each.
    PERFORM place_staged(g, p_upload, p_first_chunk, v_staged);
    DELETE FROM staged_tasks s WHERE s.upload = p_upload;
    outcome := 'added';
    added := v_staged;
    RETURN NEXT;
END
$$;

-- Whether the sizes of a group's files would add up to more than a bigint holds, with those that are staged.
CREATE FUNCTION overflows(g groups, p_upload bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT g.bytes_total + coalesce(sum(s.size), 0) >= 2 ^ 63 FROM staged_tasks s WHERE s.upload = p_upload
$$;

-- The first staged line whose key an earlier line has with another meaning; no row when there is none.
CREATE FUNCTION staged_key_conflict(p_upload bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE sql STABLE AS $$
    SELECT 'duplicateKey', d.line, d.first_line, d.key, d.urls[1], d.first_urls[1]
    FROM (
        SELECT s.line, s.key, s.urls, s.path, first_value(s.line) OVER w AS first_line, first_value(s.urls) OVER w AS first_urls,
            first_value(s.path) OVER w AS first_path
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (PARTITION BY s.key ORDER BY s.line)
    ) AS d
    WHERE d.line <> d.first_line AND (d.urls <> d.first_urls OR d.path <> d.first_path) ORDER BY d.line LIMIT 1
$$;

-- The first staged line whose destination an earlier line or a live task has; no row when there is none.
CREATE FUNCTION staged_path_conflict(p_upload bigint, p_sink text)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT 'duplicatePath', d.line, d.first_line, d.path, d.urls[1], d.first_urls[1]
    FROM (
        SELECT s.line, s.path, s.urls, first_value(s.line) OVER w AS first_line, first_value(s.urls) OVER w AS first_urls
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (PARTITION BY s.path ORDER BY s.line)
    ) AS d
    WHERE d.line <> d.first_line ORDER BY d.line LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    RETURN QUERY
    SELECT 'destinationTaken', s.line, NULL::bigint, s.path, s.urls[1], g.name
    FROM staged_tasks s
    JOIN tasks t ON t.sink = p_sink AND t.path = s.path AND t.state IN ('queued', 'active', 'paused', 'finalizing')
    JOIN groups g ON g.id = t.group_id
    WHERE s.upload = p_upload ORDER BY s.line LIMIT 1;
END
$$;

-- Makes tasks of staged lines: the tasks, their sources, and the first chunk of each. p_count lines are staged.
CREATE FUNCTION place_staged(g groups, p_upload bigint, p_first_chunk bigint, p_count bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH made AS MATERIALIZED (
        INSERT INTO tasks (group_id, key, sink, path, state, priority, expected_size, expected_digests, metadata, size,
            fetch_options, content_type, time_limit, deadline_at, mirrors, reuse_key)
        SELECT g.id, s.key, g.sink, s.path, CASE WHEN g.desired = 'pause' THEN 'paused' ELSE 'queued' END, s.priority,
            s.size, s.digests, s.metadata, s.size, s.options, s.content_type, s.deadline_ms * interval '1 ms',
            statement_timestamp() + s.deadline_ms * interval '1 ms', cardinality(s.urls),
            -- Equal for tasks that ask for the same in the same way: reuse.sql.
            reuse_key(g, s.urls[1], s.headers, s.options)
        FROM staged_tasks s WHERE s.upload = p_upload ORDER BY s.line
        RETURNING id, key, priority, size
    ), sourced AS MATERIALIZED (
        SELECT m.id AS task_id, m.priority, m.size, u.ordinal - 1 AS ordinal, u.url, o.id AS origin_id, s.headers
        FROM made m
        JOIN staged_tasks s ON s.upload = p_upload AND s.key = m.key
        CROSS JOIN unnest(s.urls, s.origins) WITH ORDINALITY AS u (url, origin, ordinal)
        JOIN origins o ON o.key = u.origin
    ), kept AS (
        INSERT INTO sources (task_id, ordinal, url, origin_id, headers)
        SELECT task_id, ordinal, url, origin_id, headers FROM sourced
    )
    INSERT INTO ready_chunks (task_id, group_id, origin_id, sink, version, last, rank, status)
    SELECT task_id, g.id, origin_id, g.sink, 1, least(size, p_first_chunk), chunk_rank('fetch', priority, true),
        CASE WHEN g.desired = 'pause' THEN 'parked' ELSE 'ready' END
    FROM sourced WHERE ordinal = 0 ORDER BY task_id;

    UPDATE groups
    SET queued = queued + CASE WHEN g.desired = 'pause' THEN 0 ELSE p_count END,
        paused = paused + CASE WHEN g.desired = 'pause' THEN p_count ELSE 0 END,
        bytes_total = bytes_total + n.bytes, unknown_tasks = unknown_tasks + n.unknown
    FROM (
        SELECT coalesce(sum(s.size), 0)::bigint AS bytes, count(*) FILTER (WHERE s.size IS NULL) AS unknown
        FROM staged_tasks s WHERE s.upload = p_upload
    ) AS n
    WHERE id = g.id;
END
$$;

-- Opens a group for more tasks. A group that had finished begins its next generation, with a new deadline; a group whose time was over
-- gets a new deadline too. Returns false when a cancel of it has to be finished first.
CREATE FUNCTION reopen_group(p_group bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF is_cancelling(g) THEN RETURN false; END IF;
    IF g.state = 'sealed' THEN
        -- A task that is added to a group whose time was over does not fail with the rest.
        UPDATE groups
        SET state = 'open', overdue = false,
            deadline_at = CASE WHEN overdue THEN statement_timestamp() + time_limit ELSE deadline_at END
        WHERE id = p_group;
    ELSIF g.state <> 'open' THEN
        UPDATE groups
        SET state = 'open', generation = generation + 1, desired = 'run', finished_at = NULL, overdue = false,
            deadline_at = statement_timestamp() + time_limit
        WHERE id = p_group AND NOT is_removing(groups);
    END IF;
    RETURN true;
END
$$;
