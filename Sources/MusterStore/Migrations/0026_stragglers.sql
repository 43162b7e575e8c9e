-- Stragglers: chunks that would hold up the end of their group while others have nothing to do. Their tails are given to others once
-- their holders have agreed (shrink); what is too little for that, or whose holder does not answer, is fetched by a second session too,
-- and the first one to be through with it wins (double). What is too much to be fetched twice is taken back from a holder who is not
-- heard of any more (take), before his session is over.
--
-- A double is a row of leases of kind `double`, with a chunk id and an epoch of its own, over the rest of a chunk of the same task.
-- Its session need not know: it is granted as a `fetch`. It counts wherever connections are counted (I5), and nowhere else: what
-- counts chunks and bytes says `kind = 'fetch'`. Both sessions write the same bytes of one representation into the same part; as
-- soon as one of them is told that he has lost, the task is fenced, since he may be writing still (I8).

ALTER TABLE leases
    -- Where its holder is asked to end it instead, since when, and how often that was. NULL when he is not, or has answered.
    ADD COLUMN shrink_to       bigint,
    ADD COLUMN shrink_asked_at timestamptz,
    ADD COLUMN shrink_asks     smallint NOT NULL DEFAULT 0,
    ADD COLUMN doubled_at      timestamptz,                  -- when a double of it was granted: once at the most
    ADD COLUMN doubles         bigint,                       -- of a double: the chunk
    ADD CONSTRAINT leases_doubles_are_kind CHECK ((kind = 'double') = (doubles IS NOT NULL)),
    ADD CONSTRAINT leases_shrink_within CHECK (shrink_to IS NULL OR shrink_to > first AND shrink_to < last);
-- Both are empty most of the time, and leave updates of offsets HOT.
CREATE INDEX leases_shrinking ON leases (session_id) WHERE shrink_to IS NOT NULL;
CREATE UNIQUE INDEX leases_doubling ON leases (doubles) WHERE doubles IS NOT NULL;

ALTER TABLE groups
    -- What leases on chunks brought lately and how long they took, in bytes and milliseconds: how fast a connection of it is.
    ADD COLUMN lease_bytes   bigint NOT NULL DEFAULT 0,
    ADD COLUMN lease_ms      bigint NOT NULL DEFAULT 0,
    -- Bytes that doubles may have fetched a second time, over all generations.
    ADD COLUMN doubled_bytes bigint NOT NULL DEFAULT 0;

-- How far a fetch lease is by now, its speed, the speed of a lease of its group, in bytes per second, and how many seconds it needs
-- still. Reports come every few seconds: what has come since the last one is guessed, unless it was expected long ago.
--
-- OFFSET 0 keeps each value from being computed again wherever it is used: this is asked of every lease there is.
CREATE FUNCTION lease_pace(l leases, g groups)
RETURNS TABLE (place bigint, speed double precision, typical double precision, needs double precision)
LANGUAGE sql STABLE AS $$
    SELECT p.place, p.speed, p.typical, (l.last - p.place) / greatest(p.speed, 1)
    FROM (
        SELECT m.speed, m.typical,
            CASE WHEN m.moves THEN least(l.last, l.durable + (m.speed * m.silence)::bigint) ELSE l.durable END AS place
        FROM (
            SELECT t.moves, t.silence,
                (l.durable - l.resume) / greatest(0.1, CASE WHEN t.moves THEN t.age - t.silence ELSE t.age END) AS speed,
                coalesce(g.lease_bytes * 1000.0 / nullif(g.lease_ms, 0), 1048576)::double precision AS typical
            FROM (
                SELECT extract(epoch FROM statement_timestamp() - l.granted_at)::double precision AS age,
                    extract(epoch FROM statement_timestamp() - l.progress_at)::double precision AS silence,
                    l.durable > l.resume AND l.progress_at > statement_timestamp() - interval '5 s' AS moves
                OFFSET 0
            ) AS t
            OFFSET 0
        ) AS m
        OFFSET 0
    ) AS p
$$;

