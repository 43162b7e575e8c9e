-- How idle sessions help slow ones, so that the end of a group does not wait for one chunk (adr/0012).

-- Has idle sessions help stragglers, the worst first: asks holders to shrink, or takes chunks back from silent holders. The next claim grants
-- what becomes ready. Returns a row for each session that is asked, and one for each chunk that is taken back.
--
-- Called with sessions that a claim has left with room. The locks come first, then the reads that decide: see `share_leases`.
CREATE FUNCTION help_stragglers(
    p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_policy policy
) RETURNS TABLE (asked bigint, taken bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    v_sinks text[];
    v_chunks bigint[];
    v_groups bigint[];
    v_origins bigint[];
    v_slots bigint[];                   -- a session for every lease that could be granted
    v_left integer;
    v_usable bigint[];
    v_row record;
BEGIN
    -- 1. The stragglers, without a lock: most of the time there is none.
    SELECT array_agg(DISTINCT sink) INTO v_sinks FROM sessions s, unnest(s.sinks) AS sink
    WHERE s.id = ANY (p_sessions) AND sink <> ALL (s.parked);
    SELECT array_agg(s.chunk_id), array_agg(s.group_id), array_agg(s.origin_id) INTO v_chunks, v_groups, v_origins FROM (
        SELECT chunk_id, group_id, origin_id FROM stragglers(v_sinks, p_policy, NULL)
        ORDER BY needs DESC, chunk_id LIMIT 64
    ) AS s;
    IF v_chunks IS NULL THEN RETURN; END IF;

    -- 2. The locks, and the free slots. A request to shrink that was made lately keeps one for the session that takes the tail.
    PERFORM s.id FROM sessions s WHERE s.id = ANY (p_sessions) ORDER BY s.id FOR NO KEY UPDATE;
    PERFORM o.id FROM origins o WHERE o.id = ANY (v_origins) ORDER BY o.id FOR NO KEY UPDATE;
    v_groups := lock_free_groups(v_groups);
    v_slots := idle_slots(p_sessions, p_sequences, p_rooms, p_policy.session_cap);
    SELECT coalesce(cardinality(v_slots), 0) - count(*) INTO v_left FROM leases l
    WHERE l.shrink_to < l.last AND l.shrink_asked_at > statement_timestamp() - interval '5 s';

    -- 3. The worst first, read again after the locks.
    FOR v_row IN
        SELECT s.*, l.epoch FROM stragglers(v_sinks, p_policy, v_chunks) AS s
        JOIN leases l ON l.chunk_id = s.chunk_id
        WHERE s.group_id = ANY (v_groups) AND s.origin_id = ANY (v_origins)
        ORDER BY s.needs DESC, s.chunk_id
    LOOP
        EXIT WHEN v_left <= 0;
        -- The connection of a chunk that is taken back may be in use until its holder has said that it has let go.
        CONTINUE WHEN NOT has_room_for_helper(v_row.group_id, v_row.origin_id, p_policy.origin_cap);
        v_usable := helper_slots(v_slots, v_row.sink, v_row.session_id);
        CONTINUE WHEN v_usable = '{}';
        asked := CASE WHEN v_row.remedy = 'shrink' THEN v_row.session_id END;
        taken := CASE WHEN v_row.remedy = 'take' THEN v_row.chunk_id END;
        IF taken IS NULL THEN
            PERFORM ask_to_shrink(v_row.chunk_id, v_row.place, v_row.speed, v_row.typical, p_policy, v_left);
        ELSE
            PERFORM take_from_silent(v_row.chunk_id, v_row.epoch, p_policy);
        END IF;
        v_slots := without_slots(v_slots, v_usable[:1]);
        v_left := v_left - 1;
        RETURN NEXT;
    END LOOP;
END
$$;

-- The slots of sessions that are alive, not draining, and ask with their newest sync: the sessions take turns.
CREATE FUNCTION idle_slots(p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_session_cap integer) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT array_agg(s.id ORDER BY turn, s.id)
        FROM unnest(p_sessions, p_sequences, p_rooms) AS r (session_id, sequence, room)
        JOIN sessions s ON s.id = r.session_id
        CROSS JOIN LATERAL (SELECT count(*)::integer AS held FROM leases l WHERE l.session_id = s.id) AS h
        CROSS JOIN generate_series(1, least(r.room, p_session_cap - h.held, 64)) AS turn
        WHERE s.sequence = r.sequence AND NOT s.draining AND s.expires_at > statement_timestamp());
