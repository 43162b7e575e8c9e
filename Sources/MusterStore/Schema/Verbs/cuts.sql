-- Moves the end of a running chunk: the tail goes to other workers, and is given back if the source refuses them (adr/0012, adr/0037).

-- Ends a lease's chunk at p_end. The rest becomes ready for others: one chunk, or several if the lease was to bring all of a file. The caller holds
-- the lock of the group, and knows that the holder writes nothing behind p_end.
--
-- The holder's request still goes on to the old end (`reach`).
CREATE FUNCTION cut_lease(l leases, p_end bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_charge bigint := byte_charge(p_end - l.resume) - l.charged;
    v_more bigint;
BEGIN
    INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank, moves)
    SELECT l.task_id, l.group_id, coalesce(s.fresh_origin_id, s.origin_id), l.source, l.sink, l.version, p.first, p.last, p.first, l.rank, l.moves
    FROM sources s
    CROSS JOIN generate_series(p_end, l.last - 1, coalesce(l.tile, l.last - p_end)) AS start
    CROSS JOIN LATERAL (SELECT start AS first, least(start + coalesce(l.tile, l.last - p_end), l.last) AS last) AS p
    WHERE s.task_id = l.task_id AND s.ordinal = l.source;
    GET DIAGNOSTICS v_more = ROW_COUNT;
    UPDATE tasks SET chunks_left = chunks_left + v_more WHERE id = l.task_id;
    UPDATE leases SET last = p_end, charged = charged + v_charge, shrink_to = NULL, tile = NULL, reach = coalesce(reach, last) WHERE chunk_id = l.chunk_id;
    UPDATE groups SET served = served + v_charge / weight WHERE id = l.group_id;
END
$$;

-- Cuts finished chunks at the ends that their holders report: a holder that reached its end before it heard of a part that was given back to it ends
-- there.
CREATE FUNCTION cut_done(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_ends bigint[]) RETURNS void
LANGUAGE sql AS $$
    SELECT cut_lease(l, u.last)
    FROM leases l JOIN unnest(p_sessions, p_chunks, p_epochs, p_ends) AS u (session_id, chunk_id, epoch, last)
        ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch AND l.session_id IS NOT DISTINCT FROM u.session_id
    WHERE l.reach IS NOT NULL AND l.kind = 'fetch' AND u.last > l.first AND u.last >= l.durable AND u.last < l.last
$$;

-- The leases whose requests bring the bytes before a chunk of their source, go on to the chunk's end at least, and are not known to have ended.
-- Leases of silent sessions are left out: these may be gone.
CREATE FUNCTION requests_before(p_task bigint, p_source integer, p_first bigint, p_last bigint) RETURNS SETOF leases
LANGUAGE sql STABLE AS $$
    SELECT h.* FROM leases h JOIN sessions s ON s.id = h.session_id
    WHERE h.task_id = p_task AND h.kind = 'fetch' AND h.source = p_source AND h.last <= p_first AND h.durable < h.last AND h.reach >= p_last
        AND NOT is_silent(s)
$$;

