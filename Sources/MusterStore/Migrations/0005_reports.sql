-- What workers report. Every function matches (chunk, epoch, session), all three: a report under an old epoch changes nothing
-- (I1), and one that is repeated changes nothing the second time.

-- Renews the session by its newest sync; no row when the session is over. An old sync that arrives late renews nothing and
-- supersedes nothing. In the same round trip the two sides compare what is held:
-- * `repaired` leases were granted in a sync that is settled, but the session does not hold them: the answer was lost, nobody
--   ever wrote under them, they go back;
-- * `lost` are places in p_held, from 1, of leases that are not the session's any more.
-- A loss of this commit means a shorter life of the session or one more repair, so it does not wait for the disk.
CREATE FUNCTION sync_session(
    p_session bigint, p_sequence bigint, p_ttl interval, p_parked text[], p_status jsonb, p_received bigint,
    p_settled bigint, p_held_chunks bigint[], p_held_epochs bigint[], p_first_chunk bigint, p_deaths integer
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
        parked = CASE WHEN p_sequence > s.sequence THEN p_parked ELSE s.parked END,
        sink_status = CASE WHEN p_sequence > s.sequence THEN p_status ELSE s.sink_status END,
        rate_bytes = decayed(s.rate_bytes, s.rate_at, p_received),
        rate_at = statement_timestamp()
    WHERE s.id = p_session
    RETURNING s.sequence = p_sequence, s.draining INTO is_newest, is_draining;
    IF NOT FOUND THEN RETURN; END IF;

    repaired := 0;
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l WHERE l.session_id = p_session AND l.sync <= p_settled AND l.epoch <> ALL (p_held_epochs);
    IF is_newest AND v_chunks IS NOT NULL THEN
        PERFORM lock_groups_of(v_chunks);
        repaired := return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
    END IF;
    SELECT array_agg(h.place::integer) INTO lost
    FROM unnest(p_held_chunks, p_held_epochs) WITH ORDINALITY AS h (chunk_id, epoch, place)
    LEFT JOIN leases l ON l.chunk_id = h.chunk_id AND l.epoch = h.epoch AND l.session_id = p_session
    WHERE l.chunk_id IS NULL;
    RETURN NEXT;
END
$$;

-- Ends a session whose worker says that all its writes have stopped.
CREATE FUNCTION close_session(p_session bigint, p_first_chunk bigint, p_deaths integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    DELETE FROM sessions WHERE id = p_session;
    SELECT array_agg(chunk_id), array_agg(epoch) INTO v_chunks, v_epochs FROM leases WHERE session_id = p_session;
    IF v_chunks IS NOT NULL THEN
        PERFORM lock_groups_of(v_chunks);
        PERFORM return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
    END IF;
END
$$;

-- Moves durable offsets forward (I4). A loss of this commit means a re-download of some bytes, so it does not wait for the disk.
-- Returns the position (from 1) of every report whose lease is not there.
CREATE FUNCTION report_progress(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_offsets bigint[], p_crcs bigint[])
RETURNS SETOF integer
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM lock_groups_of(p_chunks);
    RETURN QUERY
    WITH said AS MATERIALIZED (
        SELECT * FROM unnest(p_sessions, p_chunks, p_epochs, p_offsets, p_crcs) WITH ORDINALITY
            AS u (session_id, chunk_id, epoch, durable, crc, n)
    ), furthest AS MATERIALIZED (
        -- A batch may hold several reports about one lease, such as a sync and its repetition: the furthest one counts.
        SELECT DISTINCT ON (s.chunk_id) s.*
        FROM said s JOIN leases l ON l.chunk_id = s.chunk_id AND l.epoch = s.epoch AND l.session_id = s.session_id
        WHERE l.last IS NULL OR s.durable <= l.last ORDER BY s.chunk_id, s.durable DESC
    ), moved AS (
        UPDATE leases l
        SET durable = greatest(l.durable, s.durable), crc = CASE WHEN s.durable > l.durable THEN s.crc ELSE l.crc END,
            progress_at = statement_timestamp()
        FROM furthest s JOIN leases before ON before.chunk_id = s.chunk_id
        WHERE l.chunk_id = s.chunk_id AND l.epoch = s.epoch AND l.session_id = s.session_id
        RETURNING l.chunk_id, l.epoch, l.session_id, l.last, l.group_id, l.kind, l.durable - before.durable AS more
    ), counted AS (
        UPDATE groups g
        SET bytes_done = g.bytes_done + n.more, rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more),
            rate_at = statement_timestamp()
        FROM (SELECT group_id, sum(more)::bigint AS more FROM moved WHERE kind = 'fetch' GROUP BY 1) AS n
        WHERE g.id = n.group_id AND n.more > 0
    )
    SELECT s.n::integer FROM said s WHERE NOT EXISTS (
        SELECT 1 FROM moved m
        WHERE m.chunk_id = s.chunk_id AND m.epoch = s.epoch AND m.session_id = s.session_id
            AND (m.last IS NULL OR s.durable <= m.last));
END
$$;

-- The first response to a task: its size and validators, and the plan of the rest. Returns whether the lease is still there.
CREATE FUNCTION report_learned(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_size bigint, p_etag text, p_last_modified text, p_url text,
    p_splittable boolean, p_chunk_size bigint
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_more bigint := 0;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    IF NOT FOUND THEN RETURN false; END IF;
    SELECT * INTO t FROM tasks WHERE id = l.task_id FOR NO KEY UPDATE;
    IF t.planned THEN RETURN true; END IF;

    IF p_splittable AND p_size > l.last THEN
        -- The chunks tile [0, size): this one, and the rest from its end on (I3).
        INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank)
        SELECT t.id, t.group_id, l.origin_id, l.source, t.sink, t.version, start, least(start + p_chunk_size, p_size), start,
            chunk_rank('fetch', t.priority, false)
        FROM generate_series(l.last, p_size - 1, p_chunk_size) AS start;
        GET DIAGNOSTICS v_more = ROW_COUNT;
    ELSE
        UPDATE leases SET last = p_size WHERE chunk_id = p_chunk;
    END IF;
    UPDATE tasks
    SET planned = true, stream = stream OR NOT p_splittable, size = p_size, etag = p_etag, last_modified = p_last_modified,
        effective_url = p_url, chunks_left = 1 + v_more
    WHERE id = t.id;
    UPDATE groups
    SET bytes_total = bytes_total + coalesce(p_size, 0) - coalesce(t.size, 0),
        unknown_tasks = unknown_tasks - (t.size IS NULL AND p_size IS NOT NULL)::integer
            + (t.size IS NOT NULL AND p_size IS NULL)::integer
    WHERE id = t.group_id;
    RETURN true;
END
$$;

-- Chunks that are durable to their end. The last one of a task makes it ready to be finalized.
CREATE FUNCTION report_done(p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_crcs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_groups_of(p_chunks);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_sessions, p_chunks, p_epochs, p_crcs) AS u (session_id, chunk_id, epoch, crc)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id
            AND (l.kind = 'purge' OR l.kind = 'fetch' AND EXISTS (
                SELECT 1 FROM tasks t WHERE t.id = l.task_id AND t.planned AND t.size IS NOT NULL))
        RETURNING l.*, u.crc AS done_crc
    ), fetched AS MATERIALIZED (
        SELECT * FROM taken WHERE kind = 'fetch'
    ), recorded AS (
        INSERT INTO done_chunks (task_id, version, first, last, crc)
        SELECT task_id, version, first, last, done_crc FROM fetched
    ), touched AS MATERIALIZED (
        UPDATE tasks t
        SET chunks_left = t.chunks_left - n.count, leases = t.leases - n.count, bytes_done = t.bytes_done + n.bytes,
            state = CASE WHEN t.chunks_left = n.count THEN 'finalizing' WHEN t.leases = n.count THEN 'queued' ELSE t.state END
        FROM (SELECT task_id, count(*)::integer AS count, sum(last - first)::bigint AS bytes FROM fetched GROUP BY 1) AS n
        WHERE t.id = n.task_id
        RETURNING t.*
    ), wanted AS (
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, first, last, rank)
        SELECT 'finalize', id, group_id, 0, sink, version, 0, size, chunk_rank('finalize', priority, false)
        FROM touched WHERE state = 'finalizing'
    )
    UPDATE groups g
    SET active = g.active - n.left_active, queued = g.queued + n.queued, finalizing = g.finalizing + n.finalizing,
        bytes_done = g.bytes_done + n.more, rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more),
        rate_at = statement_timestamp()
    FROM (
        SELECT group_id, sum(left_active) AS left_active, sum(queued) AS queued, sum(finalizing) AS finalizing,
            sum(more)::bigint AS more
        FROM (
            SELECT group_id, (state <> 'active')::integer AS left_active, (state = 'queued')::integer AS queued,
                (state = 'finalizing')::integer AS finalizing, 0 AS more
            FROM touched
            UNION ALL SELECT group_id, 0, 0, 0, last - durable FROM fetched
        ) AS parts
        GROUP BY 1
    ) AS n
    WHERE g.id = n.group_id;
