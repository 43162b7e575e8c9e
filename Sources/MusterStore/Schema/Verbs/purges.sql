-- Leftovers on disk of tasks that were cancelled, removed or started over, and when they may be deleted.

-- Deletes the chunks and leases of tasks, and has their leftovers on disk deleted. A new purge takes the place of those for older versions; a task
-- that succeeded keeps its purges, since only parts are left of it. Leftovers are deleted when every holder of a lease has stopped (I13). A purge
-- with a path and no size also deletes a file that a holder put in place without a report: its mark says which task it belongs to (adr/0014).
CREATE FUNCTION drop_chunks(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_purged bigint[];  -- tasks that left something behind, though they count as not begun (drop_failed)
BEGIN
    PERFORM lock_paths_of(p_tasks);
    v_purged := ARRAY(
        SELECT c.task_id FROM ready_chunks c WHERE c.task_id = ANY (p_tasks) AND c.kind = 'purge'
        UNION SELECT l.task_id FROM leases l WHERE l.task_id = ANY (p_tasks) AND l.kind = 'purge');
    PERFORM hold_out(p_tasks, NULL);
    -- The holder of a purge that is replaced by a new one may be at work too.
    PERFORM hold_out_leases(array_agg(l.chunk_id), array_agg(l.epoch))
    FROM leases l CROSS JOIN task_of(l.task_id) AS t
    WHERE l.task_id = ANY (p_tasks) AND l.kind = 'purge' AND t.state <> 'succeeded';
    PERFORM settle_charges(p_tasks);
    UPDATE tasks t SET started_at = leased_since(t.id) WHERE t.id = ANY (p_tasks) AND t.started_at IS NULL AND leased_since(t.id) IS NOT NULL;
    DELETE FROM leases l USING tasks t
    WHERE l.task_id = ANY (p_tasks) AND has_id(t.id, l.task_id) AND (l.kind <> 'purge' OR t.state <> 'succeeded');
    DELETE FROM ready_chunks c USING tasks t
    WHERE c.task_id = ANY (p_tasks) AND has_id(t.id, c.task_id) AND (c.kind <> 'purge' OR t.state <> 'succeeded');
    DELETE FROM done_chunks WHERE task_id = ANY (p_tasks);
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status, remove_path)
    SELECT 'purge', t.id, 0, 0, t.sink, t.version, chunk_rank('purge', 0, false), purge_status(t.id),
        CASE WHEN had_path_last(t) THEN t.path END
    FROM tasks t
    WHERE t.id = ANY (p_tasks) AND (t.started_at IS NOT NULL OR t.id = ANY (v_purged)) AND t.state <> 'succeeded' ORDER BY t.id;
END
$$;

