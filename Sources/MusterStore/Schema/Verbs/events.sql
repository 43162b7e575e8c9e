-- Moves committed events into the log, p_limit at the most. Waiting for the lock and reading are two statements: the second one's snapshot sees
-- everything that the previous holder saw, and more. A fact that is in the log already is not logged again (I9). Returns how many events no longer
-- wait.
CREATE FUNCTION sequence_events(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_taken bigint;
    v_count bigint;
BEGIN
    SELECT last_position INTO v_last FROM event_log FOR UPDATE;
    WITH taken AS MATERIALIZED (
        DELETE FROM pending_events p
        WHERE p.serial <= (SELECT max(serial) FROM (SELECT serial FROM pending_events ORDER BY serial LIMIT p_limit) AS oldest)
        RETURNING p.*
    ), fresh AS (
        SELECT DISTINCT ON (t.id) t.* FROM (
            SELECT m.serial, m.id || coalesce((SELECT event_mark FROM installation), '') AS id, m.type, m.subject, m.data, m.at FROM taken m
        ) AS t
        WHERE (SELECT e.position FROM events e WHERE e.id = t.id) IS NULL ORDER BY t.id, t.serial
    ), placed AS (
        INSERT INTO events (position, id, type, subject, data, at)
        SELECT v_last + row_number() OVER (ORDER BY f.serial), f.id, f.type, f.subject, f.data, f.at FROM fresh f
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM placed) INTO v_taken, v_count;
    IF v_count > 0 THEN
        UPDATE event_log SET last_position = v_last + v_count;
    END IF;
    RETURN v_taken;
END
$$;

-- The name of the log, which changes after a failover or a restore that lost some of it (adr/0022): positions recur then, and the name does not.
CREATE FUNCTION log_name() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT log::text FROM installation), '')
$$;

-- Moves a consumer's place, forward only; a new consumer begins no earlier than the log does. Returns no row if the position is beyond the log's end.
-- `stands` is NULL if there are p_limit consumers already; `last` is NULL as well if the position is of another log (p_log).
CREATE FUNCTION acknowledge_events(p_name text, p_position bigint, p_limit bigint, p_log text DEFAULT NULL)
RETURNS TABLE (stands bigint, last bigint, at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
BEGIN
    IF p_log <> log_name() THEN
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL::timestamptz;
        RETURN;
    END IF;
    SELECT first_position, last_position INTO v_first, v_last FROM event_log;
    IF p_position > v_last THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM consumers c WHERE c.name = p_name) THEN
        -- Locked first, counted second: several new names at once never exceed the limit.
        PERFORM pg_advisory_xact_lock(hashtext('muster.consumers'));
        IF (SELECT count(*) FROM consumers c WHERE c.name <> p_name) >= p_limit THEN
            RETURN QUERY SELECT NULL::bigint, v_last, NULL::timestamptz;
            RETURN;
        END IF;
    END IF;
    INSERT INTO consumers (name, position) VALUES (p_name, greatest(p_position, v_first - 1))
    ON CONFLICT (name) DO UPDATE
        SET position = excluded.position, acknowledged_at = statement_timestamp()
        WHERE consumers.position < excluded.position AND excluded.position = p_position;
    RETURN QUERY SELECT c.position, v_last, c.acknowledged_at FROM consumers c WHERE c.name = p_name;
END
$$;

-- Gives a holder a consumer, or renews its hold. Nothing is changed while another holder has it. Returns the holder, and until when it holds. Expired
-- holds are deleted when the next one is taken.
CREATE FUNCTION hold_consumer(p_name text, p_holder text, p_length interval) RETURNS TABLE (holder text, until timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM consumer_holds h WHERE h.until < statement_timestamp() AND h.name <> p_name;
    INSERT INTO consumer_holds AS h (name, holder, until) VALUES (p_name, p_holder, statement_timestamp() + p_length)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE h.holder = excluded.holder OR h.until < statement_timestamp();
    RETURN QUERY SELECT h.holder, h.until FROM consumer_holds h WHERE h.name = p_name;
END
$$;

-- Drops events older than p_age, in the order of the log, at most p_limit at once and never the newest one. Returns by how much
-- the log has become shorter.
CREATE FUNCTION drop_old_events(p_age interval, p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
    v_end bigint;
    v_cut bigint;
BEGIN
    SELECT first_position, last_position INTO v_first, v_last FROM event_log FOR UPDATE;
    -- 1. The end: no event that an enabled subscription has not seen yet, and none from the first event on that is young enough.
    SELECT least(v_last - 1, v_first + p_limit - 1, min(s.position)) INTO v_end FROM subscriptions s WHERE s.enabled;
    SELECT coalesce(min(e.position), v_end + 1) INTO v_cut
    FROM events e
    WHERE e.position BETWEEN v_first AND v_end AND e.at >= statement_timestamp() - p_age;
    v_cut := greatest(v_cut, v_first);
    IF v_cut > v_first THEN
        UPDATE event_log SET first_position = v_cut;
    END IF;
    -- 2. A delivery that waits for its subscription to be enabled waits no longer than events are kept.
    UPDATE deliveries d
    SET state = 'dead', settled_at = statement_timestamp(), claimed = false,
        failure = 'the subscription was disabled for longer than events are kept'
    FROM subscriptions s
    WHERE s.id = d.subscription_id AND NOT s.enabled AND d.state = 'pending' AND d.position < v_cut;
    -- 3. Deliveries go with their events; a delivery that was given up can be replayed for as long as events are kept. What is still
    -- to be delivered stays, and its event with it.
    DELETE FROM deliveries d
    WHERE d.position < v_cut
        AND (d.state = 'delivered' OR d.state = 'dead' AND d.settled_at < statement_timestamp() - p_age);
    DELETE FROM events e
    WHERE e.position < v_cut AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.position = e.position);
    RETURN v_cut - v_first;
END
$$;