END
$$;

-- Whether a group and an origin may have one more connection (I5), with one kept for every tail that was asked for lately.
CREATE FUNCTION has_room_for_helper(p_group bigint, p_origin bigint, p_origin_cap integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT free_lanes(o, p_origin_cap) > asked_lanes(o.id, NULL)
            AND (g.max_connections IS NULL OR free_lanes_of(g.id, g.max_connections) > asked_lanes(NULL, g.id))
        FROM groups g CROSS JOIN origins o WHERE g.id = p_group AND o.id = p_origin);
END
$$;

-- The slots whose sessions may help the holder of a chunk in a sink. A worker helps itself after all others do.
CREATE FUNCTION helper_slots(p_slots bigint[], p_sink text, p_holder bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_worker text;
BEGIN
    SELECT worker INTO v_worker FROM sessions WHERE id = p_holder;
    RETURN (
        SELECT coalesce(array_agg(s.id ORDER BY s.worker IS NOT DISTINCT FROM v_worker, u.n), '{}')
        FROM unnest(p_slots) WITH ORDINALITY AS u (id, n)
        JOIN sessions s ON s.id = u.id
        WHERE p_sink = ANY (s.sinks) AND p_sink <> ALL (s.parked));
END
$$;

-- p_bytes, or what a lease brings in p_seconds if that is less, in steps of 64 KiB from 1 MiB on, the least that a chunk may be set to. Where a
-- connection is slow, chunks are small: a file would come by fewer connections than there are otherwise.
CREATE FUNCTION at_most(p_bytes bigint, p_speed double precision, p_seconds integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(p_bytes, greatest(1048576, (p_speed * p_seconds)::bigint / 65536 * 65536))
$$;

-- The least that is cut off a chunk: p_minimum, or what the connection brings in three seconds, but 64 KiB at least. The end of a slow chunk may hold
-- up a group for minutes, so that little is worth another request.
CREATE FUNCTION least_tail(p_minimum bigint, p_speed double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(p_minimum, greatest(65536, (p_speed * 3)::bigint / 65536 * 65536))
$$;

-- The size of the chunks into which a lease is divided that brings all of a file: ten seconds of its speed, or less if there are more idle places, so
-- that each has its share.
CREATE FUNCTION tile_of(l leases, p_place bigint, p_speed double precision, p_places integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(at_most(l.tile, p_speed, 10), greatest(1048576, ((l.last - p_place) / (p_places + 1) + 65535) / 65536 * 65536))
$$;

-- Asks the holder of a chunk to end it where it and a helper of typical speed would be through at the same time. A lease that brings all of a file is
-- to end with the tile (`tile_of`) that it is in; p_places are idle. A holder that needs more than 8 s for `shrink_unit` goes by a sixteenth of it,
-- since the others wait for what it keeps.
CREATE FUNCTION ask_to_shrink(
    p_chunk bigint, p_place bigint, p_speed double precision, p_typical double precision, p_policy policy, p_places integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_unit bigint := CASE WHEN p_speed * 8 < p_policy.shrink_unit THEN greatest(1, p_policy.shrink_unit / 16) ELSE p_policy.shrink_unit END;
    v_minimum bigint := least_tail(p_policy.minimum_shrink, p_speed);
BEGIN
    UPDATE leases l
    SET tile = CASE WHEN l.tile IS NOT NULL THEN tile_of(l, p_place, p_speed, p_places) END,
        shrink_to = CASE WHEN l.tile IS NOT NULL THEN
                (p_place / tile_of(l, p_place, p_speed, p_places) + 1) * tile_of(l, p_place, p_speed, p_places)
            ELSE greatest(l.first + v_unit, least((l.last - v_minimum) / v_unit, ceil((p_place
                + (l.last - p_place) * p_speed / (p_speed + p_typical)) / v_unit)) * v_unit) END,
        shrink_asked_at = statement_timestamp(), shrink_asks = least(l.shrink_asks + 1, 100)
    WHERE l.chunk_id = p_chunk;
END
$$;

-- Takes a chunk back from a silent holder. The bytes since its last report are wasted (I16). Its later writes reach no file (I8).
CREATE FUNCTION take_from_silent(p_chunk bigint, p_epoch bigint, p_policy policy) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = p_chunk AND t.id = l.task_id;
    PERFORM hold_out_leases(ARRAY[p_chunk], ARRAY[p_epoch]);
    PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_policy);
    UPDATE ready_chunks c SET moves = c.moves + 1 WHERE c.id = p_chunk;
END
$$;

-- The fetch leases in some sinks that an idle session would help, and how: by taking the tail (`shrink`), or by taking over from a silent holder
-- (`take`). Of p_chunks alone, if they are given.
--
-- A holder is silent if it was asked ten seconds ago and has not synced since (a holder that is asked syncs at once), or if its session is silent
-- (`is_silent`). As with slow chunks (`sweep_slow`), a chunk is moved three times at the most.
--
-- Help is worth it if it saves two seconds and a third of the time that the lease still needs; a new connection costs a second. A lease that brings
-- all of a file is divided, if its origin serves another request, unless it is through in a second: bytes in flight are lost. If a byte budget sets
-- the pace, the lease also has to be slower than others: more connections bring nothing there. A lease under which nothing has come for five
-- seconds keeps a small rest: the bytes in flight would be lost, and it may come at once.
CREATE FUNCTION stragglers(p_sinks text[], p_policy policy, p_chunks bigint[]) RETURNS TABLE (
    chunk_id bigint, session_id bigint, group_id bigint, origin_id bigint, sink text, place bigint, speed double precision,
    typical double precision, needs double precision, remedy text
)
LANGUAGE sql STABLE AS $$
    SELECT s.chunk_id, s.session_id, s.group_id, s.origin_id, s.sink, s.place, s.speed, s.typical, s.needs, s.remedy
    FROM (
        SELECT l.chunk_id, l.session_id, l.group_id, l.origin_id, l.sink, p.place, p.speed, p.typical, p.needs,
            CASE
                WHEN l.tile IS NOT NULL THEN CASE WHEN l.shrink_to IS NULL AND p.needs > 1 AND l.last - p.place > at_most(l.tile, p.speed, 4)
                    AND (l.shrink_asked_at IS NULL
                        OR l.shrink_asked_at < statement_timestamp() - interval '3 s' * power(2, least(l.shrink_asks, 10)))
                    THEN 'shrink' END
                WHEN l.last - p.place >= 2 * CASE WHEN p.silence < 5 THEN least_tail(p_policy.minimum_shrink, p.speed) ELSE p_policy.minimum_shrink END
                    AND l.shrink_to IS NULL
                    AND (l.shrink_asked_at IS NULL
                        OR l.shrink_asked_at < statement_timestamp() - interval '3 s' * power(2, least(l.shrink_asks, 10)))
                    AND p.needs - ((l.last - p.place) / (p.speed + p.typical) + 1) >= greatest(2, p.needs / 3)
                THEN 'shrink'
                WHEN l.moves < 3
                    AND (h.seen_at < l.shrink_asked_at AND l.shrink_asked_at < statement_timestamp() - interval '10 s'
                        OR is_silent(h))
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
            AND l.granted_at <= statement_timestamp() - CASE WHEN l.tile IS NOT NULL THEN interval '1 s'
                WHEN l.durable > l.resume THEN interval '2 s' ELSE interval '5 s' END
            AND t.planned AND t.rung = 'chunks'
            AND CASE WHEN l.tile IS NOT NULL THEN o.serves_again ELSE l.first > 0 OR l.last < t.size END
            AND g.state IN ('open', 'sealed') AND group_may_run(g)
            AND is_awake(o)
            AND (p.speed < p.typical * 2 / 3
                OR p_policy.fleet_rate IS NULL AND o.bytes_per_second IS NULL AND g.bytes_per_second IS NULL AND g.timetable IS NULL)
            -- An idle session first takes chunks that no session has begun.
            AND NOT EXISTS (
                SELECT 1 FROM ready_chunks c WHERE c.group_id = l.group_id AND c.origin_id = l.origin_id AND c.status = 'ready')
    ) AS s
    WHERE s.remedy IS NOT NULL
$$;

-- Whether a session has not synced for half of its time to live, in which it syncs three times; and for ten seconds at least, or a short disturbance
-- would cost a fence.
CREATE FUNCTION is_silent(s sessions) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT s.seen_at < statement_timestamp() - greatest(interval '10 s', (s.expires_at - s.seen_at) / 2)
$$;

-- How far a fetch lease is by now (`place`), its speed and the typical speed of its group's leases, in bytes per second, and how many
-- seconds it still needs. `silence` is the time since its last report. Reports come every few seconds: the bytes since then are estimated, unless a
-- report was due long ago.
--
-- OFFSET 0 has each value computed once, wherever it is used: this runs for every lease.
CREATE FUNCTION lease_pace(l leases, g groups)
RETURNS TABLE (place bigint, speed double precision, typical double precision, needs double precision, silence double precision)
LANGUAGE sql STABLE AS $$
    SELECT p.place, p.speed, p.typical, (l.last - p.place) / greatest(p.speed, 1), p.silence
    FROM (
        SELECT m.speed, m.typical, m.silence,
            CASE WHEN m.moves THEN least(l.last, l.durable + (m.speed * m.silence)::bigint) ELSE l.durable END AS place
        FROM (
            SELECT t.moves, t.silence,
                (l.durable - l.resume) / greatest(0.1, CASE WHEN t.moves THEN t.age - t.silence ELSE t.age END) AS speed,
                -- Leases that brought nothing have no speed to compare with.
                greatest(1, coalesce(g.lease_bytes * 1000.0 / nullif(g.lease_ms, 0), 1048576))::double precision AS typical
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

-- A holder has agreed that its chunk ends at p_end, or has refused by an end that is not nearer. The tail becomes ready for others, so that the
-- chunks tile as before (I3). p_speed is what its request has brought, in bytes per second; NULL if nothing has come. Returns whether the end is
-- nearer; NULL if the lease is not the session's any more. Harmless when repeated.
CREATE FUNCTION report_shrunk(p_session bigint, p_chunk bigint, p_epoch bigint, p_end bigint, p_speed bigint) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    l leases;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    UPDATE leases SET shrink_to = CASE WHEN p_end < shrink_to THEN shrink_to END, stated_speed = coalesce(p_speed, stated_speed)
    WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session RETURNING * INTO l;
    IF NOT FOUND THEN RETURN NULL; END IF;
    -- Only where others may fetch the rest, and never below what is durable (I4). An answer from before a part was given back does not apply to that
    -- part.
    IF l.kind <> 'fetch' OR p_end <= l.first OR p_end < l.durable OR (p_end >= l.last) IS NOT FALSE OR l.shrink_asked_at = 'infinity'
        OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = l.task_id AND t.planned AND t.rung = 'chunks')
    THEN RETURN false; END IF;

    PERFORM cut_lease(l, p_end);
    RETURN true;
END
$$;
