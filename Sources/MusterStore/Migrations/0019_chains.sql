-- Groups that wait for other groups, groups whose time is over, and groups whose window has closed.

-- Whether a group would wait for itself, directly or by way of others: the way there, by names, from it to itself. NULL if not. Each
-- group is visited once, however many ways lead to it. The caller keeps everybody else from changing who waits for whom.
CREATE FUNCTION prerequisite_cycle(p_group bigint, p_prerequisites bigint[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_seen bigint[] := p_prerequisites;
    v_from integer[] := array_fill(0, ARRAY[cardinality(p_prerequisites)]);   -- the place of whom it was reached from
    v_next bigint;
    v_place integer := 1;
    v_way bigint[] := '{}';
BEGIN
    WHILE v_place <= cardinality(v_seen) LOOP
        IF v_seen[v_place] = p_group THEN
            WHILE v_place > 0 LOOP
                v_way := v_seen[v_place] || v_way;
                v_place := v_from[v_place];
            END LOOP;
            RETURN (SELECT array_agg(g.name ORDER BY w.n)
                FROM unnest(p_group || v_way) WITH ORDINALITY AS w (id, n) JOIN groups g ON g.id = w.id);
        END IF;
        FOR v_next IN
            SELECT r.prerequisite_id FROM group_prerequisites r WHERE r.group_id = v_seen[v_place] ORDER BY r.prerequisite_id
        LOOP
            IF v_next <> ALL (v_seen) THEN
                v_seen := v_seen || v_next;
                v_from := v_from || v_place;
            END IF;
        END LOOP;
        v_place := v_place + 1;
    END LOOP;
    RETURN NULL;
END
$$;

-- Says which groups a group waits for, in place of those of before. One that ended suitably already counts as satisfied at
-- once, and one that was satisfied before under the same condition stays so. `outcome` is 'set', or says why nothing was changed.
CREATE FUNCTION set_prerequisites(p_group bigint, p_names text[], p_conditions text[])
RETURNS TABLE (outcome text, subjects text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_wanted bigint[];
    v_state text;
BEGIN
    -- Two that are told at once to wait for each other would not see each other's row.
    PERFORM pg_advisory_xact_lock(hashtext('muster.group_prerequisites'));
    -- A group that ends now either has ended by the time its state is read here, or sees the row that is written here.
    PERFORM g.id FROM groups g WHERE g.id = p_group OR g.name = ANY (p_names) ORDER BY g.id FOR NO KEY UPDATE;
    SELECT state INTO v_state FROM groups WHERE id = p_group;
    SELECT array_agg(w.name) INTO subjects FROM unnest(p_names) AS w (name)
    WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.name = w.name AND NOT is_removing(g));
    outcome := CASE WHEN v_state IS NULL THEN 'removed' WHEN subjects IS NOT NULL THEN 'unknown'
        -- A group that has ended waits for nobody any more, and may be told just that.
        WHEN v_state NOT IN ('open', 'sealed') AND cardinality(p_names) > 0 THEN 'late' END;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT coalesce(array_agg(g.id ORDER BY g.id), '{}') INTO v_wanted FROM groups g WHERE g.name = ANY (p_names);
    subjects := prerequisite_cycle(p_group, v_wanted);
    IF subjects IS NOT NULL THEN
        outcome := 'cycle';
        RETURN NEXT;
        RETURN;
    END IF;

    DELETE FROM group_prerequisites r WHERE r.group_id = p_group AND r.prerequisite_id <> ALL (v_wanted);
    INSERT INTO group_prerequisites AS r (group_id, prerequisite_id, condition, satisfied_at)
    SELECT p_group, g.id, w.condition, CASE WHEN satisfies(g.state, w.condition) THEN statement_timestamp() END
    FROM (SELECT u.name, max(u.condition) AS condition FROM unnest(p_names, p_conditions) AS u (name, condition) GROUP BY 1) AS w
    JOIN groups g ON g.name = w.name ORDER BY g.id
    ON CONFLICT (group_id, prerequisite_id) DO UPDATE
    SET condition = excluded.condition,
        satisfied_at = CASE WHEN r.condition = excluded.condition THEN coalesce(r.satisfied_at, excluded.satisfied_at)
            ELSE excluded.satisfied_at END;
    UPDATE groups SET held = EXISTS (SELECT 1 FROM group_prerequisites r WHERE r.group_id = p_group AND r.satisfied_at IS NULL)
    WHERE id = p_group;
    PERFORM close_groups(ARRAY[p_group]);
    outcome := 'set';
    RETURN NEXT;
END
$$;

-- Lets groups begin that wait for nobody any more, so many at the most; an empty one has completed by that, and others may begin
-- in the next call. A transaction of its own: it waits for no lock. Returns how many there were.
CREATE FUNCTION release_groups(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
BEGIN
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g
        WHERE g.held AND NOT EXISTS (
            SELECT 1 FROM group_prerequisites r WHERE r.group_id = g.id AND r.satisfied_at IS NULL)
        ORDER BY g.id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_groups IS NULL THEN RETURN 0; END IF;
    -- Once more, after the lock: somebody may have told one of them to wait for another group meanwhile.
    UPDATE groups g SET held = false
    WHERE g.id = ANY (v_groups) AND NOT EXISTS (
        SELECT 1 FROM group_prerequisites r WHERE r.group_id = g.id AND r.satisfied_at IS NULL);
    PERFORM close_groups(v_groups);
    RETURN cardinality(v_groups);
END
$$;

-- What follows when the time for a group is over: it goes on and says so, or whatever is not finished fails, and the group ends with
-- that. So many groups and so many tasks of each at the most; those that somebody else has locked are left for the next
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

-- Takes back what is fetched for groups that may not run any more, since their window has closed or they were told to wait for
-- others: what is durable is kept, and no try is counted. Their files are put in place all the same. What a holder writes from now on
-- reaches no file (I8). Groups that somebody else has locked are left for the next round. Returns how many leases there were.
CREATE FUNCTION recall_leases(p_limit integer, p_first_chunk bigint, p_deaths integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g
        WHERE g.id IN (
                SELECT h.id FROM groups h WHERE h.held
                UNION ALL SELECT w.id FROM groups w WHERE w.window_from IS NOT NULL AND w.state IN ('open', 'sealed'))
            AND NOT group_may_run(g)
            AND EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.kind IN ('fetch', 'double', 'resolve'))
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_groups IS NULL THEN RETURN 0; END IF;
    SELECT array_agg(x.chunk_id), array_agg(x.epoch) INTO v_chunks, v_epochs FROM (
        SELECT l.chunk_id, l.epoch FROM leases l
        WHERE l.group_id = ANY (v_groups) AND l.kind IN ('fetch', 'double', 'resolve') ORDER BY l.chunk_id LIMIT p_limit
    ) AS x;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = ANY (v_chunks) AND l.kind <> 'resolve' AND t.id = l.task_id;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    RETURN return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
END
$$;
