-- What a check repairs (adr/0048). Each repair is a transaction of its own, and asks once more whether it is still called for. Nothing here deletes a
-- file by itself: leftovers are purged, and sessions revoked, as everywhere.

-- Repairs one finding; of files that are lost, all of the same group. Returns whether it did; NULL if another coordinator has it, another transaction
-- keeps its group locked (I19), or the check has ended.
CREATE FUNCTION repair_finding(p_check bigint, p_serial bigint, p_first_chunk bigint) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    f check_findings;
    v_done boolean;
BEGIN
    SELECT * INTO f FROM check_findings WHERE check_id = p_check AND serial = p_serial AND outcome = 'pending'
        AND EXISTS (SELECT 1 FROM checks c WHERE c.id = p_check AND c.finished_at IS NULL) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NULL; END IF;
    PERFORM g.id FROM groups g WHERE g.name = f.group_name FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM groups g WHERE g.name = f.group_name) THEN RETURN NULL; END IF;
    v_done := CASE
        WHEN f.kind = 'rows' THEN recount_group(f.group_name)
        WHEN f.kind IN ('fileMissing', 'fileChanged') THEN fetch_lost_files(f, p_first_chunk)
        WHEN f.kind IN ('partMissing', 'partShort') THEN fetch_lost_part(f, p_first_chunk)
        WHEN f.kind = 'partUnknown' THEN purge_unknown_part(f)
        WHEN f.kind = 'sessionUnknown' THEN revoke_unknown_session(f)
    END;
    UPDATE check_findings SET outcome = CASE WHEN v_done THEN 'repaired' ELSE 'found' END
    WHERE check_id = p_check AND serial = p_serial AND outcome = 'pending';
    RETURN coalesce(v_done, false);
END
$$;

