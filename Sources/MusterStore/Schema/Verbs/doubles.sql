-- Doubles: second leases on the rest of a chunk, of which the first one to be done wins (adr/0012).

-- Of the two leases on a chunk, the one that is reported as done wins, and the other one is taken back. Called by report_done, which then finds an
-- ordinary lease.
CREATE FUNCTION settle_doubles(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leases WHERE doubles IS NOT NULL) THEN RETURN; END IF;
    FOR v_row IN
        SELECT o AS original, d AS double, o.chunk_id, o.epoch, o.task_id
        FROM leases d JOIN leases o ON o.chunk_id = d.doubles
        WHERE (d.session_id, d.chunk_id, d.epoch) IN (
            SELECT session_id, chunk_id, epoch FROM unnest(p_sessions, p_chunks, p_epochs) AS u (session_id, chunk_id, epoch))
    LOOP
        PERFORM hold_out_leases(ARRAY[v_row.chunk_id], ARRAY[v_row.epoch]);
        UPDATE tasks SET fenced = true WHERE id = v_row.task_id;
        PERFORM promote_double(v_row.original, v_row.double);
    END LOOP;
    PERFORM drop_doubles(ARRAY(
        SELECT l.chunk_id FROM unnest(p_sessions, p_chunks, p_epochs) AS u (session_id, chunk_id, epoch)
        JOIN leases l ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch AND l.session_id IS NOT DISTINCT FROM u.session_id));
END
$$;

-- A double takes the place of the lease that it doubles. The caller holds the lock of the group, and has made sure that later writes of the other
-- holder reach no file.
CREATE FUNCTION promote_double(p_original leases, p_double leases) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM leases WHERE chunk_id = p_original.chunk_id AND epoch = p_original.epoch;
    UPDATE leases SET kind = 'fetch', doubles = NULL WHERE chunk_id = p_double.chunk_id;
    UPDATE groups g
    SET bytes_done = g.bytes_done + p_double.durable - p_original.durable,
        served = g.served + (byte_charge(p_original.durable - p_original.resume) - p_original.charged) / g.weight
    WHERE g.id = p_original.group_id;
    UPDATE sources s
    SET bytes = s.bytes + p_original.durable - p_original.resume, busy_ms = s.busy_ms + busy_ms(p_original.granted_at)
    FROM tasks t
    WHERE t.id = p_original.task_id AND t.mirrors > 1 AND s.task_id = t.id AND s.ordinal = p_original.source;
END
$$;

-- Settles doubles when leases are put back; called by return_leases before the leases move. A double that is put back itself is deleted. A double
-- whose chunk is put back takes its place if it is at least as far, since a durable offset never goes back (I4). Returns how many of the leases are
-- settled by that.
CREATE FUNCTION return_doubles(p_chunks bigint[], p_epochs bigint[], p_lost boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
    v_count bigint;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leases WHERE doubles IS NOT NULL) THEN RETURN 0; END IF;
    WITH gone AS MATERIALIZED (
        DELETE FROM leases d USING unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
        WHERE has_id(d.chunk_id, u.chunk_id) AND d.epoch = u.epoch AND d.doubles IS NOT NULL RETURNING d.task_id
    ), fence AS (
        UPDATE tasks t SET fenced = true FROM gone WHERE has_id(t.id, gone.task_id) AND p_lost
    )
    SELECT count(*) INTO v_count FROM gone;
    FOR v_row IN
        SELECT o AS original, d AS double, o.task_id
        FROM leases o JOIN leases d ON d.doubles = o.chunk_id AND d.durable >= o.durable
        WHERE (o.chunk_id, o.epoch) IN (SELECT chunk_id, epoch FROM unnest(p_chunks, p_epochs) AS u (chunk_id, epoch))
    LOOP
        UPDATE tasks SET fenced = true WHERE id = v_row.task_id AND p_lost;
        PERFORM promote_double(v_row.original, v_row.double);
        v_count := v_count + 1;
    END LOOP;
    PERFORM drop_doubles(ARRAY(
        SELECT o.chunk_id FROM leases o JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
            ON has_id(o.chunk_id, u.chunk_id) AND o.epoch = u.epoch));
    RETURN v_count;
END
$$;

-- Takes back the doubles of chunks. Their holders are not told yet, and may be writing. The caller holds the locks of the groups.
CREATE FUNCTION drop_doubles(p_chunks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(d.chunk_id), array_agg(d.epoch) INTO v_chunks, v_epochs FROM leases d WHERE d.doubles = ANY (p_chunks);
    IF v_chunks IS NULL THEN RETURN; END IF;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    UPDATE tasks t SET fenced = true FROM leases d WHERE d.chunk_id = ANY (v_chunks) AND has_id(t.id, d.task_id);
    DELETE FROM leases d WHERE d.chunk_id = ANY (v_chunks);
END
$$;

-- Grants a second lease on the rest of a chunk to the first session of p_usable that may draw from its byte budgets. `double` is NULL if no session
-- may, or if the group's waste would be more than p_waste of its bytes.
CREATE FUNCTION grant_double(p_chunk bigint, p_usable bigint[], p_fleet_rate bigint, p_waste double precision)
RETURNS TABLE (usable bigint[], is_limited boolean, double bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_row record;
BEGIN
    SELECT l.sink, g.name AS group_name, group_rate(g) AS group_rate, o.key AS origin, o.bytes_per_second AS origin_rate INTO v_row
    FROM leases l JOIN groups g ON g.id = l.group_id JOIN origins o ON o.id = l.origin_id WHERE l.chunk_id = p_chunk;
    usable := p_usable;
    is_limited := p_fleet_rate IS NOT NULL OR v_row.group_rate IS NOT NULL OR v_row.origin_rate IS NOT NULL;
    IF is_limited THEN
        usable := usable_slots(p_usable, v_row.sink, p_fleet_rate, v_row.group_name, v_row.group_rate, v_row.origin,
            v_row.origin_rate);
        IF usable = '{}' THEN RETURN NEXT; RETURN; END IF;
    END IF;
    -- Checks the bound again: other doubles of the group may have been granted just now.
    UPDATE groups g SET doubled_bytes = g.doubled_bytes + l.last - l.durable
    FROM leases l
    WHERE l.chunk_id = p_chunk AND g.id = l.group_id AND g.doubled_bytes + l.last - l.durable <= p_waste * g.bytes_total;
    IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
    UPDATE leases l SET doubled_at = statement_timestamp() WHERE l.chunk_id = p_chunk;
    -- The group is not charged for it: its slot would have been idle.
    INSERT INTO leases (chunk_id, session_id, lane, sync, kind, doubles, task_id, group_id, origin_id, source, sink, version, first,
        last, resume, durable, crc, rank, attempts, deaths, moves)
    SELECT nextval('chunk_ids'), s.id, nextval('lane_ids'), s.sequence, 'double', l.chunk_id, l.task_id, l.group_id, l.origin_id, l.source,
        l.sink, l.version, l.first, l.last, l.durable, l.durable, l.crc, l.rank, l.attempts, l.deaths, l.moves
    FROM leases l JOIN sessions s ON s.id = usable[1] WHERE l.chunk_id = p_chunk
    RETURNING leases.chunk_id INTO double;
    RETURN NEXT;
END
$$;
