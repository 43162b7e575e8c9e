-- When a group may run, and how fast.

-- Whether fetches may be leased for the group. Complete files may be put in place at any time.
CREATE FUNCTION group_may_run(g groups) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT g.desired = 'run' AND NOT g.held AND NOT (g.overdue AND g.deadline_action = 'fail')
        AND CASE
            WHEN g.window_from IS NULL AND g.timetable IS NULL THEN true
            WHEN hours_flaw(g) IS NOT NULL THEN false
            ELSE g.window_from IS NULL OR is_open(g.window_from, g.window_to, g.window_zone)
        END
$$;

-- Why the group's window or an entry of its timetable can't be read; NULL when they can, or when it has none. A group whose hours can't be read does
-- not run, and does not stop other groups (I19).
CREATE FUNCTION hours_flaw(g groups) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF g.window_from IS NOT NULL THEN
        PERFORM is_open(g.window_from, g.window_to, g.window_zone);
    END IF;
    IF g.timetable IS NOT NULL THEN
        PERFORM is_open((e.entry ->> 'from')::time, (e.entry ->> 'to')::time, coalesce(e.entry ->> 'timeZone', g.window_zone, 'UTC')),
            (e.entry ->> 'bytesPerSecond')::bigint
        FROM jsonb_array_elements(g.timetable) AS e (entry);
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN SQLERRM;
END
$$;

-- Whether a window of local time is open, now or at another moment. Local time jumps where clocks are changed: the time between is left out, or comes
-- twice.
CREATE FUNCTION is_open(
    p_from time, p_to time, p_zone text, p_moment timestamptz DEFAULT statement_timestamp()
) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_from = p_to THEN true
        WHEN p_from < p_to THEN (p_moment AT TIME ZONE p_zone)::time >= p_from AND (p_moment AT TIME ZONE p_zone)::time < p_to
        ELSE (p_moment AT TIME ZONE p_zone)::time >= p_from OR (p_moment AT TIME ZONE p_zone)::time < p_to
    END
$$;

-- The next moment at which it is this time of day in a time zone.
CREATE FUNCTION next_time(p_time time, p_zone text, p_moment timestamptz DEFAULT statement_timestamp()) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT ((p_moment AT TIME ZONE p_zone)::date + p_time
        + CASE WHEN (p_moment AT TIME ZONE p_zone)::time < p_time THEN interval '0' ELSE interval '1 day' END)
        AT TIME ZONE p_zone
$$;

-- How many bytes per second the group may have now; NULL: no limit.
CREATE FUNCTION group_rate(g groups) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF g.timetable IS NULL OR hours_flaw(g) IS NOT NULL THEN RETURN g.bytes_per_second; END IF;
    RETURN coalesce((
        SELECT (e.entry ->> 'bytesPerSecond')::bigint
        FROM jsonb_array_elements(g.timetable) WITH ORDINALITY AS e (entry, n)
        WHERE is_open((e.entry ->> 'from')::time, (e.entry ->> 'to')::time, coalesce(e.entry ->> 'timeZone', g.window_zone, 'UTC'))
        ORDER BY e.n LIMIT 1
    ), g.bytes_per_second);
END
$$;

-- Whether the group is to be cancelled as a whole, and is not yet. It is sealed, and ends as cancelled (adr/0015).
CREATE FUNCTION is_cancelling(g groups) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT g.desired = 'cancel' AND g.state IN ('open', 'sealed')
$$;

-- Whether the group is to be removed as a whole: it only waits for its tasks to be gone, and does not complete any more (adr/0015).
CREATE FUNCTION is_removing(g groups) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT g.desired IN ('remove', 'remove_files')
$$;

-- Takes back the fetches of groups that may not run any more, since their window has closed or they were told to wait for other groups: durable bytes
-- are kept, and no try is counted. Complete files are still put in place. Later writes of the holders reach no file (I8). Groups that another
-- transaction has locked are left for the next round. Returns how many leases there were.
CREATE FUNCTION recall_leases(p_limit integer, p_policy policy) RETURNS bigint
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
            AND EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.kind IN ('fetch', 'resolve', 'trial'))
        ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_groups IS NULL THEN RETURN 0; END IF;
    SELECT array_agg(x.chunk_id), array_agg(x.epoch) INTO v_chunks, v_epochs FROM (
        SELECT l.chunk_id, l.epoch FROM leases l
        WHERE l.group_id = ANY (v_groups) AND l.kind IN ('fetch', 'resolve', 'trial') ORDER BY l.chunk_id LIMIT p_limit
    ) AS x;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = ANY (v_chunks) AND l.kind NOT IN ('resolve', 'trial') AND t.id = l.task_id;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    RETURN (return_leases_apart(v_chunks, v_epochs, false, p_policy)).count;
END
$$;
