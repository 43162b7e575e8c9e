-- Databases that have lost rows while they were not in use. PostgreSQL takes a page of zeros for an empty one, without a checksum: rows are gone
-- then, and no statement fails.

-- Raises an error that names a table which has lost rows that other tables refer to. The conditions hold at every commit, so it may be called at any
-- time. It reads every task and every source: for the start of a database that has no administrator.
CREATE FUNCTION check_rows() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_table text;
BEGIN
    v_table := CASE
        WHEN NOT EXISTS (SELECT FROM event_log) THEN 'event_log'
        WHEN EXISTS (
            SELECT FROM event_log l
            WHERE l.last_position > 0 AND (SELECT max(e.position) FROM events e) IS DISTINCT FROM l.last_position
        ) THEN 'events'
        WHEN EXISTS (SELECT FROM tasks t WHERE NOT EXISTS (SELECT FROM groups g WHERE g.id = t.group_id)) THEN 'groups'
        -- I6, as far as it shows lost tasks: by the sum of the counts, not by each of them.
        WHEN EXISTS (
            SELECT FROM groups g LEFT JOIN (SELECT t.group_id, count(*) AS number FROM tasks t GROUP BY t.group_id) AS c ON c.group_id = g.id
            WHERE g.queued + g.paused + g.finalizing + g.succeeded + g.failed + g.cancelled <> coalesce(c.number, 0)
        ) THEN 'tasks'
        WHEN EXISTS (
            SELECT FROM tasks t WHERE t.state IN ('queued', 'paused', 'finalizing')
                AND NOT EXISTS (SELECT FROM sources s WHERE s.task_id = t.id)
        ) THEN 'sources'
        WHEN EXISTS (SELECT FROM sources s WHERE NOT EXISTS (SELECT FROM origins o WHERE o.id = s.origin_id)) THEN 'origins'
        -- I2: an unfinished task has a chunk that is ready or leased.
        WHEN EXISTS (
            SELECT FROM tasks t WHERE t.state IN ('queued', 'paused', 'finalizing')
                AND NOT EXISTS (SELECT FROM ready_chunks c WHERE c.task_id = t.id)
                AND NOT EXISTS (SELECT FROM leases l WHERE l.task_id = t.id)
        ) THEN 'ready_chunks'
    END;
    IF v_table IS NOT NULL THEN
        RAISE EXCEPTION 'rows of the table % are gone', v_table USING ERRCODE = 'data_corrupted';
    END IF;
END
$$;