-- Counts the tasks of a group anew (I6). A finished group that has unfinished tasks is left as it is: which of both is wrong can't be told.
CREATE FUNCTION recount_group(p_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_group bigint;
BEGIN
    SELECT g.id INTO v_group FROM groups g WHERE g.name = p_name FOR NO KEY UPDATE;
    UPDATE groups g
    SET queued = n.queued, paused = n.paused, finalizing = n.finalizing, succeeded = n.succeeded, failed = n.failed, cancelled = n.cancelled,
        bytes_done = n.done + p.done, bytes_total = n.total, unknown_tasks = n.unknown
    FROM (
        SELECT count(*) FILTER (WHERE state = 'queued') AS queued, count(*) FILTER (WHERE state = 'paused') AS paused,
            count(*) FILTER (WHERE state = 'finalizing') AS finalizing, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
            count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
            coalesce(sum(bytes_done), 0)::bigint AS done, coalesce(sum(size) FILTER (WHERE state <> 'cancelled'), 0)::bigint AS total,
            count(*) FILTER (WHERE state NOT IN ('failed', 'cancelled') AND size IS NULL) AS unknown
        FROM tasks WHERE group_id = v_group
    ) AS n, (
        SELECT coalesce(sum(part), 0)::bigint AS done FROM (
            SELECT durable - first AS part FROM leases WHERE group_id = v_group AND kind = 'fetch'
            UNION ALL SELECT resume - first FROM ready_chunks WHERE group_id = v_group AND kind = 'fetch'
        ) AS parts
    ) AS p
    WHERE g.id = v_group AND (g.state IN ('open', 'sealed') OR n.queued + n.paused + n.finalizing = 0);
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM close_groups(ARRAY[v_group]);
    RETURN true;
END
$$;

-- Queues the tasks of a finding's group again whose files are gone, or not what they were: a thousand of those that the check has found. As after a
-- retry, a finished group opens its next generation; if it did so for one file after the other, it would complete as often (I7). The next content
-- version takes the place of a file, if that is still the task's own (`isOutdated` in the worker). Returns whether any task is queued.
CREATE FUNCTION fetch_lost_files(f check_findings, p_first_chunk bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_serials bigint[] := ARRAY(
        SELECT o.serial FROM check_findings o
        WHERE o.check_id = f.check_id AND o.group_name = f.group_name AND o.kind IN ('fileMissing', 'fileChanged') AND o.outcome = 'pending'
        ORDER BY o.serial LIMIT 1000 FOR UPDATE SKIP LOCKED);
    v_tasks bigint[] := '{}';
BEGIN
    SELECT o.* INTO g FROM groups o WHERE o.name = f.group_name AND NOT is_removing(o) AND o.desired <> 'cancel'
        -- A group that its user has paused is not resumed.
        AND (o.desired = 'run' OR o.state NOT IN ('open', 'sealed')) FOR NO KEY UPDATE;
    IF FOUND THEN
        PERFORM lock_paths_of(ARRAY(SELECT o.task_id FROM check_findings o WHERE o.check_id = f.check_id AND o.serial = ANY (v_serials)));
        v_tasks := ARRAY(
            SELECT t.id FROM check_findings o JOIN tasks t ON t.id = o.task_id
            WHERE o.check_id = f.check_id AND o.serial = ANY (v_serials) AND t.group_id = g.id AND t.state = 'succeeded' AND t.version = o.version
                AND t.run = o.run AND had_path_last(t)
                AND NOT EXISTS (SELECT 1 FROM tasks h WHERE h.sink = t.sink AND h.path = t.path AND holds_path(h.state))
            ORDER BY t.id FOR NO KEY UPDATE OF t);
    END IF;
    IF v_tasks <> '{}' THEN
        PERFORM run_again(g.id, v_tasks);
        PERFORM start_over_because(t, coalesce(t.source, 0), 0, p_first_chunk, 'changed', 'muster fsck: ' || o.detail)
        FROM check_findings o JOIN tasks t ON t.id = o.task_id
        WHERE o.check_id = f.check_id AND o.serial = ANY (v_serials) AND t.id = ANY (v_tasks);
    END IF;
    UPDATE check_findings o SET outcome = CASE WHEN o.task_id = ANY (v_tasks) THEN 'repaired' ELSE 'found' END
    WHERE o.check_id = f.check_id AND o.serial = ANY (v_serials);
    RETURN v_tasks <> '{}';
END
$$;

-- Begins the next content version of a task whose part is gone or too short. While the task is leased, its worker notices that by itself (F19).
CREATE FUNCTION fetch_lost_part(f check_findings, p_first_chunk bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    t tasks;
BEGIN
    SELECT o.* INTO g FROM groups o WHERE o.name = f.group_name AND NOT is_removing(o) AND NOT is_cancelling(o) FOR NO KEY UPDATE;
    SELECT o.* INTO t FROM tasks o WHERE o.id = f.task_id AND o.group_id = g.id AND o.run = f.run;
    IF NOT FOUND OR durable_part(f.sink, f.task_id, f.version) IS NULL OR EXISTS (SELECT 1 FROM leases l WHERE l.task_id = f.task_id) THEN
        RETURN false;
    END IF;
    PERFORM start_over_because(t, coalesce(t.source, 0), 0, p_first_chunk, 'changed', 'muster fsck: ' || f.detail);
    RETURN true;
END
$$;

-- Has a part deleted that no row explains, like the leftovers of a cancelled task.
CREATE FUNCTION purge_unknown_part(f check_findings) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_unknown_part(f.task_id, f.version) THEN RETURN false; END IF;
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status)
    VALUES ('purge', f.task_id, 0, 0, f.sink, f.version, chunk_rank('purge', 0, false), purge_status(f.task_id));
    RETURN true;
END
$$;

-- Has a session revoked in the sink where its directory was left: the next lease there names it (adr/0017).
CREATE FUNCTION revoke_unknown_session(f check_findings) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_unknown_session(f.sink, f.task_id) THEN RETURN false; END IF;
    INSERT INTO revocations (sink, session_id) VALUES (f.sink, f.task_id) ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;
