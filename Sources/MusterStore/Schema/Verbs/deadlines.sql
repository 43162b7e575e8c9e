-- The failure detail of a task whose deadline has passed: that, and how its last try failed.
CREATE FUNCTION overdue_detail(t tasks, p_detail text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_detail || CASE WHEN t.failure_kind <> 'deadline' THEN coalesce('; last failure: ' || t.failure_detail, '') ELSE '' END
$$;

-- Fails tasks whose deadline has passed (row 33), p_limit at the most, and none of p_skipped groups. Groups and tasks that another transaction has
-- locked are left for the next round. A group whose own data raise an error does not stop the others (I19): it is in `stuck`.
CREATE FUNCTION fail_overdue(p_limit integer, p_skipped bigint[], OUT count bigint, OUT stuck bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_group bigint;
    v_failed bigint;
    v_row record;
BEGIN
    count := 0;
    stuck := '{}';
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g WHERE g.id IN (
            SELECT o.group_id FROM (
                SELECT t.group_id FROM tasks t
                WHERE t.deadline_at <= statement_timestamp() AND t.state IN ('queued', 'paused', 'finalizing')
                    AND t.group_id <> ALL (p_skipped)
                ORDER BY t.deadline_at LIMIT p_limit
            ) AS o)
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    FOREACH v_group IN ARRAY coalesce(v_groups, '{}') LOOP
        BEGIN
            v_failed := 0;
            FOR v_row IN
                SELECT t.id, overdue_detail(t, format('it was not done within %s s of when it was added or retried', trim_scale(extract(epoch FROM t.time_limit)))) AS detail
                FROM tasks t
                WHERE t.group_id = v_group AND t.deadline_at <= statement_timestamp()
                    AND t.state IN ('queued', 'paused', 'finalizing')
                ORDER BY t.id LIMIT p_limit - count FOR NO KEY UPDATE SKIP LOCKED
            LOOP
                PERFORM fail_task(v_row.id, 'deadline', v_row.detail);
                v_failed := v_failed + 1;
            END LOOP;
            count := count + v_failed;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
            stuck := stuck || v_group;
        END;
    END LOOP;
END
$$;

-- Handles groups whose deadline has passed: p_groups of them, and p_tasks tasks of each, at the most, and none of p_skipped. Groups that another
-- transaction has locked are left for the next round. A group whose own data raise an error does not stop the others (I19): it is in `stuck`. Returns
-- how many groups and tasks there were.
CREATE FUNCTION expire_groups(
    p_groups integer, p_tasks integer, p_skipped bigint[], OUT expired_groups bigint, OUT failed_tasks bigint, OUT stuck bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
BEGIN
    expired_groups := 0;
    failed_tasks := 0;
    stuck := '{}';
    FOR g IN
        SELECT * FROM groups
        WHERE deadline_at <= statement_timestamp() AND state IN ('open', 'sealed')
            AND (NOT overdue OR deadline_action = 'fail') AND id <> ALL (p_skipped)
        ORDER BY deadline_at LIMIT p_groups FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        BEGIN
            failed_tasks := failed_tasks + expire_group(g, p_tasks);
            expired_groups := expired_groups + 1;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
            stuck := stuck || g.id;
        END;
    END LOOP;
END
$$;

-- Handles a group whose deadline has passed and whose lock is held: it goes on and an event says so, or its unfinished tasks fail, p_tasks at the
-- most, and the group ends with the last of them. Returns how many tasks failed.
CREATE FUNCTION expire_group(g groups, p_tasks integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_state text;
    v_row record;
    v_left integer := p_tasks;
BEGIN
    IF g.deadline_action = 'continue' THEN
        UPDATE groups SET overdue = true WHERE id = g.id;
        PERFORM write_event('grp-' || g.id || '-' || g.generation || '-overdue', 'dev.muster.group.overdue.v1', g.name,
            jsonb_build_object('group', g.name, 'generation', g.generation, 'state', g.state, 'remaining', g.remaining));
        RETURN 0;
    END IF;
    -- No more tasks are added to it, and no leases granted.
    UPDATE groups SET overdue = true, state = 'sealed' WHERE id = g.id;
    FOREACH v_state IN ARRAY ARRAY['queued', 'paused', 'finalizing'] LOOP
        FOR v_row IN
            SELECT t.id, overdue_detail(t,
                format('the group was not done within %s s', trim_scale(extract(epoch FROM g.time_limit)))) AS detail
            FROM tasks t WHERE t.group_id = g.id AND t.state = v_state ORDER BY t.id LIMIT v_left
        LOOP
            PERFORM fail_task(v_row.id, 'deadline', v_row.detail);
            v_left := v_left - 1;
        END LOOP;
    END LOOP;
    -- It may have been complete, or empty, and have waited only for other groups or for its seal.
    PERFORM close_groups(ARRAY[g.id]);
    RETURN p_tasks - v_left;
END
$$;
