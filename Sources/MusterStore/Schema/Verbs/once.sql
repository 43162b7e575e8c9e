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

-- Leases that bring all of a file have taken p_age, and their files are too small to be divided: their origins are tried once too, since their
-- holders may look for a faster way to ask them then (range contract, "The ladder"). To be called more often than p_age. Returns how many there were.
CREATE FUNCTION try_slow_origins(p_age interval) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_groups bigint[];
BEGIN
    SELECT array_agg(l.chunk_id), array_agg(l.group_id) INTO v_chunks, v_groups
    FROM leases l JOIN tasks t ON t.id = l.task_id JOIN origins o ON o.id = l.origin_id
    WHERE l.kind = 'fetch' AND l.tile IS NULL AND l.first = 0 AND l.last >= t.size AND t.planned AND t.rung = 'chunks' AND NOT o.serves_again
        AND l.durable < l.last AND l.granted_at BETWEEN statement_timestamp() - p_age * 2 AND statement_timestamp() - p_age;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    v_groups := lock_free_groups(v_groups);
    PERFORM try_origin(l, t, t.size)
    FROM leases l JOIN tasks t ON t.id = l.task_id
    WHERE l.chunk_id = ANY (v_chunks) AND l.group_id = ANY (v_groups) AND t.planned AND t.size > 0 AND NOT EXISTS (
        SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND h.kind = 'trial');
    RETURN cardinality(v_chunks);
END
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
