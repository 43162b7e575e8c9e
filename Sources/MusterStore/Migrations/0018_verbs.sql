-- What people and services ask of groups and tasks, at any moment: replacements of functions of before, with their signatures,
-- and the reopening of groups. What becomes of a wish that arrives in the middle of a transition is kept in tasks.desired.

-- Remembers who may still be writing under leases of the tasks that are about to be taken away (I13). Whoever asks a
-- resolver or deletes leftovers writes nothing that could be left over. A session that is gone is not waited for.
CREATE FUNCTION hold_out(p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO holdouts (epoch, session_id, sync, task_id)
    SELECT l.epoch, l.session_id, l.sync, l.task_id FROM leases l
    WHERE l.task_id = ANY (p_tasks) AND l.kind IN ('fetch', 'finalize', 'double')
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id)
    ON CONFLICT (epoch) DO NOTHING
$$;

-- The same for some leases alone.
CREATE FUNCTION hold_out_leases(p_chunks bigint[], p_epochs bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO holdouts (epoch, session_id, sync, task_id)
    SELECT l.epoch, l.session_id, l.sync, l.task_id
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON l.chunk_id = u.chunk_id AND l.epoch = u.epoch
    WHERE l.kind IN ('fetch', 'finalize', 'double') AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id)
    ON CONFLICT (epoch) DO NOTHING
$$;

-- What a purge of the task's leftovers has to be now: out of reach while somebody may still be writing (I13).
CREATE FUNCTION purge_status(p_task bigint) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT 1 FROM holdouts h WHERE h.task_id = p_task) THEN 'parked' ELSE 'ready' END
$$;

-- Lets purges go ahead that nobody stands in the way of any more: every writer has said that he has stopped, or his session
-- is gone. Costs two probes of an index where there are none. Returns how many there were.
CREATE FUNCTION release_purges(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    DELETE FROM holdouts h WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = h.session_id);
    WITH free AS MATERIALIZED (
        SELECT c.id FROM ready_chunks c
        WHERE c.kind = 'purge' AND c.status = 'parked' AND NOT EXISTS (SELECT 1 FROM holdouts h WHERE h.task_id = c.task_id)
        ORDER BY c.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), released AS (
        UPDATE ready_chunks c SET status = 'ready' FROM free WHERE c.id = free.id RETURNING 1
    )
    SELECT count(*) INTO v_count FROM released;
    RETURN v_count;
END
$$;

-- Renews the session by its newest sync; no row when the session is over. An old sync that arrives late renews nothing and
-- supersedes nothing. In the same round trip the two sides compare what is held:
-- * `repaired` leases were granted in a sync that is settled, but the session does not hold them: the answer was lost, nobody
--   ever wrote under them, they go back;
-- * `lost` are places in p_held, from 1, of leases that are not the session's any more;
-- * leases that were taken from it and that it does not hold any more are not written under any more (I13).
-- A loss of this commit means a shorter life of the session or one more repair, so it does not wait for the disk.
CREATE OR REPLACE FUNCTION sync_session(
    p_session bigint, p_sequence bigint, p_ttl interval, p_parked text[], p_status jsonb, p_received bigint,
    p_settled bigint, p_held_chunks bigint[], p_held_epochs bigint[], p_first_chunk bigint, p_deaths integer
) RETURNS TABLE (is_newest boolean, is_draining boolean, repaired bigint, lost integer[])
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE sessions s
    SET sequence = greatest(s.sequence, p_sequence),
        expires_at = CASE WHEN p_sequence > s.sequence THEN statement_timestamp() + p_ttl ELSE s.expires_at END,
        seen_at = statement_timestamp(),
        parked = CASE WHEN p_sequence > s.sequence THEN p_parked ELSE s.parked END,
        sink_status = CASE WHEN p_sequence > s.sequence THEN p_status ELSE s.sink_status END,
        rate_bytes = decayed(s.rate_bytes, s.rate_at, p_received),
        rate_at = statement_timestamp()
    WHERE s.id = p_session
    RETURNING s.sequence = p_sequence, s.draining INTO is_newest, is_draining;
    IF NOT FOUND THEN RETURN; END IF;

    repaired := 0;
    IF is_newest THEN
        DELETE FROM holdouts h
        WHERE h.session_id = p_session AND h.sync <= p_settled AND h.epoch <> ALL (p_held_epochs);
        SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
        FROM leases l WHERE l.session_id = p_session AND l.sync <= p_settled AND l.epoch <> ALL (p_held_epochs);
        IF v_chunks IS NOT NULL THEN
            PERFORM lock_groups_of(v_chunks);
            repaired := return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
        END IF;
    END IF;
    SELECT array_agg(h.place::integer) INTO lost
    FROM unnest(p_held_chunks, p_held_epochs) WITH ORDINALITY AS h (chunk_id, epoch, place)
    LEFT JOIN leases l ON l.chunk_id = h.chunk_id AND l.epoch = h.epoch AND l.session_id = p_session
    WHERE l.chunk_id IS NULL;
    RETURN NEXT;
END
$$;

