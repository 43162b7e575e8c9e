-- The verbs of users and services on groups and tasks, at any moment. A wish that arrives in the middle of a transition is kept in tasks.desired
-- (adr/0010). How a verb gets through a large group is in slices.sql.

-- Makes the number of the group's tasks final.
CREATE FUNCTION seal_group(p_group bigint) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE groups SET state = 'sealed' WHERE id = p_group AND state = 'open';
    PERFORM close_groups(ARRAY[p_group]);
END
$$;

-- Stops fetching and keeps what is durable. A file that is being put in place finishes; if it has to be fetched again after all, its task
-- stays paused.
CREATE FUNCTION pause_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    -- The speed before the pause says nothing of the speed after it.
    UPDATE groups SET desired = 'pause', rate_bytes = 0 WHERE id = p_group AND p_keys IS NULL AND state IN ('open', 'sealed');
    UPDATE tasks SET desired = 'pause' WHERE id = ANY (chosen_tasks(p_group, p_keys, '{finalizing}'));
    v_tasks := chosen_tasks(p_group, p_keys, '{queued}');
    PERFORM park_chunks(v_tasks, NULL);
    UPDATE tasks SET state = 'paused', desired = 'pause' WHERE id = ANY (v_tasks);
    UPDATE groups SET queued = queued - cardinality(v_tasks), paused = paused + cardinality(v_tasks) WHERE id = p_group;
END
$$;

-- Lets paused tasks go on.
CREATE FUNCTION resume_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
    v_wishes bigint;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE tasks SET desired = 'run' WHERE id = ANY (chosen_tasks(p_group, p_keys, '{finalizing}')) AND desired = 'pause';
    GET DIAGNOSTICS v_wishes = ROW_COUNT;
    v_tasks := chosen_tasks(p_group, p_keys, '{paused}');
    -- A task that is resumed by name goes on even if the group as a whole was paused: then only the others stay paused. If there is no such task,
    -- nothing is resumed.
    UPDATE groups SET desired = 'run'
    WHERE id = p_group AND desired = 'pause' AND (p_keys IS NULL OR v_wishes > 0 OR cardinality(v_tasks) > 0);
    UPDATE tasks SET state = 'queued', desired = 'run' WHERE id = ANY (v_tasks);
    UPDATE ready_chunks SET status = 'ready' WHERE task_id = ANY (v_tasks) AND status = 'parked' AND kind <> 'purge';
    UPDATE groups SET queued = queued + cardinality(v_tasks), paused = paused - cardinality(v_tasks) WHERE id = p_group;
    PERFORM restart_plain(v_tasks);
END
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
    v_tasks := chosen_tasks(p_group, p_keys, '{queued,paused,finalizing}');
    PERFORM uncount_tasks(p_group, v_tasks);
    PERFORM drop_chunks(v_tasks);
    UPDATE tasks SET state = 'cancelled', desired = 'cancel', bytes_done = 0, finished_at = statement_timestamp()
    WHERE id = ANY (v_tasks);
    UPDATE groups
    SET cancelled = cancelled + cardinality(v_tasks),
        desired = CASE WHEN p_keys IS NULL THEN 'cancel' ELSE desired END,
        state = CASE WHEN p_keys IS NULL THEN 'sealed' ELSE state END
    WHERE id = p_group;
    INSERT INTO pending_events (id, type, subject, data)
    SELECT 'tsk-' || t.id || '-' || t.run || '-cancelled', 'dev.muster.task.cancelled.v1', 'groups/' || g.name,
        jsonb_build_object('group', g.name, 'key', t.key, 'path', t.path)
    FROM tasks t WHERE t.id = ANY (v_tasks) ORDER BY t.id;
    PERFORM close_groups(ARRAY[p_group]);
END
$$;