-- How an untouched chunk is first requested while requests run before it (`requests_before`): how far its own request goes (`reach`), and how many
-- bytes per second it has to bring (`pace`). If these requests are slow (below 1 MiB/s), it has to bring a tenth of the speed of the fastest, which
-- would bring the chunk sooner otherwise; and it goes as far as the requests of its own session do, since little is in flight when it is cut. It does
-- not go as far as another session's request: that session may be gone, and the bytes beyond the chunk's end would be fetched twice (I16). NULL if no
-- such request runs.
CREATE FUNCTION request_beside(
    p_session bigint, p_task bigint, p_source integer, p_first bigint, p_last bigint, OUT reach bigint, OUT pace bigint
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_speed bigint;
BEGIN
    SELECT max(CASE WHEN h.session_id = p_session THEN h.reach ELSE p_last END), max(CASE WHEN h.durable > h.resume
        THEN ((h.durable - h.resume) / greatest(0.0001, extract(epoch FROM h.progress_at - h.granted_at)))::bigint ELSE h.stated_speed END)
    INTO reach, v_speed FROM requests_before(p_task, p_source, p_first, p_last) AS h;
    IF reach IS NULL THEN RETURN; END IF;
    pace := CASE WHEN v_speed < 1048576 THEN v_speed / 10 ELSE 0 END;
    IF v_speed >= 1048576 THEN reach := p_last; END IF;
END
$$;

-- Whether a failure says that there was too much at once.
CREATE FUNCTION is_too_much(f failure) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(f.limit_signal = 'certain', false) OR f.retry_after IS NOT NULL $$;

-- An untouched chunk that was cut off another one failed: its source may serve no further request. If a request still runs that goes on to the
-- chunk's end, and only untouched chunks lie between, the chunk, these chunks and the untouched ones behind it are given back to that request
-- (`give_back_chunks`). Otherwise the chunk is requested once more in the ordinary way before the failure is believed. Returns whether this ends the
-- lease. The caller holds the lock of the group.
CREATE FUNCTION spare_chunk(l leases, f failure) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    h leases;
BEGIN
    IF l.kind <> 'fetch' OR l.durable > l.first THEN RETURN false; END IF;
    SELECT * INTO h FROM requests_before(l.task_id, l.source, l.first, l.last) AS o ORDER BY o.last DESC LIMIT 1;
    IF FOUND AND l.first - h.last = (
        SELECT coalesce(sum(c.last - c.first), 0) FROM ready_chunks c
        WHERE c.task_id = l.task_id AND c.kind = 'fetch' AND c.resume = c.first AND c.first >= h.last AND c.last <= l.first)
    THEN
        IF is_too_much(f) THEN
            PERFORM heed_retry_after(l, f);
            PERFORM heed_limit(l, t, f) FROM tasks t WHERE t.id = l.task_id;
        END IF;
        PERFORM give_back_chunks(h, l);
        RETURN true;
    END IF;
    -- Too much at once is no reason to ask in another way.
    IF l.pace IS NULL OR is_too_much(f) THEN RETURN false; END IF;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
    UPDATE ready_chunks SET plain = true, status = 'waiting', not_before = statement_timestamp() + interval '1 s' WHERE id = l.chunk_id;
    RETURN true;
END
$$;

-- Gives a refused chunk back to the lease whose request still brings it, with the untouched chunks before and behind it. No session has bytes of them
-- or works on them (I2), so the chunks tile as before (I3). The holder is told of the later end in the same way as of a sooner one, and is not asked
-- to shrink this chunk any more. If it has come to its end already, it reports that end (`cut_done`).
CREATE FUNCTION give_back_chunks(h leases, l leases) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_end bigint := l.last;
    v_next bigint;
    v_gone integer := 1;
    v_charge bigint;
BEGIN
    DELETE FROM leases WHERE chunk_id = l.chunk_id;
    WITH gone AS (
        DELETE FROM ready_chunks c WHERE c.task_id = l.task_id AND c.kind = 'fetch' AND c.first >= h.last AND c.last <= l.first RETURNING 1
    )
    SELECT v_gone + count(*) INTO v_gone FROM gone;
    LOOP
        DELETE FROM ready_chunks c
        WHERE c.task_id = l.task_id AND c.kind = 'fetch' AND c.first = v_end AND c.resume = c.first AND c.last <= h.reach
        RETURNING c.last INTO v_next;
        EXIT WHEN NOT FOUND;
        v_end := v_next;
        v_gone := v_gone + 1;
    END LOOP;
    v_charge := byte_charge(v_end - h.resume) - h.charged;
    UPDATE leases SET last = v_end, charged = charged + v_charge, shrink_to = v_end, shrink_asked_at = 'infinity' WHERE chunk_id = h.chunk_id;
    UPDATE tasks SET chunks_left = chunks_left - v_gone WHERE id = l.task_id;
    UPDATE groups SET served = served + (v_charge - l.charged) / weight WHERE id = l.group_id;
END
$$;
