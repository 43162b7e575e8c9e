-- Compares the directories that a worker has for sinks with the known ones: in another directory, files of one group would lie in two places (I8).
-- A new directory takes the place of the known one if no group uses the sink, or if the operator says so (p_replaced); but not while sessions reach
-- the sink, which work in the old directory, nor while a group has files there and is to get more. Then nothing is replaced, and one such sink is
-- returned with the name of such a worker (`other`; another worker rather than one of the same name) or group (`begun`).
CREATE FUNCTION take_directories(
    p_worker text, p_sinks text[], p_marks text[], p_replaced text[], OUT sink text, OUT other text, OUT begun text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_sinks text[];
BEGIN
    -- Of two calls at once, the later one sees what the first one has done.
    PERFORM pg_advisory_xact_lock(hashtext('muster.sessions'), 0);
    INSERT INTO sinks (name, mark) SELECT u.sink, u.mark FROM unnest(p_sinks, p_marks) AS u (sink, mark) WHERE u.mark <> ''
    ON CONFLICT DO NOTHING;
    SELECT array_agg(k.name) INTO v_sinks FROM unnest(p_sinks, p_marks) AS u (sink, mark) JOIN sinks k ON k.name = u.sink AND k.mark <> u.mark
    WHERE u.mark <> '' AND (k.name = ANY (p_replaced) OR NOT EXISTS (SELECT FROM groups g WHERE g.sink = k.name));
    SELECT u.sink, s.worker INTO take_directories.sink, take_directories.other
    FROM unnest(v_sinks) AS u (sink) JOIN sessions s ON u.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp()
    ORDER BY s.worker = p_worker, s.id LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    SELECT g.sink, g.name INTO take_directories.sink, take_directories.begun FROM groups g
    WHERE g.sink = ANY (v_sinks) AND g.state IN ('open', 'sealed') AND g.succeeded > 0 ORDER BY g.name LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    UPDATE sinks k SET mark = u.mark FROM unnest(p_sinks, p_marks) AS u (sink, mark) WHERE k.name = u.sink AND k.name = ANY (v_sinks);
END
$$;

-- Opens a session, and returns for each of its sinks the mark that its directory must have (`expected`; empty if it is not known). If a directory
-- is refused (take_directories), no session is opened. If the process had the session p_previous, and that was draining, the new session is
-- draining too. p_previous is over: the process has given it up, so that others need not wait until it expires.
CREATE FUNCTION open_session(
    p_worker text, p_version text, p_labels jsonb, p_slots integer, p_sinks text[], p_marks text[], p_replaced text[], p_rate bigint,
    p_previous bigint, p_ttl interval, OUT session bigint, OUT expected text[], OUT sink text, OUT other text, OUT begun text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    SELECT d.sink, d.other, d.begun INTO open_session.sink, open_session.other, open_session.begun
    FROM take_directories(p_worker, p_sinks, p_marks, p_replaced) AS d;
    IF open_session.sink IS NOT NULL THEN RETURN; END IF;
    expected := ARRAY(
        SELECT coalesce(k.mark, '') FROM unnest(p_sinks) WITH ORDINALITY AS u (sink, place) LEFT JOIN sinks k ON k.name = u.sink
        ORDER BY u.place);
    INSERT INTO sessions (worker, version, labels, slots, sinks, bytes_per_second, draining, expires_at)
    VALUES (p_worker, p_version, p_labels, p_slots, p_sinks, p_rate,
        EXISTS (SELECT FROM drained_sessions d WHERE d.session_id = p_previous)
            OR EXISTS (SELECT FROM sessions s WHERE s.id = p_previous AND s.draining),
        statement_timestamp() + p_ttl)
    RETURNING id INTO open_session.session;
    UPDATE sessions s SET expires_at = 'epoch' WHERE s.id = p_previous AND s.worker = p_worker;
END
$$;

-- Adds a sink to a live session that was opened without it, and returns the mark that its directory must have (`expected`; NULL if it is not
-- known). If the directory is refused (take_directories), or the session has p_most sinks already (`crowded`), nothing is added. `worker` is NULL
-- if the session is over.
CREATE FUNCTION add_sink(
    p_session bigint, p_sink text, p_mark text, p_replaced boolean, p_most integer, OUT worker text, OUT crowded boolean, OUT expected text,
    OUT other text, OUT begun text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    -- As in take_directories: of two calls at once, the later one counts what the first one has added.
    PERFORM pg_advisory_xact_lock(hashtext('muster.sessions'), 0);
    SELECT s.worker, cardinality(s.sinks) >= p_most AND p_sink <> ALL (s.sinks) INTO add_sink.worker, add_sink.crowded
    FROM sessions s WHERE s.id = p_session AND s.expires_at > statement_timestamp();
    IF NOT FOUND OR add_sink.crowded THEN RETURN; END IF;
    SELECT d.other, d.begun INTO add_sink.other, add_sink.begun
    FROM take_directories(
        add_sink.worker, ARRAY[p_sink], ARRAY[p_mark], CASE WHEN p_replaced THEN ARRAY[p_sink] ELSE '{}' END) AS d;
    IF add_sink.other IS NOT NULL OR add_sink.begun IS NOT NULL THEN RETURN; END IF;
    UPDATE sessions s SET sinks = array_append(s.sinks, p_sink) WHERE s.id = p_session AND p_sink <> ALL (s.sinks);
    SELECT k.mark INTO add_sink.expected FROM sinks k WHERE k.name = p_sink;
END
$$;

-- Renews the session by its newest sync; no row when the session is over. An old sync that arrives late renews nothing and
-- supersedes nothing. In the same round trip the two sides compare what is held:
-- * `repaired` leases were granted in a sync that is settled, but the session does not hold them: the answer was lost, nothing
--   was ever written under them, and they go back;
-- * `lost` are places in p_held, from 1, of leases that are not the session's any more;
-- * leases that were taken from it and that it does not hold any more are not written under any more (I13).
-- A loss of this commit means a shorter life of the session or one more repair, so it does not wait for the disk.
CREATE FUNCTION sync_session(
    p_session bigint, p_sequence bigint, p_ttl interval, p_status jsonb, p_received bigint, p_settled bigint, p_held_chunks bigint[],
    p_held_epochs bigint[], p_policy policy
) RETURNS TABLE (is_newest boolean, is_draining boolean, repaired bigint, lost integer[])
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE sessions s
    SET sequence = greatest(s.sequence, p_sequence),
        expires_at = CASE WHEN p_sequence > s.sequence THEN statement_timestamp() + p_ttl ELSE s.expires_at END,
        seen_at = statement_timestamp(),
        parked = CASE WHEN p_sequence <= s.sequence THEN s.parked ELSE ARRAY(
            SELECT u.sink ->> 'name' FROM jsonb_array_elements(p_status) AS u (sink) WHERE u.sink ->> 'parked' IS NOT NULL) END,
        full_sinks = CASE WHEN p_sequence <= s.sequence THEN s.full_sinks ELSE ARRAY(
            SELECT u.sink ->> 'name' FROM jsonb_array_elements(p_status) AS u (sink) WHERE u.sink ->> 'parked' = 'storageFull') END,
        sink_status = CASE WHEN p_sequence > s.sequence THEN p_status ELSE s.sink_status END,
        rate_bytes = CASE WHEN p_received > 0 THEN flowed(s.rate_bytes, s.rate_at, p_received) ELSE s.rate_bytes END,
        rate_at = CASE WHEN p_received > 0 THEN statement_timestamp() ELSE s.rate_at END
    -- A sync that was under way when the session was ended does not bring it back.
    WHERE s.id = p_session AND s.expires_at > 'epoch'
    RETURNING s.sequence = p_sequence, s.draining INTO is_newest, is_draining;
    IF NOT FOUND THEN RETURN; END IF;

    repaired := 0;
    IF is_newest THEN
        DELETE FROM holdouts h
        WHERE h.session_id = p_session AND h.sync <= p_settled AND h.epoch <> ALL (p_held_epochs);
        -- Sets are compared, so that the time does not grow with the square of what is held.
        SELECT array_agg(u.chunk_id), array_agg(u.epoch) INTO v_chunks, v_epochs FROM (
            SELECT l.chunk_id, l.epoch FROM leases l WHERE l.session_id = p_session AND l.sync <= p_settled
            EXCEPT SELECT * FROM unnest(p_held_chunks, p_held_epochs)
        ) AS u;
        IF v_chunks IS NOT NULL THEN
            -- Leases of a locked group are repaired by a later sync: this sync has a session to renew.
            SELECT * INTO v_chunks, v_epochs FROM lock_leases(v_chunks, v_epochs);
        END IF;
        IF v_chunks IS NOT NULL THEN
            SELECT r.count INTO repaired FROM return_leases_apart(v_chunks, v_epochs, false, p_policy) AS r;
        END IF;
    END IF;
    SELECT array_agg(h.place::integer) INTO lost
    FROM unnest(p_held_chunks, p_held_epochs) WITH ORDINALITY AS h (chunk_id, epoch, place)
    WHERE (h.chunk_id, h.epoch) NOT IN (SELECT l.chunk_id, l.epoch FROM leases l WHERE l.session_id = p_session);
    RETURN NEXT;
END
$$;

-- Ends a session whose worker says that all its writes have stopped, and has removed its directories in sinks.
CREATE FUNCTION close_session(p_session bigint, p_policy policy) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    DELETE FROM sessions WHERE id = p_session;
    SELECT array_agg(chunk_id), array_agg(epoch) INTO v_chunks, v_epochs FROM leases WHERE session_id = p_session;
    IF v_chunks IS NOT NULL THEN
        -- The sweep finds the leases of locked groups, whose session is gone.
        SELECT * INTO v_chunks, v_epochs FROM lock_leases(v_chunks, v_epochs);
    END IF;
    IF v_chunks IS NOT NULL THEN
        PERFORM return_leases_apart(v_chunks, v_epochs, false, p_policy);
    END IF;
END
$$;

-- Ends sessions that did not close. Their processes may go on at any later time: a worker that is leased something from now on revokes them first
-- (adr/0017).
CREATE FUNCTION end_sessions(p_sessions bigint[]) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM sessions s WHERE s.id = ANY (p_sessions) RETURNING s.id, s.sinks, s.draining
    ), old AS (
        DELETE FROM drained_sessions d WHERE d.ended_at < statement_timestamp() - interval '30 days'
    ), drained AS (
        INSERT INTO drained_sessions (session_id) SELECT g.id FROM gone g WHERE g.draining
    )
    INSERT INTO revocations (sink, session_id) SELECT DISTINCT sink, g.id FROM gone g, unnest(g.sinks) AS sink ON CONFLICT DO NOTHING
$$;

-- Ends expired sessions and takes back what they held, except for leases of groups whose own data raise an error (`stuck`). A session row that
-- another sweeper has locked is left to it.
CREATE FUNCTION sweep_sessions(p_limit integer, p_policy policy) RETURNS TABLE (sessions bigint, leases bigint, stuck text[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_sessions bigint[];
    v_killed bigint[];
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    SELECT array_agg(dead.id) INTO v_sessions FROM (
        SELECT s.id FROM sessions s WHERE s.expires_at < statement_timestamp()
        ORDER BY s.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) AS dead;
    SELECT coalesce(array_agg(s.id), '{}') INTO v_killed FROM sessions s WHERE s.id = ANY (v_sessions) AND s.killed;
    PERFORM end_sessions(v_sessions);
    -- Leases whose session is gone, however it ended.
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id);
    sessions := coalesce(array_length(v_sessions, 1), 0);
    leases := 0;
    stuck := '{}';
    IF v_chunks IS NOT NULL THEN
        SELECT * INTO v_chunks, v_epochs FROM lock_leases(v_chunks, v_epochs);
    END IF;
    IF v_chunks IS NOT NULL THEN
        SELECT r.count, r.stuck INTO leases, stuck FROM return_leases_apart(v_chunks, v_epochs, true, p_policy, v_killed) AS r;
    END IF;
    RETURN NEXT;
END
$$;

-- A heartbeat proves that a process lives, not that a transfer moves: leases without progress for p_stall are taken back too.
CREATE FUNCTION sweep_stalled(p_stall interval, p_limit integer, p_policy policy, OUT leases bigint, OUT stuck text[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    leases := 0;
    stuck := '{}';
    SELECT array_agg(s.chunk_id), array_agg(s.epoch) INTO v_chunks, v_epochs FROM (
        -- Copying and verifying a very large file may be silent for long; it gets 36 times as long.
        SELECT chunk_id, epoch FROM leases
        WHERE progress_at < statement_timestamp() - p_stall * CASE WHEN kind = 'finalize' THEN 36 ELSE 1 END LIMIT p_limit
    ) AS s;
    IF v_chunks IS NULL THEN RETURN; END IF;
    SELECT * INTO v_chunks, v_epochs FROM lock_leases(v_chunks, v_epochs);
    IF v_chunks IS NULL THEN RETURN; END IF;
    SELECT r.count, r.stuck INTO leases, stuck FROM return_leases_apart(v_chunks, v_epochs, true, p_policy) AS r;
END
$$;

-- Takes back chunks that are much slower than their peers (row 32): a fetch lease that is older than p_age, whose bytes came at less than a fifth of
-- the median speed of at least two others that get on, of the same task or else of the same origin, and that would need longer than p_age still. A
-- third of p_age is enough if another mirror of its task has been five times as fast, or is idle and was never asked, so that its speed is not known.
-- The chunk goes to another worker, and to another source if that may serve it. It is moved three times at the most, so that it does not go round for
-- ever if every place is slow. Later writes of its holder reach no file: the task is fenced (I8). Streams stay, since they can't be resumed in the
-- middle, and so do leases that bring all of a file which may be served once (row 22). Returns how many there were.
CREATE FUNCTION sweep_slow(p_age interval, p_limit integer, p_policy policy) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    WITH speed AS MATERIALIZED (
        SELECT l.chunk_id, l.epoch, l.task_id, l.origin_id, l.source, l.moves, l.last - l.durable AS bytes_left, l.first, l.last,
            statement_timestamp() - l.granted_at AS age,
            (l.durable - l.resume) / greatest(0.001, extract(epoch FROM statement_timestamp() - l.granted_at)::double precision)
                AS speed
        FROM leases l WHERE l.kind = 'fetch'
    ), slow AS MATERIALIZED (
        SELECT s.*, t.version, t.mixes
        FROM speed s JOIN tasks t ON t.id = s.task_id AND t.rung = 'chunks' JOIN origins o ON o.id = s.origin_id
        WHERE s.moves < 3 AND s.age >= p_age / 3 AND s.bytes_left > s.speed * extract(epoch FROM p_age)
            AND (o.serves_again OR t.mirrors > 1 OR s.first > 0 OR s.last < t.size)
    ), sibling AS (
        -- The median of all leases that get on, the slow lease included: beside at least two others, it does not move the median much.
        SELECT task_id, count(*) AS count, percentile_cont(0.5) WITHIN GROUP (ORDER BY speed) AS median
        FROM speed WHERE speed > 0 AND EXISTS (SELECT 1 FROM slow) GROUP BY 1
    ), neighbour AS (
        SELECT origin_id, count(*) AS count, percentile_cont(0.5) WITHIN GROUP (ORDER BY speed) AS median
        FROM speed WHERE speed > 0 AND EXISTS (SELECT 1 FROM slow) GROUP BY 1
    ), mirror AS (
        SELECT s.chunk_id, max(CASE WHEN r.busy_ms > 0 THEN r.bytes * 1000 / r.busy_ms::double precision
            WHEN r.failures = 0 AND h.source IS NULL THEN 'Infinity' END) AS speed
        FROM slow s
        JOIN sources r ON r.task_id = s.task_id AND r.ordinal <> s.source AND NOT r.dead AND r.differs_in IS DISTINCT FROM s.version
        LEFT JOIN (SELECT DISTINCT task_id, source FROM leases) AS h ON h.task_id = r.task_id AND h.source = r.ordinal
        WHERE s.mixes GROUP BY 1
    )
    SELECT array_agg(x.chunk_id), array_agg(x.epoch) INTO v_chunks, v_epochs FROM (
        SELECT s.chunk_id, s.epoch
        FROM slow s
        LEFT JOIN sibling b ON b.task_id = s.task_id
        LEFT JOIN neighbour n ON n.origin_id = s.origin_id
        LEFT JOIN mirror m ON m.chunk_id = s.chunk_id
        WHERE s.speed < m.speed / 5 OR s.age >= p_age AND s.speed < CASE WHEN b.count - (s.speed > 0)::integer >= 2 THEN b.median
            WHEN n.count - (s.speed > 0)::integer >= 2 THEN n.median END / 5
        ORDER BY s.chunk_id LIMIT p_limit
    ) AS x;
    IF v_chunks IS NULL THEN RETURN 0; END IF;

    -- Some may be gone by now, or be held by another session: the epoch tells.
    SELECT * INTO v_chunks, v_epochs FROM lock_leases(v_chunks, v_epochs);
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    UPDATE tasks t SET fenced = true FROM leases l WHERE l.chunk_id = ANY (v_chunks) AND t.id = l.task_id;
    PERFORM hold_out_leases(v_chunks, v_epochs);
    PERFORM return_leases_apart(v_chunks, v_epochs, false, p_policy);
    UPDATE ready_chunks c
    SET moves = c.moves + 1, source = coalesce(n.ordinal, c.source), origin_id = coalesce(n.origin_id, c.origin_id)
    FROM ready_chunks r
    JOIN tasks t ON t.id = r.task_id
    LEFT JOIN LATERAL (
        -- A source that was never asked, or the fastest of the others, as far as that is known.
        SELECT s.ordinal, coalesce(s.fresh_origin_id, s.origin_id) AS origin_id FROM sources s
        WHERE s.task_id = t.id AND s.ordinal <> r.source AND t.mixes AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version
        ORDER BY s.busy_ms = 0 AND s.failures = 0 DESC, s.bytes::double precision / nullif(s.busy_ms, 0) DESC NULLS LAST, s.ordinal
        LIMIT 1
    ) AS n ON true
    WHERE c.id = ANY (v_chunks) AND r.id = c.id;
    RETURN cardinality(v_chunks);
END
$$;