END
$$;

-- Files that stand at their paths (I8). Deletes the lease, finishes the task, counts it, writes its event and closes the group
-- in one transaction (I6, I7).
CREATE FUNCTION report_finished(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_sizes bigint[], p_digests jsonb[],
    p_etags text[], p_last_modified text[], p_urls text[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
BEGIN
    PERFORM lock_groups_of(p_chunks);
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l
        USING unnest(p_sessions, p_chunks, p_epochs, p_sizes, p_digests, p_etags, p_last_modified, p_urls)
            AS u (session_id, chunk_id, epoch, size, digests, etag, last_modified, url)
        WHERE l.chunk_id = u.chunk_id AND l.epoch = u.epoch AND l.session_id = u.session_id
            -- A fetch lease ends with a file only if it covers all of it.
            AND (l.kind = 'finalize' OR l.kind = 'fetch' AND EXISTS (
                SELECT 1 FROM tasks t WHERE t.id = l.task_id
                    AND (NOT t.planned OR l.first = 0 AND l.last IS NOT DISTINCT FROM t.size)))
        RETURNING l.task_id, l.kind, l.first, l.durable, u.size, u.digests, u.etag, u.last_modified, u.url
    ), finished AS MATERIALIZED (
        UPDATE tasks t
        SET state = 'succeeded', planned = true, size = f.size, chunks_left = 0, leases = 0, bytes_done = f.size,
            digests = f.digests, etag = coalesce(f.etag, t.etag), last_modified = coalesce(f.last_modified, t.last_modified),
            effective_url = coalesce(f.url, t.effective_url), finished_at = statement_timestamp(),
            failure_kind = NULL, failure_detail = NULL, failure_at = NULL
        FROM taken f JOIN tasks before ON before.id = f.task_id
        WHERE t.id = f.task_id AND t.state IN ('active', 'finalizing')
        RETURNING t.*, before.state AS was, before.size AS size_before,
            CASE WHEN f.kind = 'finalize' THEN 0 ELSE f.size - (f.durable - f.first) END AS more
    ), swept AS (
        DELETE FROM done_chunks d USING finished f WHERE d.task_id = f.id AND f.was = 'finalizing'
    ), counted AS MATERIALIZED (
        UPDATE groups g
        SET active = g.active - n.active, finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded + n.count,
            bytes_done = g.bytes_done + n.more, bytes_total = g.bytes_total + n.grown,
            unknown_tasks = g.unknown_tasks - n.unknown,
            rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more), rate_at = statement_timestamp()
        FROM (
            SELECT group_id, count(*) AS count, sum((was = 'active')::integer) AS active,
                sum((was = 'finalizing')::integer) AS finalizing, sum(more)::bigint AS more,
                sum(size - coalesce(size_before, 0))::bigint AS grown, sum((size_before IS NULL)::integer) AS unknown
            FROM finished GROUP BY 1
        ) AS n
        WHERE g.id = n.group_id
        RETURNING g.id, g.name, g.remaining
    ), said AS (
        INSERT INTO events (id, type, subject, data)
        SELECT 'tsk-' || f.id || '-' || f.run || '-succeeded', 'dev.muster.task.succeeded.v1', 'groups/' || c.name,
            jsonb_build_object('group', c.name, 'key', f.key, 'path', f.path, 'size', f.size, 'digests', f.digests,
                'contentVersion', f.version, 'metadata', f.metadata)
        FROM finished f JOIN counted c ON c.id = f.group_id
        ON CONFLICT (id) DO NOTHING
    )
    SELECT array_agg(id) INTO v_groups FROM counted WHERE remaining = 0;
    IF v_groups IS NOT NULL THEN
        PERFORM close_groups(v_groups);
    END IF;
