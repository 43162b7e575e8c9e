-- What people and services ask of groups and tasks. Every verb locks its group first and is harmless when repeated (I10).

-- Moves staged tasks into a group, all or none. `outcome` is 'added', or says why nothing was, with the line of the manifest
-- and, where two lines disagree, the other one.
--
-- p_staged is how many lines were staged. Fewer are there when the database crashed in between (the table is not logged), when
-- the upload was swept, or when this very call was committed before and its answer got lost: then nothing is added, and the
-- caller sends everything again, which is harmless.
CREATE FUNCTION add_staged_tasks(p_group bigint, p_upload bigint, p_staged bigint, p_first_chunk bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, added bigint, existing bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    g groups;
    v_staged bigint;
BEGIN
    added := 0;
    existing := 0;
    -- 1. Origins come before groups in the order of locks.
    INSERT INTO origins (key)
    SELECT DISTINCT unnest(s.origins) AS key FROM staged_tasks s WHERE s.upload = p_upload ORDER BY key
    ON CONFLICT (key) DO NOTHING;
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 'removed';
        RETURN NEXT;
        RETURN;
    END IF;

    IF p_staged <> (SELECT count(*) FROM staged_tasks s WHERE s.upload = p_upload) THEN
        outcome := 'incomplete';
        RETURN NEXT;
        RETURN;
    END IF;

    -- 2. A key that comes twice is harmless when it means the same, and refused when it does not.
    SELECT 'duplicateKey', d.line, d.first_line, d.key INTO outcome, line, other_line, subject
    FROM (
        SELECT s.line, s.key, s.urls, s.path, first_value(s.line) OVER w AS first_line, first_value(s.urls) OVER w AS first_urls,
            first_value(s.path) OVER w AS first_path
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (PARTITION BY s.key ORDER BY s.line)
    ) AS d
    WHERE d.line <> d.first_line AND (d.urls <> d.first_urls OR d.path <> d.first_path) ORDER BY d.line LIMIT 1;
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
    IF v_staged = 0 THEN
        outcome := 'added';
        RETURN NEXT;
        RETURN;
    END IF;
    IF g.state <> 'open' THEN
        SELECT CASE WHEN g.state = 'sealed' THEN 'sealed' ELSE 'finished' END, s.line, s.key INTO outcome, line, subject
        FROM staged_tasks s WHERE s.upload = p_upload ORDER BY s.line LIMIT 1;
        RETURN NEXT;
        RETURN;
    END IF;

    -- 4. Two live tasks never write to one destination. The unique index stands behind this.
    SELECT 'duplicatePath', d.line, d.first_line, d.path INTO outcome, line, other_line, subject
    FROM (
        SELECT s.line, s.path, min(s.line) OVER (PARTITION BY s.path) AS first_line
        FROM staged_tasks s WHERE s.upload = p_upload
    ) AS d
    WHERE d.line <> d.first_line ORDER BY d.line LIMIT 1;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;
    SELECT 'destinationTaken', s.line, s.path INTO outcome, line, subject
    FROM staged_tasks s
    JOIN tasks t ON t.sink = g.sink AND t.path = s.path AND t.state IN ('queued', 'active', 'paused', 'finalizing')
    WHERE s.upload = p_upload ORDER BY s.line LIMIT 1;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;

    -- 5. The tasks, their sources, and the first chunk of each.
    WITH made AS MATERIALIZED (
        INSERT INTO tasks (group_id, key, sink, path, state, priority, expected_size, expected_digests, metadata, size)
        SELECT p_group, s.key, g.sink, s.path, CASE WHEN g.desired = 'pause' THEN 'paused' ELSE 'queued' END, s.priority,
            s.size, s.digests, s.metadata, s.size
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
    SELECT task_id, p_group, origin_id, g.sink, 1, least(size, p_first_chunk), chunk_rank('fetch', priority, true),
        CASE WHEN g.desired = 'pause' THEN 'parked' ELSE 'ready' END
    FROM sourced WHERE ordinal = 0 ORDER BY task_id;

    UPDATE groups
    SET queued = queued + CASE WHEN g.desired = 'pause' THEN 0 ELSE v_staged END,
        paused = paused + CASE WHEN g.desired = 'pause' THEN v_staged ELSE 0 END,
        bytes_total = bytes_total + n.bytes, unknown_tasks = unknown_tasks + n.unknown
    FROM (
        SELECT coalesce(sum(s.size), 0)::bigint AS bytes, count(*) FILTER (WHERE s.size IS NULL) AS unknown
        FROM staged_tasks s WHERE s.upload = p_upload
    ) AS n
    WHERE id = p_group;
    DELETE FROM staged_tasks s WHERE s.upload = p_upload;
    outcome := 'added';
    added := v_staged;
    RETURN NEXT;
END
$$;

-- The number of the group's tasks is final now.
CREATE FUNCTION seal_group(p_group bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE groups SET state = 'sealed' WHERE id = p_group AND state = 'open';
    PERFORM close_groups(ARRAY[p_group]);
END
$$;

-- The tasks that a verb means: all of the group's, or those with the keys. Their group is locked by then.
CREATE FUNCTION chosen_tasks(p_group bigint, p_keys text[], p_states text[]) RETURNS bigint[]
LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM tasks
    WHERE group_id = p_group AND state = ANY (p_states) AND (p_keys IS NULL OR key = ANY (p_keys))
$$;

-- Stop fetching and keep what is durable. Files that are being put in place finish.
CREATE FUNCTION pause_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
    v_queued bigint;
    v_active bigint;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE groups SET desired = 'pause' WHERE id = p_group AND p_keys IS NULL AND state IN ('open', 'sealed');
    v_tasks := chosen_tasks(p_group, p_keys, '{queued,active}');
    PERFORM park_chunks(v_tasks);
    WITH stopped AS (
        UPDATE tasks t SET state = 'paused', desired = 'pause', leases = 0
        FROM tasks before WHERE before.id = t.id AND t.id = ANY (v_tasks) RETURNING before.state AS was
    )
    SELECT count(*) FILTER (WHERE was = 'queued'), count(*) FILTER (WHERE was = 'active') INTO v_queued, v_active FROM stopped;
    UPDATE groups SET queued = queued - v_queued, active = active - v_active, paused = paused + v_queued + v_active
    WHERE id = p_group;
END
$$;

-- A stream that was stopped in the middle can't be taken up there: its next content version begins at the start.
CREATE FUNCTION restart_streams(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    FOR v_row IN
        SELECT t.id, t.expected_size, c.source, c.attempts, c.deaths FROM tasks t
        JOIN ready_chunks c ON c.task_id = t.id AND c.kind = 'fetch' AND c.resume > c.first
        WHERE t.id = ANY (p_tasks) AND t.stream
    LOOP
        PERFORM start_over(v_row.id, true, v_row.expected_size, v_row.source, v_row.attempts, v_row.deaths);
    END LOOP;
END
$$;

CREATE FUNCTION resume_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    -- A task that is resumed by name goes on although the group as a whole was paused: then only the others stay paused.
    UPDATE groups SET desired = 'run' WHERE id = p_group AND desired = 'pause';
    v_tasks := chosen_tasks(p_group, p_keys, '{paused}');
    UPDATE tasks SET state = 'queued', desired = 'run' WHERE id = ANY (v_tasks);
    UPDATE ready_chunks SET status = 'ready' WHERE task_id = ANY (v_tasks) AND status = 'parked';
    UPDATE groups SET queued = queued + cardinality(v_tasks), paused = paused - cardinality(v_tasks) WHERE id = p_group;
    PERFORM restart_streams(v_tasks);
END
$$;

-- Takes tasks out of everything that could be leased, and has what is left of them on disk deleted.
CREATE FUNCTION drop_chunks(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM leases WHERE task_id = ANY (p_tasks);
    DELETE FROM ready_chunks WHERE task_id = ANY (p_tasks);
    DELETE FROM done_chunks WHERE task_id = ANY (p_tasks);
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank)
    SELECT 'purge', id, 0, 0, sink, version, chunk_rank('purge', 0, false)
    FROM tasks WHERE id = ANY (p_tasks) AND started_at IS NOT NULL AND state <> 'succeeded' ORDER BY id;
END
$$;

-- Takes tasks out of their group's counts, with the bytes that they stood for. Their chunks are still there.
CREATE FUNCTION uncount_tasks(p_group bigint, p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE groups g
    SET queued = g.queued - n.queued, active = g.active - n.active, paused = g.paused - n.paused,
        finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded - n.succeeded, failed = g.failed - n.failed,
        cancelled = g.cancelled - n.cancelled,
        bytes_done = g.bytes_done - n.done - p.done, bytes_total = g.bytes_total - n.total,
        unknown_tasks = g.unknown_tasks - n.unknown
    FROM (
        SELECT count(*) FILTER (WHERE state = 'queued') AS queued, count(*) FILTER (WHERE state = 'active') AS active,
            count(*) FILTER (WHERE state = 'paused') AS paused, count(*) FILTER (WHERE state = 'finalizing') AS finalizing,
            count(*) FILTER (WHERE state = 'succeeded') AS succeeded, count(*) FILTER (WHERE state = 'failed') AS failed,
            count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
            -- What was cancelled has left the bytes already.
            coalesce(sum(bytes_done) FILTER (WHERE state <> 'cancelled'), 0)::bigint AS done,
            coalesce(sum(size) FILTER (WHERE state <> 'cancelled'), 0)::bigint AS total,
            count(*) FILTER (WHERE state <> 'cancelled' AND size IS NULL) AS unknown
        FROM tasks WHERE id = ANY (p_tasks)
    ) AS n, (
        SELECT coalesce(sum(part), 0)::bigint AS done FROM (
            SELECT durable - first AS part FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'fetch'
            UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = ANY (p_tasks) AND kind = 'fetch'
        ) AS parts
    ) AS p
    WHERE g.id = p_group
$$;

-- Ends tasks and drops their unfinished bytes (I13); finished files stay. The group as a whole ends with it.
CREATE FUNCTION cancel_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_tasks bigint[];
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF g.state NOT IN ('open', 'sealed') THEN RETURN; END IF;
    v_tasks := chosen_tasks(p_group, p_keys, '{queued,active,paused,finalizing}');
    PERFORM uncount_tasks(p_group, v_tasks);
    PERFORM drop_chunks(v_tasks);
    UPDATE tasks SET state = 'cancelled', desired = 'cancel', leases = 0, bytes_done = 0, finished_at = statement_timestamp()
    WHERE id = ANY (v_tasks);
    UPDATE groups
    SET cancelled = cancelled + cardinality(v_tasks),
        desired = CASE WHEN p_keys IS NULL THEN 'cancel' ELSE desired END,
        state = CASE WHEN p_keys IS NULL THEN 'sealed' ELSE state END
    WHERE id = p_group;
    INSERT INTO events (id, type, subject, data)
    SELECT 'tsk-' || t.id || '-' || t.run || '-cancelled', 'dev.muster.task.cancelled.v1', 'groups/' || g.name,
        jsonb_build_object('group', g.name, 'key', t.key, 'path', t.path)
    FROM tasks t WHERE t.id = ANY (v_tasks) ORDER BY t.id
    ON CONFLICT (id) DO NOTHING;
    PERFORM close_groups(ARRAY[p_group]);
END
$$;

-- Puts failed tasks back with what they had. A group that had finished opens its next generation. Returns how many there were.
CREATE FUNCTION retry_group(p_group bigint, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    v_tasks := chosen_tasks(p_group, p_keys, '{failed}');
    IF cardinality(v_tasks) = 0 THEN RETURN 0; END IF;
    UPDATE sources SET dead = false WHERE task_id = ANY (v_tasks) AND dead;
    UPDATE tasks
    SET state = CASE WHEN EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = tasks.id AND c.kind = 'finalize')
            THEN 'finalizing' ELSE 'queued' END,
        desired = 'run', run = run + 1, restarts = 0, finished_at = NULL
    WHERE id = ANY (v_tasks);
    UPDATE ready_chunks SET status = 'ready', not_before = NULL, attempts = 0, deaths = 0 WHERE task_id = ANY (v_tasks);
    UPDATE groups g
    SET failed = g.failed - cardinality(v_tasks), queued = g.queued + n.queued, finalizing = g.finalizing + n.finalizing,
        generation = g.generation + (g.state NOT IN ('open', 'sealed'))::integer,
        state = CASE WHEN g.state = 'open' THEN 'open' ELSE 'sealed' END,
        -- Whoever retries wants it to go on; other tasks that were paused stay so.
        desired = 'run', finished_at = NULL
    FROM (
        SELECT count(*) FILTER (WHERE t.state = 'queued') AS queued, count(*) FILTER (WHERE t.state = 'finalizing') AS finalizing
        FROM tasks t WHERE t.id = ANY (v_tasks)
    ) AS n
    WHERE g.id = p_group;
    PERFORM restart_streams(v_tasks);
    RETURN cardinality(v_tasks);
END
$$;

-- Has the finished files of tasks deleted, as far as they are still of the size that Muster left them with.
CREATE FUNCTION purge_files(p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, remove_path, remove_size)
    SELECT 'purge', id, 0, 0, sink, version, chunk_rank('purge', 0, false), path, size
    FROM tasks WHERE id = ANY (p_tasks) AND state = 'succeeded' ORDER BY id
$$;

-- Forgets a group, or some of its tasks. Returns how many tasks were forgotten.
CREATE FUNCTION remove_tasks(p_group bigint, p_keys text[], p_delete_files boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_tasks bigint[];
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR UPDATE;
    -- Somebody else has removed it meanwhile.
    IF NOT FOUND THEN RETURN 0; END IF;
    v_tasks := chosen_tasks(p_group, p_keys, '{queued,active,paused,finalizing,succeeded,failed,cancelled}');
    PERFORM uncount_tasks(p_group, v_tasks);
    PERFORM drop_chunks(v_tasks);
    IF p_delete_files THEN
        PERFORM purge_files(v_tasks);
    END IF;
    DELETE FROM tasks WHERE id = ANY (v_tasks);
    IF p_keys IS NULL THEN
        PERFORM write_event('grp-' || g.id || '-' || g.generation || '-removed', 'dev.muster.group.removed.v1', g.name,
            jsonb_build_object('group', g.name, 'generation', g.generation, 'state', g.state));
        DELETE FROM groups WHERE id = p_group;
    ELSE
        PERFORM close_groups(ARRAY[p_group]);
    END IF;
    RETURN cardinality(v_tasks);
END
$$;
