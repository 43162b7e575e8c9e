-- Groups that wait for other groups.

-- Replaces the groups that a group waits for. A prerequisite that has ended suitably is satisfied at once, and one that was satisfied under
-- the same condition stays so. `outcome` is 'set', or says why nothing was changed.
CREATE FUNCTION set_prerequisites(p_group bigint, p_names text[], p_conditions text[])
RETURNS TABLE (outcome text, subjects text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_wanted bigint[];
    v_state text;
BEGIN
    -- Two groups that are told at once to wait for each other would not see each other's row.
    PERFORM pg_advisory_xact_lock(hashtext('muster.group_prerequisites'));
    -- A group that ends now either has ended by the time its state is read here, or sees the row that is written here.
    PERFORM g.id FROM groups g WHERE g.id = p_group OR g.name = ANY (p_names) ORDER BY g.id FOR NO KEY UPDATE;
    SELECT state INTO v_state FROM groups WHERE id = p_group;
    SELECT array_agg(w.name) INTO subjects FROM unnest(p_names) AS w (name)
    WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.name = w.name AND NOT is_removing(g));
    outcome := CASE WHEN v_state IS NULL THEN 'removed' WHEN subjects IS NOT NULL THEN 'unknown'
        -- A group that has ended waits for no other group, so only an empty list is accepted.
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

-- Whether a group in this state satisfies a prerequisite with this condition.
CREATE FUNCTION satisfies(p_state text, p_condition text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_state = 'succeeded' OR p_condition = 'finished' AND p_state IN ('failed', 'cancelled')
$$;

-- The cycle by which a group would wait for itself, directly or through others: the names from it to itself; NULL if there is none. Each group is
-- visited once, however many ways lead to it. The caller keeps all other transactions from changing prerequisites.
CREATE FUNCTION prerequisite_cycle(p_group bigint, p_prerequisites bigint[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_seen bigint[] := p_prerequisites;
    v_from integer[] := array_fill(0, ARRAY[cardinality(p_prerequisites)]);   -- the place of the group it was reached from
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

-- Lets groups begin whose prerequisites are satisfied, p_limit at the most, and none of p_skipped. An empty group completes at once, and the groups
-- that wait for it begin in the next call. A transaction of its own: it waits for no lock. A group whose own data raise an error does not stop the
-- others (I19): it is in `stuck`. `count` is the number of the others.
CREATE FUNCTION release_groups(p_limit integer, p_skipped bigint[], OUT count bigint, OUT stuck bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_group bigint;
BEGIN
    count := 0;
    stuck := '{}';
    SELECT array_agg(locked.id) INTO v_groups FROM (
        SELECT g.id FROM groups g
        WHERE g.held AND g.id <> ALL (p_skipped) AND NOT EXISTS (
            SELECT 1 FROM group_prerequisites r WHERE r.group_id = g.id AND r.satisfied_at IS NULL)
        ORDER BY g.id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    FOREACH v_group IN ARRAY coalesce(v_groups, '{}') LOOP
        BEGIN
            -- Checked again after the lock: the group may have been told to wait for another group meanwhile.
            UPDATE groups g SET held = false
            WHERE g.id = v_group AND NOT EXISTS (
                SELECT 1 FROM group_prerequisites r WHERE r.group_id = g.id AND r.satisfied_at IS NULL);
            PERFORM close_groups(ARRAY[v_group]);
            count := count + 1;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
            stuck := stuck || v_group;
        END;
    END LOOP;
END
$$;

-- Makes sure that no group waits for a group that is to be removed. A group that has seen it end no longer waits for it; a group that has ended itself
-- does, since it may be retried or reopened. If another group still waits, the removal fails with the name of the foreign key that enforces this.
CREATE FUNCTION leave_chains(p_group bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM group_prerequisites r WHERE r.prerequisite_id = p_group AND r.satisfied_at IS NOT NULL;
    IF EXISTS (SELECT 1 FROM group_prerequisites r WHERE r.prerequisite_id = p_group) THEN
        RAISE foreign_key_violation USING CONSTRAINT = 'group_prerequisites_in_use',
            MESSAGE = 'other groups still wait for the group';
    END IF;
END
$$;

-- The direct and indirect prerequisites of a group that have ended in another state than the condition asks for. p_limit at the most, by name.
CREATE FUNCTION lost_prerequisites(p_group bigint, p_limit bigint) RETURNS TABLE (name text, condition text, state text)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE way AS (
        SELECT r.prerequisite_id AS id, r.condition FROM group_prerequisites r WHERE r.group_id = p_group AND r.satisfied_at IS NULL
        UNION
        SELECT r.prerequisite_id, r.condition
        FROM way w JOIN group_prerequisites r ON r.group_id = w.id AND r.satisfied_at IS NULL
    )
    SELECT g.name, w.condition, g.state
    FROM way w JOIN groups g ON g.id = w.id AND g.state NOT IN ('open', 'sealed') ORDER BY g.name LIMIT p_limit
$$;
