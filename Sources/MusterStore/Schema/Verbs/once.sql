-- URLs that may work once (row 22, adr/0027). At an origin that is not known to serve a file twice, the first request for a file asks for all of it,
-- and its lease covers the file. Once the origin has served a second request for a file (a trial, which asks for a byte), such leases are divided
-- where that is worth while, as those of stragglers are, and other files are asked for in chunks.

-- Makes a trial of the origin of a lease that brings all of a file, unless the origin is known to serve another request, or the group has a trial of
-- it ready. The trial need not run before the end of its file, which may be near. The caller holds the lock of the group.
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

-- Makes trials for leases that have taken p_age and bring a file slowly (`slow_leases`): beside one lease of each origin a plain GET is made, for
-- some of the file's first bytes. If these come at once, the lease's holder goes on with a plain GET, or the file begins anew at the other source
-- (range contract, "The ladder"). The running request goes on meanwhile: its origin may serve no other (row 22). To be called more often than p_age.
-- Returns how many trials are made.
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
            least(t.size, greatest(65536, s.bytes)), chunk_rank('trial', t.priority, false)
        FROM slow_leases(p_age) AS s JOIN tasks t ON t.id = s.task_id
        WHERE s.origin_id = ANY (v_origins) AND s.group_id = ANY (v_groups)
        ORDER BY s.origin_id, s.chunk_id
        ON CONFLICT DO NOTHING
        RETURNING origin_id, task_id, source
    ), compared AS (
        UPDATE origins o SET compared_at = statement_timestamp() FROM tried r JOIN tasks t ON t.id = r.task_id
        WHERE o.id = r.origin_id AND t.source = r.source
    )
    SELECT count(*) INTO v_count FROM tried;
    RETURN v_count;
END
$$;

-- The slow leases for `try_slow_origins`, each with the source for the plain GET and its bytes.
--
-- At the same origin: leases from the first byte that run below 256 KiB/s and lack a mebibyte at least, if they bring all of the file or have
-- stopped; once in ten minutes, for four times what they have brought. At the next source that has not failed: leases that bring a file which can't
-- be resumed there, and need half a minute more and half of the file; for four times what they would bring in 5 s.
CREATE FUNCTION slow_leases(p_age interval)
RETURNS TABLE (chunk_id bigint, task_id bigint, group_id bigint, origin_id bigint, source integer, bytes bigint)
LANGUAGE sql STABLE AS $$
    SELECT s.chunk_id, s.task_id, s.group_id, s.origin_id, s.source, s.bytes
    FROM (
        SELECT l.chunk_id, l.task_id, l.group_id, l.origin_id, l.source, 4 * l.durable AS bytes
        FROM leases l JOIN tasks t ON t.id = l.task_id JOIN origins o ON o.id = l.origin_id
        WHERE l.kind = 'fetch' AND l.first = 0 AND t.planned AND t.rung = 'chunks'
            AND (l.tile IS NULL AND l.last >= t.size OR l.progress_at < statement_timestamp() - p_age)
            AND l.granted_at BETWEEN statement_timestamp() - p_age * 4 AND statement_timestamp() - p_age
            AND l.last - l.durable >= 1048576
            AND l.durable - l.resume < 262144 * extract(epoch FROM statement_timestamp() - l.granted_at)
            AND coalesce(o.compared_at < statement_timestamp() - interval '10 min', true)
            AND may_look(l, t)
        UNION ALL
        SELECT l.chunk_id, l.task_id, l.group_id, n.origin_id, n.source, (20 * p.speed)::bigint
        FROM leases l JOIN tasks t ON t.id = l.task_id
        CROSS JOIN LATERAL (
            SELECT (l.durable - l.resume) / greatest(1, extract(epoch FROM statement_timestamp() - l.granted_at)::double precision) AS speed
        ) AS p
        CROSS JOIN LATERAL (
            SELECT s.ordinal AS source, coalesce(s.fresh_origin_id, s.origin_id) AS origin_id FROM sources s
            WHERE s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source AND s.failures = 0
            ORDER BY s.ordinal LIMIT 1
        ) AS n
        WHERE l.kind = 'fetch' AND l.first = 0 AND t.planned AND t.mirrors > 1 AND NOT t.mixes AND l.last >= t.size AND l.durable < t.size / 2
            AND l.granted_at < statement_timestamp() - p_age
            AND t.size - l.durable > p.speed * 30
    ) AS s
    JOIN origins o ON o.id = s.origin_id
    WHERE o.bytes_per_second IS NULL AND is_awake(o)
        AND NOT EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = s.origin_id AND h.kind = 'trial')