-- The fetch leases in some sinks that somebody idle would be of use to, and how: by taking the tail of it (`shrink`), by
-- fetching the rest too (`double`), or by taking over (`take`). Of p_chunks alone, if they are given.
--
-- A holder is silent if he has not been heard of since he was asked, ten seconds ago: whoever is asked syncs at once. Or if half of the
-- life of his session is over, since he syncs three times in it. Ten seconds at least, or a moment of trouble would cost a fence. As
-- with slow chunks (sweep_slow), no chunk goes round for ever.
--
-- It is of use if that saves two seconds and a third of the time which the lease needs still, a second being what a new connection costs.
-- Where a byte budget sets the pace, the lease has to be slower than others besides: more connections bring nothing there.
CREATE FUNCTION stragglers(
    p_sinks text[], p_fleet_rate bigint, p_minimum bigint, p_waste double precision, p_chunks bigint[]
) RETURNS TABLE (
    chunk_id bigint, session_id bigint, group_id bigint, origin_id bigint, sink text, place bigint, speed double precision,
    typical double precision, needs double precision, remedy text
)
LANGUAGE sql STABLE AS $$
    SELECT s.chunk_id, s.session_id, s.group_id, s.origin_id, s.sink, s.place, s.speed, s.typical, s.needs, s.remedy
    FROM (
        SELECT l.*, p.*,
            CASE
                WHEN l.last - p.place >= 2 * p_minimum AND l.shrink_to IS NULL
                    AND (l.shrink_asked_at IS NULL
                        OR l.shrink_asked_at < statement_timestamp() - interval '3 s' * power(2, least(l.shrink_asks, 10)))
                    AND p.needs - ((l.last - p.place) / (p.speed + p.typical) + 1) >= greatest(2, p.needs / 3)
                THEN 'shrink'
                WHEN l.doubled_at IS NULL
                    AND (l.last - p.place < 2 * p_minimum
                        OR l.shrink_to IS NOT NULL AND l.shrink_asked_at < statement_timestamp() - interval '5 s')
                    AND g.doubled_bytes + l.last - l.durable <= p_waste * g.bytes_total
                    AND p.needs - ((l.last - l.durable) / p.typical + 1) >= greatest(2, p.needs / 3)
                THEN 'double'
                WHEN l.doubled_at IS NULL AND l.moves < 3
                    AND (h.seen_at < l.shrink_asked_at AND l.shrink_asked_at < statement_timestamp() - interval '10 s'
                        OR h.seen_at < statement_timestamp() - greatest(interval '10 s', (h.expires_at - h.seen_at) / 2))
                    AND p.needs - ((l.last - l.durable) / p.typical + 1) >= greatest(2, p.needs / 3)
                THEN 'take'
            END AS remedy
        FROM leases l
        JOIN groups g ON g.id = l.group_id
        JOIN tasks t ON t.id = l.task_id
        JOIN origins o ON o.id = l.origin_id
        LEFT JOIN sessions h ON h.id = l.session_id
        CROSS JOIN LATERAL lease_pace(l, g) AS p
        WHERE l.kind = 'fetch' AND l.last > l.durable AND l.sink = ANY (p_sinks)
            AND (p_chunks IS NULL OR l.chunk_id = ANY (p_chunks))
            -- The first report takes some seconds.
            AND l.granted_at <= statement_timestamp() - CASE WHEN l.durable > l.resume THEN interval '2 s' ELSE interval '5 s' END
            AND t.planned AND NOT t.stream AND (l.first > 0 OR l.last < t.size)
            AND g.state IN ('open', 'sealed') AND group_may_run(g)
            AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
            AND (p.speed < p.typical * 2 / 3
                OR p_fleet_rate IS NULL AND o.bytes_per_second IS NULL AND g.bytes_per_second IS NULL AND g.timetable IS NULL)
            -- Whoever is idle takes what nobody has begun with first.
            AND NOT EXISTS (
                SELECT 1 FROM ready_chunks c WHERE c.group_id = l.group_id AND c.origin_id = l.origin_id AND c.status = 'ready')
    ) AS s
    WHERE s.remedy IS NOT NULL
$$;