-- Puts failed tasks back with the bytes that they had (`run_again`). A group that had failed because of tasks that were removed since opens its next
-- generation too, and ends by the tasks that are left. Returns how many tasks were put back.
CREATE FUNCTION retry_group(p_group bigint, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
    v_state text;
BEGIN
    -- A group that is to be cancelled or removed is not retried.
    SELECT g.state INTO v_state FROM groups g
    WHERE g.id = p_group AND NOT is_cancelling(g) AND NOT is_removing(g) FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN 0; END IF;
    v_tasks := chosen_tasks(p_group, p_keys, '{failed}');
    IF cardinality(v_tasks) = 0 AND (p_keys IS NOT NULL OR v_state <> 'failed') THEN RETURN 0; END IF;
    PERFORM run_again(p_group, v_tasks);
    PERFORM restart_plain(v_tasks);
    PERFORM close_groups(ARRAY[p_group]);
    RETURN cardinality(v_tasks);
END
$$;

-- Begins another run of tasks that have failed, or have succeeded and lack their files now, with the bytes that they have. All their sources are usable
-- again, and their time limits begin anew. A finished group opens its next generation and its time limit begins anew, as does that of a group whose
-- deadline had passed. The caller has locked the group.
CREATE FUNCTION run_again(p_group bigint, p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_failed bigint;
BEGIN
    SELECT count(*) INTO v_failed FROM tasks WHERE id = ANY (p_tasks) AND state = 'failed';
    UPDATE sources SET dead = false, refused_with = NULL, asked_again = false, mismatches = 0, refreshes = 0
    WHERE task_id = ANY (p_tasks) AND (dead OR refused_with IS NOT NULL OR mismatches > 0 OR refreshes > 0);
    UPDATE tasks
    SET state = CASE WHEN EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = tasks.id AND c.kind = 'finalize')
            THEN 'finalizing' ELSE 'queued' END,
        desired = 'run', run = run + 1, attempts = 0, restarts = 0, clean = false, finished_at = NULL,
        deadline_at = statement_timestamp() + time_limit,
        -- The old failure says nothing of the retry, which may ask the origin in another way. The attempts keep it.
        failure_kind = NULL, failure_detail = NULL, failure_at = NULL, failure_status = NULL, failure_source = NULL, failure_request = NULL
    WHERE id = ANY (p_tasks);
    UPDATE ready_chunks SET status = 'ready', not_before = NULL, attempts = 0, deaths = 0, moves = 0
    WHERE task_id = ANY (p_tasks) AND kind <> 'purge';
    UPDATE groups g
    SET failed = g.failed - v_failed, succeeded = g.succeeded - (cardinality(p_tasks) - v_failed),
        queued = g.queued + n.queued, finalizing = g.finalizing + n.finalizing, unknown_tasks = g.unknown_tasks + n.unknown,
        generation = g.generation + (g.state NOT IN ('open', 'sealed'))::integer,
        state = CASE WHEN g.state = 'open' THEN 'open' ELSE 'sealed' END,
        -- A retry wants the group to go on; other tasks that were paused stay so.
        desired = 'run', finished_at = NULL, overdue = false,
        deadline_at = CASE WHEN g.overdue OR g.state NOT IN ('open', 'sealed') THEN statement_timestamp() + g.time_limit
            ELSE g.deadline_at END
    FROM (
        SELECT count(*) FILTER (WHERE t.state = 'queued') AS queued, count(*) FILTER (WHERE t.state = 'finalizing') AS finalizing,
            count(*) FILTER (WHERE t.size IS NULL) AS unknown
        FROM tasks t WHERE t.id = ANY (p_tasks)
    ) AS n
    WHERE g.id = p_group;
END
$$;

-- Forgets a group, or some of its tasks. Returns how many tasks were forgotten. A group that others still wait for is not
-- removed.
CREATE FUNCTION remove_tasks(p_group bigint, p_keys text[], p_delete_files boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_tasks bigint[];
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    -- Another request has removed it meanwhile.
    IF NOT FOUND THEN RETURN 0; END IF;
    v_tasks := chosen_tasks(p_group, p_keys, '{queued,paused,finalizing,succeeded,failed,cancelled}');
    PERFORM uncount_tasks(p_group, v_tasks);
    PERFORM drop_chunks(v_tasks);
    IF p_delete_files THEN
        PERFORM purge_files(v_tasks);
    END IF;
    DELETE FROM sources WHERE task_id = ANY (v_tasks);
    DELETE FROM tasks WHERE id = ANY (v_tasks);
    IF p_keys IS NULL THEN
        PERFORM leave_chains(p_group);
        PERFORM write_event('grp-' || g.id || '-' || g.generation || '-removed', 'dev.muster.group.removed.v1', g.name,
            jsonb_build_object('group', g.name, 'generation', g.generation, 'state', g.state));
        DELETE FROM groups WHERE id = p_group;
    ELSE
        PERFORM close_groups(ARRAY[p_group]);
    END IF;
    RETURN cardinality(v_tasks);
END
$$;

-- Starts tasks over whose plain GET was stopped in the middle and can't be resumed: their next content version begins at the start.
CREATE FUNCTION restart_plain(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    FOR v_row IN
        SELECT t.id, t.expected_size, c.source, c.attempts, c.deaths FROM tasks t
        JOIN ready_chunks c ON c.task_id = t.id AND c.kind = 'fetch' AND c.resume > c.first
        WHERE t.id = ANY (p_tasks) AND NOT goes_on(t)
    LOOP
        PERFORM start_over(v_row.id, v_row.expected_size, v_row.source, v_row.attempts, v_row.deaths);
    END LOOP;
END
$$;

-- The tasks that a verb applies to: all tasks of the group in some states, or those of them with the keys. The caller has locked the group. Two
-- statements, since one plan can't be good for both; each key is looked for by its index, however few tasks there were when the plan was made.
CREATE FUNCTION chosen_tasks(p_group bigint, p_keys text[], p_states text[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_keys IS NULL THEN
        RETURN (SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM tasks WHERE group_id = p_group AND state = ANY (p_states));
    END IF;
    RETURN (SELECT coalesce(array_agg(DISTINCT t.id ORDER BY t.id), '{}') FROM unnest(p_keys) AS k (key)
        CROSS JOIN LATERAL (SELECT id FROM tasks WHERE group_id = p_group AND key = k.key AND state = ANY (p_states) OFFSET 0) AS t);
END
$$;

-- Takes tasks out of their group's counts, with the bytes that they stood for. Their chunks are still there.
CREATE FUNCTION uncount_tasks(p_group bigint, p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE groups g
    SET queued = g.queued - n.queued, paused = g.paused - n.paused,
        finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded - n.succeeded, failed = g.failed - n.failed,
        cancelled = g.cancelled - n.cancelled,
        bytes_done = g.bytes_done - n.done - p.done, bytes_total = g.bytes_total - n.total,
        unknown_tasks = g.unknown_tasks - n.unknown
    FROM (
        SELECT count(*) FILTER (WHERE state = 'queued') AS queued,
            count(*) FILTER (WHERE state = 'paused') AS paused, count(*) FILTER (WHERE state = 'finalizing') AS finalizing,
            count(*) FILTER (WHERE state = 'succeeded') AS succeeded, count(*) FILTER (WHERE state = 'failed') AS failed,
            count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
            -- Cancelled tasks are not in the counts of bytes any more.
            coalesce(sum(bytes_done) FILTER (WHERE state <> 'cancelled'), 0)::bigint AS done,
            coalesce(sum(size) FILTER (WHERE state <> 'cancelled'), 0)::bigint AS total,
            count(*) FILTER (WHERE state NOT IN ('failed', 'cancelled') AND size IS NULL) AS unknown
        FROM tasks WHERE id = ANY (p_tasks)
    ) AS n, (
        SELECT coalesce(sum(part), 0)::bigint AS done FROM (
            SELECT durable - first AS part FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'fetch'
            UNION ALL SELECT resume - first FROM ready_chunks WHERE task_id = ANY (p_tasks) AND kind = 'fetch'
        ) AS parts
    ) AS p
    WHERE g.id = p_group
$$;
