-- Verbs on whole groups run in slices (adr/0015): a group of millions of tasks is moved by many short transactions, so that no other transaction
-- waits for its row for long. A slice is the verb on some tasks by their keys.
--
-- The first slice writes the wish into the group. From that commit on no lease of the group is granted that the wish forbids, and later slices go on
-- only while the group still wants the same. The last slice is the verb on all of the group, which has little left to do by then. The request drives
-- the slices; if it dies, the sweep does.

-- Does the next part of a verb on a whole group: to p_limit tasks, or to all that is left when that is no more. p_place is the place of a state in
-- verb_states, 0 for the first slice, and p_after the last task of this state that was looked at: a slice that began at the beginning each time would
-- scan all rows that were moved before. The slice after this one begins at `place` and `last`.
--
-- It is done when nothing is left, or when the group has another wish by now.
--
-- A group that another transaction keeps locked fails the statement (lock_not_available): the caller then keeps the wish (keep_wish).
CREATE FUNCTION verb_slice(p_group bigint, p_verb text, p_place integer, p_after bigint, p_limit integer)
RETURNS TABLE (changed bigint, place integer, last bigint, is_done boolean)
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    g groups;
    v_verb text := p_verb;
    v_states text[];
    v_keys text[] := '{}';
    v_more text[];
BEGIN
    changed := 0;
    place := greatest(p_place, 1);
    last := p_after;
    is_done := true;
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF p_place = 0 THEN v_verb := take_wish(p_group, p_verb); END IF;
    -- Only a removal can follow a cancel, and no other verb can follow a removal.
    IF g.id IS NULL OR is_removing(g) AND wish_rank(v_verb) < 2 OR is_cancelling(g) AND wish_rank(v_verb) < 1 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF p_place > 0 AND is_removing(g) THEN
        v_verb := g.desired;
    ELSIF p_place > 0 AND g.desired <> (CASE p_verb WHEN 'resume' THEN 'run' ELSE p_verb END) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF verb_rest(g, v_verb) <= p_limit THEN
        changed := apply_verb(p_group, v_verb, NULL);
        RETURN NEXT;
        RETURN;
    END IF;

    IF p_place = 0 THEN
        IF v_verb IN ('remove', 'remove_files') THEN
            PERFORM leave_chains(p_group);
        END IF;
        -- No more tasks are added to a group that is to be cancelled.
        UPDATE groups
        SET desired = CASE v_verb WHEN 'resume' THEN 'run' ELSE v_verb END,
            state = CASE WHEN v_verb = 'cancel' THEN 'sealed' ELSE state END
        WHERE id = p_group;
    END IF;
    v_states := verb_states(v_verb);
    LOOP
        SELECT array_agg(t.key), coalesce(max(t.id), last) INTO v_more, last FROM (
            SELECT id, key FROM tasks
            WHERE group_id = p_group AND state = v_states[place] AND id > last
            ORDER BY id LIMIT p_limit - cardinality(v_keys)
        ) AS t;
        v_keys := v_keys || coalesce(v_more, '{}');
        EXIT WHEN cardinality(v_keys) = p_limit;
        place := place + 1;
        last := 0;
        EXIT WHEN place > cardinality(v_states);
    END LOOP;
    -- Tasks that have come into a state after it was scanned are found by going round again.
    IF place > cardinality(v_states) THEN
        place := 1;
    END IF;
    changed := apply_verb(p_group, v_verb, v_keys);
    is_done := changed = 0 AND p_place <= 1 AND p_after = 0;
    RETURN NEXT;
END
$$;

-- Keeps a verb on a whole group until the sweep can lock the group. It replaces an earlier wish only if it is at least as strong.
CREATE FUNCTION keep_wish(p_group bigint, p_verb text) RETURNS void
LANGUAGE sql
SET lock_timeout = '1s'
AS $$
    INSERT INTO wishes AS w (group_id, verb) SELECT g.id, p_verb FROM groups g WHERE g.id = p_group
    ON CONFLICT (group_id) DO UPDATE SET verb = excluded.verb, wished_at = excluded.wished_at
        WHERE wish_rank(excluded.verb) >= wish_rank(w.verb)
$$;

-- The verb for a group whose lock is held now: p_verb, or a stronger one that was kept while the group was locked. Deletes the kept wish.
CREATE FUNCTION take_wish(p_group bigint, p_verb text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_kept text;
BEGIN
    DELETE FROM wishes WHERE group_id = p_group RETURNING verb INTO v_kept;
    RETURN CASE WHEN wish_rank(v_kept) > wish_rank(p_verb) THEN v_kept ELSE p_verb END;
END
$$;

-- The wish that was kept while a group was locked; empty if there is none.
CREATE FUNCTION wished_of(g groups) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT w.verb FROM wishes w WHERE w.group_id = g.id), '');
END
$$;