-- Has idle sessions help out with stragglers, the worst first: asks their holders to shrink, grants doubles, or takes chunks back, which
-- the next claim grants. p_unit is what the ends of chunks are multiples of, p_minimum the least that is given away, in bytes; p_waste
-- the part of a group's bytes that may be fetched twice. Returns a row for each double, one for each session that is asked, and one for
-- each chunk that is taken back.
--
-- Called with sessions that a claim has left without anything. First the locks, then what is decided by: see share_leases.
CREATE FUNCTION help_stragglers(
    p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_origin_cap integer, p_session_cap integer,
    p_fleet_rate bigint, p_unit bigint, p_minimum bigint, p_waste double precision, p_first_chunk bigint, p_deaths integer
) RETURNS TABLE (chunk_id bigint, is_limited boolean, asked bigint, taken bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    v_sinks text[];
    v_chunks bigint[];
    v_groups bigint[];
    v_origins bigint[];
    v_slots bigint[];                   -- a session id for every place that is free
    v_left integer;
    v_usable bigint[];
    v_row record;
BEGIN
    -- 1. What it is about, without a lock: most of the time there is nothing.
    SELECT array_agg(DISTINCT sink) INTO v_sinks FROM sessions s, unnest(s.sinks) AS sink
    WHERE s.id = ANY (p_sessions) AND sink <> ALL (s.parked);
    SELECT array_agg(s.chunk_id), array_agg(s.group_id), array_agg(s.origin_id) INTO v_chunks, v_groups, v_origins FROM (
        SELECT chunk_id, group_id, origin_id FROM stragglers(v_sinks, p_fleet_rate, p_minimum, p_waste, NULL)
        ORDER BY needs DESC, chunk_id LIMIT 64
    ) AS s;
    IF v_chunks IS NULL THEN RETURN; END IF;

    -- 2. The locks, and the places that are free. An ask that was made lately keeps one for whoever takes the tail.
    PERFORM s.id FROM sessions s WHERE s.id = ANY (p_sessions) ORDER BY s.id FOR NO KEY UPDATE;
    PERFORM o.id FROM origins o WHERE o.id = ANY (v_origins) ORDER BY o.id FOR NO KEY UPDATE;
    PERFORM g.id FROM groups g WHERE g.id = ANY (v_groups) ORDER BY g.id FOR NO KEY UPDATE;
    SELECT array_agg(s.id ORDER BY turn, s.id) INTO v_slots
    FROM unnest(p_sessions, p_sequences, p_rooms) AS r (session_id, sequence, room)
    JOIN sessions s ON s.id = r.session_id
    CROSS JOIN LATERAL (SELECT count(*)::integer AS held FROM leases l WHERE l.session_id = s.id) AS h
    CROSS JOIN generate_series(1, least(r.room, p_session_cap - h.held, 64)) AS turn
    WHERE s.sequence = r.sequence AND NOT s.draining AND s.expires_at > statement_timestamp();
    SELECT coalesce(cardinality(v_slots), 0) - count(*) INTO v_left FROM leases l
    WHERE l.shrink_to IS NOT NULL AND l.shrink_asked_at > statement_timestamp() - interval '5 s';

    -- 3. The worst first, each with what has become of it meanwhile.
    FOR v_row IN
        SELECT s.*, h.worker AS holder, g.name AS group_name, g.max_connections, group_rate(g) AS group_rate, o.key AS origin,
            o.bytes_per_second AS origin_rate, allowed_connections(o, p_origin_cap) AS cap, l.epoch
        FROM stragglers(v_sinks, p_fleet_rate, p_minimum, p_waste, v_chunks) AS s
        JOIN leases l ON l.chunk_id = s.chunk_id
        JOIN groups g ON g.id = s.group_id
        JOIN origins o ON o.id = s.origin_id
        LEFT JOIN sessions h ON h.id = s.session_id
        WHERE g.id = ANY (v_groups) AND o.id = ANY (v_origins)
        ORDER BY s.needs DESC, s.chunk_id
    LOOP
        EXIT WHEN v_left <= 0;
        -- What is taken back leaves its connection to whoever takes over.
        CONTINUE WHEN v_row.remedy <> 'take' AND (v_row.cap <= (
                SELECT count(*) + count(*) FILTER (WHERE l.shrink_asked_at > statement_timestamp() - interval '5 s' AND l.shrink_to IS NOT NULL)
                FROM leases l WHERE l.origin_id = v_row.origin_id)
            OR v_row.max_connections <= (
                SELECT count(*) + count(*) FILTER (WHERE l.shrink_asked_at > statement_timestamp() - interval '5 s' AND l.shrink_to IS NOT NULL)
                FROM leases l WHERE l.group_id = v_row.group_id AND l.origin_id > 0));
        -- One worker does not fetch the same twice, whichever incarnations of it there are.
        SELECT coalesce(array_agg(s.id ORDER BY s.worker IS NOT DISTINCT FROM v_row.holder, u.n), '{}') INTO v_usable
        FROM unnest(v_slots) WITH ORDINALITY AS u (id, n)
        JOIN sessions s ON s.id = u.id
        WHERE v_row.sink = ANY (s.sinks) AND v_row.sink <> ALL (s.parked)
            AND (v_row.remedy = 'shrink' OR s.worker IS DISTINCT FROM v_row.holder);
        CONTINUE WHEN v_usable = '{}';
        asked := NULL;
        chunk_id := NULL;
        taken := NULL;
        is_limited := false;
        IF v_row.remedy = 'shrink' THEN
            -- The holder at its speed and a helper at the usual one would be through at the same time.
            UPDATE leases l
            SET shrink_to = greatest(l.first + p_unit, least((l.last - p_minimum) / p_unit, ceil((v_row.place
                    + (l.last - v_row.place) * v_row.speed / (v_row.speed + v_row.typical)) / p_unit)) * p_unit),
                shrink_asked_at = statement_timestamp(), shrink_asks = least(l.shrink_asks + 1, 100)
            WHERE l.chunk_id = v_row.chunk_id;
            asked := v_row.session_id;
        ELSIF v_row.remedy = 'take' THEN
            -- Wasted is what came since the holder was last heard of (I16). What he writes from now on reaches no file (I8).
            UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = v_row.chunk_id AND t.id = l.task_id;
            PERFORM hold_out_leases(ARRAY[v_row.chunk_id], ARRAY[v_row.epoch]);
            PERFORM return_leases(ARRAY[v_row.chunk_id], ARRAY[v_row.epoch], false, p_first_chunk, p_deaths);
            UPDATE ready_chunks c SET moves = c.moves + 1 WHERE c.id = v_row.chunk_id;
            taken := v_row.chunk_id;
        ELSE
            IF p_fleet_rate IS NOT NULL OR v_row.group_rate IS NOT NULL OR v_row.origin_rate IS NOT NULL THEN
                is_limited := true;
                v_usable := usable_slots(v_usable, v_row.sink, p_fleet_rate, v_row.group_name, v_row.group_rate, v_row.origin,
                    v_row.origin_rate);
                CONTINUE WHEN v_usable = '{}';
            END IF;
            -- The bound once more: other doubles of the group may have been granted just now.
            UPDATE groups g SET doubled_bytes = g.doubled_bytes + l.last - l.durable
            FROM leases l
            WHERE l.chunk_id = v_row.chunk_id AND g.id = l.group_id
                AND g.doubled_bytes + l.last - l.durable <= p_waste * g.bytes_total;
            CONTINUE WHEN NOT FOUND;
            UPDATE leases l SET doubled_at = statement_timestamp() WHERE l.chunk_id = v_row.chunk_id;
            -- Nobody is charged for it: its place would have been idle.
            INSERT INTO leases (chunk_id, session_id, sync, kind, doubles, task_id, group_id, origin_id, source, sink, version, first,
                last, resume, durable, crc, rank, attempts, deaths, moves)
            SELECT nextval('chunk_ids'), s.id, s.sequence, 'double', l.chunk_id, l.task_id, l.group_id, l.origin_id, l.source,
                l.sink, l.version, l.first, l.last, l.durable, l.durable, l.crc, l.rank, l.attempts, l.deaths, l.moves
            FROM leases l JOIN sessions s ON s.id = v_usable[1] WHERE l.chunk_id = v_row.chunk_id
            RETURNING leases.chunk_id INTO chunk_id;
        END IF;
        v_slots := without_slots(v_slots, v_usable[:1]);
        v_left := v_left - 1;
        RETURN NEXT;
    END LOOP;
END
$$;

-- A holder has agreed that its chunk ends at p_end, or has said no by an end that is not nearer. The tail is ready for others, so that
-- the chunks tile as before (I3). Returns whether it is; NULL if the lease is not the session's any more. Harmless when repeated.
CREATE FUNCTION report_shrunk(p_session bigint, p_chunk bigint, p_epoch bigint, p_end bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    v_charge bigint;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    UPDATE leases SET shrink_to = NULL
    WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session RETURNING * INTO l;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- Only where others may fetch the rest, and never below what is durable (I4).
    IF l.kind <> 'fetch' OR p_end <= l.first OR p_end < l.durable OR (p_end >= l.last) IS NOT FALSE
        OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = l.task_id AND t.planned AND NOT t.stream)
    THEN RETURN false; END IF;

    PERFORM drop_doubles(ARRAY[p_chunk]);
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank, moves)
    SELECT l.task_id, l.group_id, coalesce(s.fresh_origin_id, s.origin_id), l.source, l.sink, l.version, p_end, l.last, p_end,
        l.rank, l.moves
    FROM sources s WHERE s.task_id = l.task_id AND s.ordinal = l.source;
    UPDATE tasks SET chunks_left = chunks_left + 1 WHERE id = l.task_id;
    v_charge := byte_charge(p_end - l.resume) - l.charged;
    UPDATE leases SET last = p_end, charged = charged + v_charge WHERE chunk_id = p_chunk;
    UPDATE groups SET served = served + v_charge / weight WHERE id = l.group_id;
    RETURN true;