$$;

-- Divides leases that are about to be taken from their holders, or come back: the next holder has to ask for the rest in any case.
CREATE FUNCTION divide_returned(p_chunks bigint[], p_epochs bigint[]) RETURNS void
LANGUAGE sql AS $$
    SELECT cut_lease(l, (l.durable / l.tile + 1) * l.tile)
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch
    WHERE (l.durable / l.tile + 1) * l.tile < l.last
$$;

-- An origin has served another request for a file: no more trials of it are made. If the trial was at another source of the file, which was far
-- faster, the file begins anew there. Harmless when repeated.
CREATE FUNCTION report_served_again(p_session bigint, p_chunk bigint, p_epoch bigint, p_first_chunk bigint) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    l leases;
    t tasks;
    v_groups bigint[];
BEGIN
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'trial';
    IF NOT FOUND THEN RETURN; END IF;
    SELECT * INTO t FROM tasks WHERE id = l.task_id;
    IF l.source <> t.source THEN
        PERFORM go_to_faster(l, p_first_chunk);
        RETURN;
    END IF;
    -- Origins come before groups in the order of locks.
    UPDATE origins SET serves_again = true WHERE id = l.origin_id AND NOT serves_again;
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    DELETE FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    -- A trial of a group that is locked now is left: it will be made for nothing.
    v_groups := lock_free_groups(ARRAY(SELECT c.group_id FROM ready_chunks c WHERE c.origin_id = l.origin_id AND c.kind = 'trial'));
    DELETE FROM ready_chunks c WHERE c.origin_id = l.origin_id AND c.kind = 'trial' AND c.group_id = ANY (v_groups)
        AND NOT EXISTS (SELECT 1 FROM tasks o WHERE o.id = c.task_id AND o.source <> c.source);
END
$$;

-- A trial has shown that its source is far faster than the current one: the file begins anew there, since nothing would tell the bytes of the two
-- sources apart.
CREATE FUNCTION go_to_faster(l leases, p_first_chunk bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    h leases;
    f failure;
BEGIN
    PERFORM lock_groups_of(ARRAY[l.chunk_id]);
    DELETE FROM leases WHERE chunk_id = l.chunk_id AND epoch = l.epoch;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT * INTO h FROM leases WHERE task_id = l.task_id AND kind = 'fetch' AND first = 0;
    IF NOT FOUND THEN RETURN; END IF;
    f.session_id := h.session_id;
    f.kind := 'tooSlow';
    f.detail := 'another source is faster';
    -- The file does not go back to the slower source: it would alternate for ever between sources that are slow in turn (I12).
    UPDATE sources SET failures = failures + 1 WHERE task_id = l.task_id AND ordinal = h.source;
    PERFORM start_over(l.task_id, p_first_chunk, l.source, 0, h.deaths);
    PERFORM note_attempt(l.task_id, h.source, h.durable, 'nextSource', f);
END
$$;

-- The origin did not serve another request for the file, or not now: the running request goes on alone. The origin is tried with the next file.
-- Another source that was not faster is not compared again.
CREATE FUNCTION fail_trial(l leases, t tasks, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM leases WHERE chunk_id = l.chunk_id;
    UPDATE sources SET failures = failures + 1 WHERE task_id = t.id AND ordinal = l.source AND l.source <> t.source;
    PERFORM heed_retry_after(l, f);
    -- A refusal that may have another reason than a limit has it: the URL is used up.
    IF f.limit_signal = 'certain' THEN
        PERFORM heed_limit(l, t, f);
    END IF;
END
$$;
