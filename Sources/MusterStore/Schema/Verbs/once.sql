-- URLs that may work once (row 22, adr/0027). The first request for a file at an origin of which no more is known asks for all of it, and its lease
-- covers the file. Once the origin has served another request for a file of which it has served one (a trial: it is asked for a byte), such
-- leases are divided where that is worth while, as those of stragglers are, and other files are asked for in chunks.

-- A lease has turned out to bring all of a file: its origin is tried, unless it is known to serve another request, or the group is about to
-- try it. A trial need not come before the end of its file, which may be near. The caller holds the lock of the group.
CREATE FUNCTION try_origin(l leases, t tasks, p_size bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, source, sink, version, first, last, resume, rank)
    SELECT 'trial', t.id, t.group_id, o.id, l.source, t.sink, t.version, p_size - 1, p_size, p_size - 1, chunk_rank('trial', t.priority, false)
    FROM origins o
    WHERE o.id = l.origin_id AND NOT o.serves_again AND NOT EXISTS (
        SELECT 1 FROM ready_chunks c
        WHERE c.group_id = t.group_id AND c.origin_id = o.id AND c.status = 'ready' AND c.kind = 'trial'
            AND c.rank = chunk_rank('trial', t.priority, false))
$$;

-- Leases have taken p_age that bring all of a file below 256 KiB/s, and lack a mebibyte at least, or the beginning of one and have stopped: beside
-- one of each origin a plain GET is made, once in ten minutes, for four times the bytes that the lease has brought. Where they come at once, holders
-- ask so instead (range contract, "The ladder"). What is under way goes on meanwhile: it may be all that its origin serves (row 22). To be called more
-- often than p_age. Returns how many trials are made.
CREATE FUNCTION try_slow_origins(p_age interval) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_origins bigint[] := ARRAY(SELECT DISTINCT s.origin_id FROM slow_leases(p_age) AS s);
    v_groups bigint[];
    v_count bigint;
BEGIN
    IF v_origins = '{}' THEN RETURN 0; END IF;
    -- Origins come before groups in the order of locks.
    v_origins := ARRAY(SELECT o.id FROM origins o WHERE o.id = ANY (v_origins) ORDER BY o.id FOR NO KEY UPDATE SKIP LOCKED);
    v_groups := lock_free_groups(ARRAY(SELECT DISTINCT s.group_id FROM slow_leases(p_age) AS s WHERE s.origin_id = ANY (v_origins)));
    WITH tried AS (
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, source, sink, version, first, last, rank)
        SELECT DISTINCT ON (s.origin_id) 'trial', t.id, t.group_id, s.origin_id, s.source, t.sink, t.version, 0,
            least(t.size, greatest(65536, 4 * s.durable)), chunk_rank('trial', t.priority, false)
        FROM slow_leases(p_age) AS s JOIN tasks t ON t.id = s.task_id
        WHERE s.origin_id = ANY (v_origins) AND s.group_id = ANY (v_groups)
        ORDER BY s.origin_id, s.chunk_id
        ON CONFLICT DO NOTHING
        RETURNING origin_id
    )
    UPDATE origins o SET compared_at = statement_timestamp() FROM tried WHERE o.id = tried.origin_id;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;

-- The leases that `try_slow_origins` is about, of origins that are not tried yet.
CREATE FUNCTION slow_leases(p_age interval) RETURNS SETOF leases
LANGUAGE sql STABLE AS $$
    SELECT l.* FROM leases l JOIN tasks t ON t.id = l.task_id JOIN origins o ON o.id = l.origin_id
    WHERE l.kind = 'fetch' AND l.first = 0 AND t.planned AND t.rung = 'chunks'
        AND (l.tile IS NULL AND l.last >= t.size OR l.progress_at < statement_timestamp() - p_age)
        AND l.granted_at BETWEEN statement_timestamp() - p_age * 4 AND statement_timestamp() - p_age
        AND l.last - l.durable >= 1048576
        AND l.durable - l.resume < 262144 * extract(epoch FROM statement_timestamp() - l.granted_at)
        AND o.bytes_per_second IS NULL AND coalesce(o.compared_at < statement_timestamp() - interval '10 min', true)
        AND may_look(l, t)
        AND NOT EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND h.kind = 'trial')
$$;

-- Divides leases that are about to be taken from their holders, or come back: the next holder asks for the rest in any case.
CREATE FUNCTION divide_returned(p_chunks bigint[], p_epochs bigint[]) RETURNS void
LANGUAGE sql AS $$
    SELECT cut_lease(l, (l.durable / l.tile + 1) * l.tile)
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON l.chunk_id = u.chunk_id AND l.epoch = u.epoch
    WHERE (l.durable / l.tile + 1) * l.tile < l.last
$$;

-- An origin has served another request for a file: it is tried no more. Harmless when repeated.
CREATE FUNCTION report_served_again(p_session bigint, p_chunk bigint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_origin bigint;
    v_groups bigint[];
BEGIN
    SELECT origin_id INTO v_origin FROM leases
    WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'trial';
    IF NOT FOUND THEN RETURN; END IF;
    -- Origins come before groups in the order of locks.
    UPDATE origins SET serves_again = true WHERE id = v_origin AND NOT serves_again;
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    DELETE FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    -- A trial of a group that is locked now is made for nothing.
    v_groups := lock_free_groups(ARRAY(SELECT c.group_id FROM ready_chunks c WHERE c.origin_id = v_origin AND c.kind = 'trial'));
    DELETE FROM ready_chunks c WHERE c.origin_id = v_origin AND c.kind = 'trial' AND c.group_id = ANY (v_groups);
END
$$;

-- The origin would not serve another request for the file, or not now: what one request brings is left to it. The origin is tried with the
-- next file.
CREATE FUNCTION fail_trial(l leases, t tasks, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM leases WHERE chunk_id = l.chunk_id;
    PERFORM heed_retry_after(l.origin_id, f);
    -- A refusal that may have another reason has it: the URL is used up.
    IF f.limit_signal = 'certain' THEN
        PERFORM heed_limit(l, t, f);
    END IF;
END
$$;