END
$$;

-- Takes back the doubles of chunks. Whoever holds one is not told yet, and may be writing. The caller holds the locks of the groups.
CREATE FUNCTION drop_doubles(p_chunks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(d.chunk_id), array_agg(d.epoch) INTO v_chunks, v_epochs FROM leases d WHERE d.doubles = ANY (p_chunks);
    IF v_chunks IS NULL THEN RETURN; END IF;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    UPDATE tasks t SET fenced = true FROM leases d WHERE d.chunk_id = ANY (v_chunks) AND t.id = d.task_id;
    DELETE FROM leases d WHERE d.chunk_id = ANY (v_chunks);
END
$$;

-- A double takes the place of the lease that it doubles. The caller holds the lock of the group, and has seen to it that nothing comes
-- of what the other holder may still be writing.
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

-- Of the two leases on a chunk the one that is reported as done wins, and the other one is taken back; called by report_done, which
-- then finds an ordinary lease.
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
        JOIN leases l ON l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id));
END
$$;

-- What becomes of doubles when leases are put back; called by return_leases, before anything of these moves. A double that is put
-- back itself is gone. One whose chunk is put back goes on in its place if it is as far at least, since a durable offset never goes
-- back (I4). Returns how many of the leases are dealt with by that.
CREATE FUNCTION return_doubles(p_chunks bigint[], p_epochs bigint[], p_lost boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
    v_count bigint;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leases WHERE doubles IS NOT NULL) THEN RETURN 0; END IF;
    WITH gone AS MATERIALIZED (
        DELETE FROM leases d USING unnest(p_chunks, p_epochs) AS u (chunk_id, epoch)
        WHERE d.chunk_id = u.chunk_id AND d.epoch = u.epoch AND d.doubles IS NOT NULL RETURNING d.task_id
    ), fence AS (
        UPDATE tasks t SET fenced = true FROM gone WHERE t.id = gone.task_id AND p_lost
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
            ON o.chunk_id = u.chunk_id AND o.epoch = u.epoch));
    RETURN v_count;