-- The zero test (I7). Whoever may have made a group complete calls it, holding the locks of the groups: finishing, failing,
-- cancelling, removing, sealing and letting it begin alike. A group that waits for others completes only by being cancelled,
-- or when its time is over. A group whose time was over before it was complete has failed, whatever there is of it: more might have come. Those that wait for a group which has completed are told in
-- the same transaction; that they may begin is found by release_groups, since their locks would be out of order here.
CREATE OR REPLACE FUNCTION close_groups(p_groups bigint[]) RETURNS void
LANGUAGE sql AS $$
    WITH closed AS (
        UPDATE groups g
        SET state = CASE WHEN g.desired = 'cancel' THEN 'cancelled' WHEN g.failed > 0 OR g.held OR g.overdue AND g.deadline_action = 'fail' THEN 'failed'
                ELSE 'succeeded' END,
            finished_at = statement_timestamp()
        WHERE g.id = ANY (p_groups) AND g.state = 'sealed' AND g.remaining = 0 AND NOT is_removing(g)
            AND (NOT g.held OR g.desired = 'cancel' OR g.overdue AND g.deadline_action = 'fail')
        RETURNING g.*
    )
    INSERT INTO events (id, type, subject, data)
    SELECT 'grp-' || id || '-' || generation || '-' || state,
        'dev.muster.group.' || state || '.v1',
        'groups/' || name,
        jsonb_build_object(
            'group', name, 'generation', generation, 'state', state, 'sink', sink, 'metadata', metadata,
            'tasks', jsonb_build_object(
                'total', succeeded + failed, 'succeeded', succeeded, 'failed', failed, 'cancelled', cancelled),
            'bytes', jsonb_build_object('done', bytes_done, 'total', bytes_total))
    FROM closed
    ON CONFLICT (id) DO NOTHING;

    UPDATE group_prerequisites r SET satisfied_at = statement_timestamp()
    FROM groups g
    WHERE r.prerequisite_id = ANY (p_groups) AND r.satisfied_at IS NULL AND g.id = r.prerequisite_id
        AND satisfies(g.state, r.condition)
$$;

-- Stop fetching and keep what is durable. Files that are being put in place finish; if one has to be fetched again after
-- all, it stays paused.
CREATE OR REPLACE FUNCTION pause_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
    v_queued bigint;
    v_active bigint;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE groups SET desired = 'pause' WHERE id = p_group AND p_keys IS NULL AND state IN ('open', 'sealed');
    UPDATE tasks SET desired = 'pause' WHERE id = ANY (chosen_tasks(p_group, p_keys, '{finalizing}'));
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

CREATE OR REPLACE FUNCTION resume_group(p_group bigint, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_tasks bigint[];
    v_wishes bigint;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    UPDATE tasks SET desired = 'run' WHERE id = ANY (chosen_tasks(p_group, p_keys, '{finalizing}')) AND desired = 'pause';
    GET DIAGNOSTICS v_wishes = ROW_COUNT;
    v_tasks := chosen_tasks(p_group, p_keys, '{paused}');
    -- A task that is resumed by name goes on although the group as a whole was paused: then only the others stay paused. Where there is
    -- no such task, nothing is resumed.
    UPDATE groups SET desired = 'run'
    WHERE id = p_group AND desired = 'pause' AND (p_keys IS NULL OR v_wishes > 0 OR cardinality(v_tasks) > 0);
    UPDATE tasks SET state = 'queued', desired = 'run' WHERE id = ANY (v_tasks);
    UPDATE ready_chunks SET status = 'ready' WHERE task_id = ANY (v_tasks) AND status = 'parked' AND kind <> 'purge';
    UPDATE groups SET queued = queued + cardinality(v_tasks), paused = paused - cardinality(v_tasks) WHERE id = p_group;
    PERFORM restart_streams(v_tasks);
END
$$;

-- Tasks may be added again. A group that had finished begins its next generation, with the time for it given anew;
-- so is that of one whose time was over. Returns false when
-- a cancel of it has to be finished first.
CREATE FUNCTION reopen_group(p_group bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF is_cancelling(g) THEN RETURN false; END IF;
    IF g.state = 'sealed' THEN
        -- What is added to a group whose time was over is not to fail with the rest.
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

-- Has the finished files of tasks deleted, as far as they are still of the size that Muster left them with.
CREATE OR REPLACE FUNCTION purge_files(p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, remove_path, remove_size, status)
    SELECT 'purge', id, 0, 0, sink, version, chunk_rank('purge', 0, false), path, size, purge_status(id)
    FROM tasks WHERE id = ANY (p_tasks) AND state = 'succeeded' ORDER BY id
$$;

-- Sees to it that nobody waits for a group that is to be removed. Who has seen it end, or has ended himself, waits for it no longer; where
-- others do, the removal is refused under the name of the constraint that stands behind this.
CREATE FUNCTION leave_chains(p_group bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM group_prerequisites r USING groups d
    WHERE r.prerequisite_id = p_group AND d.id = r.group_id
        AND (r.satisfied_at IS NOT NULL OR d.state NOT IN ('open', 'sealed'));
    IF EXISTS (SELECT 1 FROM group_prerequisites r WHERE r.prerequisite_id = p_group) THEN
        RAISE foreign_key_violation USING CONSTRAINT = 'group_prerequisites_in_use',
            MESSAGE = 'other groups still wait for the group';
    END IF;
END
$$;

-- Forgets a group, or some of its tasks. Returns how many tasks were forgotten. A group that others still wait for is not
-- removed.
CREATE OR REPLACE FUNCTION remove_tasks(p_group bigint, p_keys text[], p_delete_files boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
    v_tasks bigint[];
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
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
