-- Completion: what makes a group terminal, and the log that says so.

-- Adds bytes to a counter that decays with a time constant of 10 s.
CREATE FUNCTION decayed(p_bytes double precision, p_at timestamptz, p_more double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT p_bytes * exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_at)::double precision / 10))) + p_more
$$;

-- Bytes per second lately. While the counter is younger than its time constant, it is divided by what it could hold by now,
-- so that a speed does not seem to rise for half a minute.
CREATE FUNCTION bytes_per_second(p_bytes double precision, p_at timestamptz, p_since timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT (decayed(p_bytes, p_at, 0) / (10 * greatest(0.1,
        1 - exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_since)::double precision / 10))))))::bigint
$$;

CREATE FUNCTION write_event(p_id text, p_type text, p_group_name text, p_data jsonb) RETURNS void
LANGUAGE sql AS $$
    -- The same fact always has the same id, so a repetition changes nothing (I9).
    INSERT INTO events (id, type, subject, data)
    VALUES (p_id, p_type, 'groups/' || p_group_name, p_data)
    ON CONFLICT (id) DO NOTHING
$$;

-- The zero test (I7). Whoever may have made a group complete calls it, holding the locks of the groups: finishing, failing,
-- cancelling, removing and sealing alike.
CREATE FUNCTION close_groups(p_groups bigint[]) RETURNS void
LANGUAGE sql AS $$
    WITH closed AS (
        UPDATE groups g
        SET state = CASE WHEN g.desired = 'cancel' THEN 'cancelled' WHEN g.failed > 0 THEN 'failed' ELSE 'succeeded' END,
            finished_at = statement_timestamp()
        WHERE g.id = ANY (p_groups) AND g.state = 'sealed' AND g.remaining = 0
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
    ON CONFLICT (id) DO NOTHING
$$;

-- Gives positions to the events that have been committed since. Waiting for the lock and reading are two statements: the
-- second one's snapshot sees everything that the previous holder saw, and more.
CREATE FUNCTION sequence_events(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_count bigint;
BEGIN
    SELECT last_position INTO v_last FROM event_log FOR UPDATE;
    WITH fresh AS MATERIALIZED (
        SELECT serial, row_number() OVER (ORDER BY serial) AS n
        FROM (SELECT serial FROM events WHERE position IS NULL ORDER BY serial LIMIT p_limit) AS u
    ), placed AS (
        UPDATE events e SET position = v_last + f.n FROM fresh f WHERE e.serial = f.serial RETURNING 1
    )
    SELECT count(*) INTO v_count FROM placed;
    IF v_count > 0 THEN
        UPDATE event_log SET last_position = v_last + v_count;
    END IF;
    RETURN v_count;
END
$$;
