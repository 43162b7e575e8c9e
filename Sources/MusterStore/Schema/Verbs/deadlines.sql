-- Fails tasks whose time is over (row 33), p_limit at the most. Groups and tasks that another transaction has locked are left for
-- the next round. Returns how many there were.
CREATE FUNCTION fail_overdue(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_count bigint := 0;
    v_row record;
BEGIN
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g WHERE g.id IN (
            SELECT o.group_id FROM (
                SELECT t.group_id FROM tasks t
                WHERE t.deadline_at <= statement_timestamp() AND t.state IN ('queued', 'active', 'paused', 'finalizing')
                ORDER BY t.deadline_at LIMIT p_limit
            ) AS o)
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_groups IS NULL THEN RETURN 0; END IF;
    FOR v_row IN
        SELECT t.id, t.time_limit FROM tasks t
        WHERE t.group_id = ANY (v_groups) AND t.deadline_at <= statement_timestamp()
            AND t.state IN ('queued', 'active', 'paused', 'finalizing')
        ORDER BY t.id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM fail_task(v_row.id, 'deadline',
            format('it was not done within %s of when it was added or retried', v_row.time_limit));
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END
$$;

-- What follows when the time for a group is over: it goes on and says so, or its unfinished tasks fail, and the group ends with that.
-- p_groups groups and p_tasks tasks of each at the most; groups that another transaction has locked are left for the next
-- round. Returns how many groups and tasks there were.
CREATE FUNCTION expire_groups(p_groups integer, p_tasks integer) RETURNS TABLE (expired_groups bigint, failed_tasks bigint)
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_state text;
    v_task bigint;
    v_left integer;
BEGIN
    expired_groups := 0;
    failed_tasks := 0;
    FOR g IN
        SELECT * FROM groups
        WHERE deadline_at <= statement_timestamp() AND state IN ('open', 'sealed')
            AND (NOT overdue OR deadline_action = 'fail')
        ORDER BY deadline_at LIMIT p_groups FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        expired_groups := expired_groups + 1;
        IF g.deadline_action = 'continue' THEN
            UPDATE groups SET overdue = true WHERE id = g.id;
            PERFORM write_event('grp-' || g.id || '-' || g.generation || '-overdue', 'dev.muster.group.overdue.v1', g.name,
                jsonb_build_object('group', g.name, 'generation', g.generation, 'state', g.state, 'remaining', g.remaining));
            CONTINUE;
        END IF;
        -- Nothing more is added to it, and nothing granted.
        UPDATE groups SET overdue = true, state = 'sealed' WHERE id = g.id;
        v_left := p_tasks;
        FOREACH v_state IN ARRAY ARRAY['queued', 'active', 'paused', 'finalizing'] LOOP
            FOR v_task IN
                SELECT t.id FROM tasks t WHERE t.group_id = g.id AND t.state = v_state ORDER BY t.id LIMIT v_left
            LOOP
                PERFORM fail_task(v_task, 'deadline',
                    format('the group was not done within %s s', trim_scale(extract(epoch FROM g.time_limit))));
                v_left := v_left - 1;
                failed_tasks := failed_tasks + 1;
            END LOOP;
        END LOOP;
        -- It may have been complete, or empty, and only waited for others or for its seal.
        PERFORM close_groups(ARRAY[g.id]);
    END LOOP;
    RETURN NEXT;
END
$$;