END
$$;

-- Leases given back by their holder, who has stopped writing.
CREATE FUNCTION report_released(
    p_session bigint, p_chunks bigint[], p_epochs bigint[], p_offsets bigint[], p_crcs bigint[], p_first_chunk bigint,
    p_deaths integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_epochs bigint[];
BEGIN
    PERFORM report_progress(array_fill(p_session, ARRAY[array_length(p_chunks, 1)]), p_chunks, p_epochs, p_offsets, p_crcs);
    PERFORM set_config('synchronous_commit', 'on', true);
    SELECT array_agg(l.chunk_id), array_agg(l.epoch) INTO v_chunks, v_epochs
    FROM leases l JOIN unnest(p_chunks, p_epochs) AS u (chunk_id, epoch) ON l.chunk_id = u.chunk_id AND l.epoch = u.epoch
    WHERE l.session_id = p_session;
    IF v_chunks IS NOT NULL THEN
        PERFORM return_leases(v_chunks, v_epochs, false, p_first_chunk, p_deaths);
    END IF;
END
$$;

-- A lease that could not be fulfilled. p_rule is the retry rule of the failure's kind; p_random within [0, 1) sets the jitter.
CREATE FUNCTION report_failed(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_offset bigint, p_crc bigint, p_rule text, p_kind text, p_detail text,
    p_source integer, p_retry_after bigint, p_random double precision, p_first_chunk bigint, p_max_attempts integer,
    p_max_restarts integer, p_deaths integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_attempts integer;
    v_chunk bigint;
    v_source integer;
    v_origin bigint;
    v_wait interval;
    v_group_name text;
BEGIN
    -- Origins come before groups in the order of locks.
    IF p_retry_after IS NOT NULL THEN
        PERFORM o.id FROM origins o
        WHERE o.id IN (SELECT held.origin_id FROM leases held WHERE held.chunk_id = p_chunk) FOR NO KEY UPDATE;
    END IF;
    PERFORM report_progress(ARRAY[p_session], ARRAY[p_chunk], ARRAY[p_epoch], ARRAY[p_offset], ARRAY[p_crc]);
    PERFORM set_config('synchronous_commit', 'on', true);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session;
    IF NOT FOUND THEN RETURN; END IF;
    IF l.kind = 'purge' THEN
        PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_first_chunk, p_deaths);
        UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + interval '10 s' WHERE id = p_chunk;
        RETURN;
    END IF;
    IF p_rule = 'returnChunk' THEN
        PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_first_chunk, p_deaths);
        RETURN;
    END IF;
    UPDATE tasks
    SET attempts = attempts + 1, failure_kind = p_kind, failure_detail = p_detail, failure_at = statement_timestamp()
    WHERE id = l.task_id RETURNING * INTO t;
    -- Progress clears the record (I12), but not that of a stream, whose progress is lost.
    v_attempts := CASE WHEN l.durable > l.resume AND NOT t.stream THEN 1 ELSE l.attempts + 1 END;

    -- An origin that says when to come back is left alone by the whole fleet, for an hour at the most.
    IF p_retry_after IS NOT NULL AND l.origin_id > 0 THEN
        UPDATE origins SET not_before = greatest(not_before, statement_timestamp()
            + least(3600, p_retry_after) * interval '1 s' * (1 + p_random / 10))
        WHERE id = l.origin_id;
    END IF;

    IF p_rule = 'giveUp' THEN
        PERFORM fail_task(t.id, p_kind, p_detail);
        RETURN;
    END IF;

    IF p_rule = 'startOver' THEN
        UPDATE tasks SET restarts = restarts + 1 WHERE id = t.id;
        SELECT name INTO v_group_name FROM groups WHERE id = t.group_id;
        v_chunk := start_over(t.id, t.stream, p_first_chunk, coalesce(p_source, l.source), 0, l.deaths);
        PERFORM write_event('tsk-' || t.id || '-' || t.version || '-changed', 'dev.muster.task.changed.v1', v_group_name,
            jsonb_build_object('group', v_group_name, 'key', t.key, 'path', t.path, 'contentVersion', t.version + 1,
                'reason', jsonb_build_object('kind', p_kind, 'detail', p_detail)));
        IF t.restarts + 1 >= p_max_restarts THEN
            PERFORM fail_task(t.id, p_kind, p_detail);
        END IF;
        RETURN;
    END IF;

    IF p_rule = 'nextSource' THEN
        UPDATE sources SET dead = true WHERE task_id = t.id AND ordinal = coalesce(p_source, l.source);
        IF NOT EXISTS (SELECT 1 FROM sources WHERE task_id = t.id AND NOT dead) THEN
            PERFORM fail_task(t.id, p_kind, p_detail);
            RETURN;
        END IF;
    END IF;
    -- Another source is no help to what fetches nothing: its tries are bounded whatever the rule (I12).
    IF (p_rule = 'retry' OR l.kind <> 'fetch') AND v_attempts >= p_max_attempts THEN
        PERFORM fail_task(t.id, p_kind, p_detail);
        RETURN;
    END IF;

    -- Back into the queue, at the next living source after the one that failed. Chunks of a planned task stay with their source
    -- for some tries: another mirror may state other validators, and then all of the task would start over.
    PERFORM return_leases(ARRAY[p_chunk], ARRAY[p_epoch], false, p_first_chunk, p_deaths);
    IF l.kind <> 'fetch' THEN
        UPDATE ready_chunks SET attempts = v_attempts, status = 'waiting', not_before = statement_timestamp() + interval '1 s'
        WHERE id = p_chunk;
        RETURN;
    END IF;
    SELECT s.ordinal, s.origin_id INTO v_source, v_origin FROM sources s
    WHERE s.task_id = t.id AND NOT s.dead
    ORDER BY t.planned AND NOT t.stream AND v_attempts < 3 AND s.ordinal <> l.source, s.ordinal <= l.source, s.ordinal LIMIT 1;
    IF v_source <> l.source AND t.planned AND NOT t.stream AND t.expected_digests IS NULL
        AND (t.etag IS NULL OR t.etag LIKE 'W/%')
    THEN
        -- Nothing would tell two mirrors' bytes apart, so they are not mixed (I8): the new source starts from the beginning.
        PERFORM start_over(t.id, false, p_first_chunk, v_source, v_attempts, l.deaths);
        RETURN;
    END IF;
    v_wait := CASE WHEN p_rule = 'retry' AND v_source <= l.source
        THEN least(300, power(2, least(v_attempts, 20) - 1)) * p_random * interval '1 s' ELSE interval '0' END;
    UPDATE ready_chunks
    SET attempts = v_attempts, source = v_source, origin_id = v_origin,
        status = CASE WHEN v_wait > interval '0' THEN 'waiting' ELSE 'ready' END,
        not_before = CASE WHEN v_wait > interval '0' THEN statement_timestamp() + v_wait END
    WHERE task_id = t.id AND (id = p_chunk OR t.stream AND kind = 'fetch');
END
$$;

-- Ranges don't work after all: the task starts over as one stream, as long as there are tries left.
CREATE FUNCTION report_restart(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_detail text, p_first_chunk bigint, p_max_attempts integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
BEGIN
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'fetch';
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE tasks SET attempts = attempts + 1, failure_kind = 'badRange', failure_detail = p_detail,
        failure_at = statement_timestamp()
    WHERE id = l.task_id RETURNING * INTO t;
    IF l.attempts + 1 >= p_max_attempts THEN
        PERFORM fail_task(t.id, 'badRange', p_detail);
    ELSE
        PERFORM start_over(t.id, true, p_first_chunk, l.source, l.attempts + 1, l.deaths);
    END IF;
END
$$;