-- Drops what failed tasks kept for a retry, since they or their group are cancelled (I13). They stay failed, and count as not begun, like
-- tasks that were just added. p_limit at the most; returns how many there were.
CREATE FUNCTION drop_failed(p_group bigint, p_keys text[], p_first_chunk bigint, p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
    v_count bigint := 0;
BEGIN
    PERFORM id FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    FOR v_row IN
        SELECT t.id, coalesce(t.source, 0) AS source FROM tasks t
        WHERE t.group_id = p_group AND t.state = 'failed' AND t.started_at IS NOT NULL AND (p_keys IS NULL OR t.key = ANY (p_keys))
        ORDER BY t.id LIMIT p_limit
    LOOP
        PERFORM start_over(v_row.id, p_first_chunk, v_row.source, 0, 0);
        UPDATE tasks SET started_at = NULL WHERE id = v_row.id;
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END
$$;

-- Has the finished files of tasks deleted, as far as they are the tasks' own and still have the size that Muster left them with. Until they are
-- deleted, the group is shown as `removing` (`removals`). The caller has locked their paths.
CREATE FUNCTION purge_files(p_tasks bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, remove_path, remove_size,
        remove_group, status)
    SELECT 'purge', t.id, 0, 0, t.sink, t.version, chunk_rank('purge', 0, false), t.path, t.size, g.name, purge_status(t.id)
    FROM tasks t JOIN groups g ON g.id = t.group_id
    WHERE t.id = ANY (p_tasks) AND t.state = 'succeeded' AND takes_file_along(t) ORDER BY t.id
$$;

-- The groups whose finished files are still to be deleted since they, or their tasks, were removed: one group, or all after p_after by name. `failed`
-- is how many of these files could not be deleted at the last try, `failure` why one of them could not.
CREATE FUNCTION removals(p_name text, p_after text, p_limit integer)
RETURNS TABLE (name text, sink text, files bigint, workers_reaching bigint, failed bigint, failure text)
LANGUAGE sql STABLE AS $$
    SELECT p.remove_group, p.sink, count(*), (
            SELECT count(*) FROM sessions s WHERE p.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp()),
        count(p.remove_failure), min(p.remove_failure)
    FROM (
        SELECT c.remove_group, c.sink, c.remove_failure FROM ready_chunks c WHERE c.remove_group IS NOT NULL
        UNION ALL SELECT l.remove_group, l.sink, l.remove_failure FROM leases l WHERE l.remove_group IS NOT NULL
    ) AS p
    WHERE (p_name IS NULL OR p.remove_group = p_name) AND (p_after IS NULL OR p.remove_group > p_after)
    GROUP BY p.remove_group, p.sink ORDER BY 1, 2 LIMIT p_limit
$$;

-- Begins a removal with files under the name of a group: the counts of earlier removals are forgotten, unless some of their files are still to be
-- deleted.
CREATE FUNCTION begin_removal(p_name text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM removed_files WHERE group_name = p_name AND NOT EXISTS (SELECT 1 FROM removals(p_name, NULL, 1))
$$;

-- Counts the results of purges that were to delete files; to be called before their leases end. A lease that another transaction ends now is waited
-- for, and counted once.
CREATE FUNCTION count_removed(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_removed text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF array_remove(p_removed, NULL) = '{}' THEN RETURN; END IF;
    WITH told AS MATERIALIZED (
        SELECT l.chunk_id, l.remove_group,
            (SELECT max(u.removed) FROM unnest(p_sessions, p_chunks, p_epochs, p_removed) AS u (session_id, chunk_id, epoch, removed)
            WHERE u.chunk_id = l.chunk_id AND u.epoch = l.epoch AND u.session_id = l.session_id) AS removed
        FROM leases l WHERE l.chunk_id = ANY (p_chunks) AND l.remove_group IS NOT NULL ORDER BY l.chunk_id FOR UPDATE
    )
    INSERT INTO removed_files AS r (group_name, deleted, changed, missing)
    SELECT remove_group, count(*) FILTER (WHERE removed = 'deleted'), count(*) FILTER (WHERE removed = 'changed'),
        count(*) FILTER (WHERE removed = 'missing')
    FROM told WHERE removed IS NOT NULL GROUP BY 1 ORDER BY 1
    ON CONFLICT (group_name) DO UPDATE
    SET deleted = r.deleted + EXCLUDED.deleted, changed = r.changed + EXCLUDED.changed, missing = r.missing + EXCLUDED.missing,
        at = statement_timestamp();
END
$$;

-- The status of a new purge of the task's leftovers: parked while a session may still be writing (I13).
CREATE FUNCTION purge_status(p_task bigint) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT 1 FROM holdouts h WHERE h.task_id = p_task) THEN 'parked' ELSE 'ready' END
$$;

-- Makes purges ready whose tasks have no writer any more: each writer has said that it has stopped, or its session is gone. Costs two probes of an
-- index where there are none. Returns how many there were.
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
        UPDATE ready_chunks c SET status = 'ready' FROM free WHERE has_id(c.id, free.id) RETURNING 1
    )
    SELECT count(*) INTO v_count FROM released;
    RETURN v_count;
END
$$;