END
$$;

-- A lease that could not be fulfilled, as before, but for doubles: that of a chunk which failed is taken back, so that the failure is
-- dealt with as if there had been none, and one that failed itself is gone. What its origin said is heeded all the same.
ALTER FUNCTION report_failure(
    bigint, bigint, bigint, bigint, bigint, text, text, text, integer, bigint, integer, text, text, text, boolean,
    double precision, bigint, integer, integer, integer, integer, bigint, bigint
) RENAME TO fail_lease;

CREATE FUNCTION report_failure(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_offset bigint, p_crc bigint, p_rule text, p_kind text, p_detail text,
    p_source integer, p_retry_after bigint, p_status integer, p_request text, p_address text, p_limit text, p_expiry boolean,
    p_random double precision, p_first_chunk bigint, p_max_attempts integer, p_max_restarts integer, p_deaths integer,
    p_origin_cap integer, p_base_ms bigint, p_maximum_ms bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    d leases;
    t tasks;
BEGIN
    IF EXISTS (SELECT 1 FROM leases WHERE doubles IS NOT NULL) THEN
        -- Origins come before groups in the order of locks.
        PERFORM o.id FROM origins o
        WHERE o.id IN (SELECT l.origin_id FROM leases l WHERE l.chunk_id = p_chunk) FOR NO KEY UPDATE;
        PERFORM lock_groups_of(ARRAY[p_chunk]);
        PERFORM drop_doubles(ARRAY(
            SELECT l.chunk_id FROM leases l WHERE l.chunk_id = p_chunk AND l.epoch = p_epoch AND l.session_id = p_session));
        DELETE FROM leases l
        WHERE l.chunk_id = p_chunk AND l.epoch = p_epoch AND l.session_id = p_session AND l.doubles IS NOT NULL
        RETURNING * INTO d;
        IF FOUND THEN
            SELECT * INTO t FROM tasks WHERE id = d.task_id;
            UPDATE origins SET not_before = greatest(not_before, statement_timestamp()
                + least(3600, p_retry_after) * interval '1 s' * (1 + p_random / 10))
            WHERE id = d.origin_id AND p_retry_after IS NOT NULL;
            PERFORM heed_limit(d, t, p_kind, p_limit, p_origin_cap);
            PERFORM note_attempt(t.id, p_session, d.source, p_kind, p_status, p_detail, p_request, p_address, d.durable, 'returned');
            RETURN;
        END IF;
    END IF;
    PERFORM fail_lease(p_session, p_chunk, p_epoch, p_offset, p_crc, p_rule, p_kind, p_detail, p_source, p_retry_after, p_status,
        p_request, p_address, p_limit, p_expiry, p_random, p_first_chunk, p_max_attempts, p_max_restarts, p_deaths, p_origin_cap,
        p_base_ms, p_maximum_ms);
END
$$;