-- How strong a wish is: a cancel outlasts a pause, and a removal both.
CREATE FUNCTION wish_rank(p_verb text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_verb IN ('remove', 'remove_files') THEN 2 WHEN p_verb = 'cancel' THEN 1 ELSE 0 END
$$;

-- Applies a verb to a whole group, or to the tasks with these keys, in one transaction. Returns how many tasks were changed; NULL when they can't be
-- retried before the cancel of their group is through.
CREATE FUNCTION apply_verb(p_group bigint, p_verb text, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    g groups;
    v_count bigint;
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN 0; END IF;
    IF p_verb = 'retry' AND is_cancelling(g) THEN RETURN NULL; END IF;
    v_count := CASE WHEN p_keys IS NULL THEN verb_rest(g, p_verb)
        ELSE cardinality(chosen_tasks(p_group, p_keys, verb_states(p_verb))) END;
    CASE p_verb
        WHEN 'pause' THEN PERFORM pause_group(p_group, p_keys);
        WHEN 'resume' THEN PERFORM resume_group(p_group, p_keys);
        WHEN 'cancel' THEN PERFORM cancel_group(p_group, p_keys);
        WHEN 'retry' THEN PERFORM retry_group(p_group, p_keys);
        WHEN 'remove' THEN PERFORM remove_tasks(p_group, p_keys, false);
        WHEN 'remove_files' THEN PERFORM remove_tasks(p_group, p_keys, true);
    END CASE;
    RETURN v_count;
END
$$;

-- The states in which a verb changes tasks; states with leases come first.
CREATE FUNCTION verb_states(p_verb text) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_verb
        WHEN 'pause' THEN '{queued}'
        WHEN 'resume' THEN '{paused}'
        WHEN 'cancel' THEN '{finalizing,paused,queued}'
        WHEN 'retry' THEN '{failed}'
        ELSE '{finalizing,paused,queued,failed,cancelled,succeeded}'
    END::text[]
$$;

-- How many tasks a verb on the whole group would change now.
CREATE FUNCTION verb_rest(g groups, p_verb text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_verb
        WHEN 'pause' THEN g.queued
        WHEN 'resume' THEN g.paused
        WHEN 'cancel' THEN g.remaining
        WHEN 'retry' THEN g.failed
        ELSE g.remaining + g.succeeded + g.failed + g.cancelled
    END
$$;

-- Goes on with a verb on a whole group that no request drives any more, or that has work again: the file of a paused group that was to be put in
-- place may have to be fetched again. Groups that another transaction has locked are left to it, and p_skipped groups are skipped. Returns how many
-- tasks were changed; NULL when there was no such group, or its own data raise an error (`stuck`).
CREATE FUNCTION sweep_wishes(p_limit integer, p_skipped bigint[], OUT count bigint, OUT stuck bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_verb text;
    v_is_done boolean;
BEGIN
    stuck := '{}';
    SELECT g2.* INTO g FROM groups g2 JOIN wishes w ON w.group_id = g2.id
    WHERE g2.id <> ALL (p_skipped) ORDER BY w.wished_at LIMIT 1 FOR NO KEY UPDATE OF g2 SKIP LOCKED;
    IF FOUND THEN
        SELECT w.verb, s.changed, s.is_done INTO v_verb, count, v_is_done
        FROM wishes w, verb_slice(g.id, w.verb, 0, 0, p_limit) AS s WHERE w.group_id = g.id;
        -- Other verbs go on by groups.desired. `run` does not say that some tasks are still paused, so a resume is kept.
        IF v_verb = 'resume' AND NOT v_is_done THEN PERFORM keep_wish(g.id, v_verb); END IF;
        RETURN;
    END IF;
    DELETE FROM wishes w WHERE NOT EXISTS (SELECT 1 FROM groups o WHERE o.id = w.group_id);
    SELECT * INTO g FROM groups
    WHERE desired <> 'run' AND (state IN ('open', 'sealed') OR desired IN ('remove', 'remove_files'))
        AND (desired <> 'pause' OR queued > 0) AND id <> ALL (p_skipped)
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
        SELECT s.changed INTO count FROM verb_slice(g.id, g.desired, 1, 0, p_limit) AS s;
    END IF;
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR cardinality_violation OR program_limit_exceeded THEN
    count := NULL;
    stuck := ARRAY[g.id];
END
$$;
