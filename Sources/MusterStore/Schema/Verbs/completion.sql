-- Completion: what ends tasks, and what makes a group terminal.

-- Files are at their paths (I8): deletes the leases, finishes the tasks, counts them, writes their events and closes the groups, in one transaction
-- (I6, I7).
CREATE FUNCTION report_contents(p_contents content[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    v_groups bigint[];
BEGIN
    PERFORM lock_groups_of(ARRAY(SELECT chunk_id FROM unnest(p_contents)));
    WITH finished AS MATERIALIZED (
        SELECT (d.task).*, d.refused_with, d.was, d.size_before, d.more, d.came, d.brought, d.done_by, d.origin_id, d.served_by, d.charged, d.granted_at
        FROM finish_tasks(p_contents) AS d
    ), swept AS (
        DELETE FROM done_chunks d USING finished f WHERE has_id(d.task_id, f.id) AND f.was = 'finalizing'
    ), served AS (
        UPDATE sources s SET bytes = s.bytes + f.brought, busy_ms = s.busy_ms + busy_ms(f.granted_at)
        FROM finished f WHERE f.mirrors > 1 AND f.done_by = 'fetch' AND has_id(s.task_id, f.id) AND s.ordinal = f.served_by
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes, answers, forgave, group_id, granted_at)
        SELECT origin_id, sum(came), count(*), refused_with, group_id, max(granted_at)
        FROM finished WHERE done_by = 'fetch' AND origin_id > 0 GROUP BY 1, 4, 5
    ), late AS (
        -- A worker that lost a lease may have made or shared a part after the file was put in place, whether it still runs or not.
        INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, sink, version, rank, status)
        SELECT 'purge', f.id, 0, 0, f.sink, f.version, chunk_rank('purge', 0, false), purge_status(f.id) FROM finished f WHERE f.fenced
    ), unasked AS (
        DELETE FROM ready_chunks c USING finished t WHERE c.kind = 'resolve' AND has_id(c.task_id, t.id)
    ), unheard AS (
        DELETE FROM leases l USING finished t WHERE l.kind = 'resolve' AND has_id(l.task_id, t.id)
    ), counted AS MATERIALIZED (
        UPDATE groups g
        SET queued = g.queued - n.queued, finalizing = g.finalizing - n.finalizing, succeeded = g.succeeded + n.count,
            bytes_done = g.bytes_done + n.more, bytes_total = g.bytes_total + n.grown,
            unknown_tasks = g.unknown_tasks - n.unknown,
            rate_bytes = flowed(g.rate_bytes, g.rate_at, n.came), rate_at = statement_timestamp(),
            served = g.served + n.charge / g.weight
        FROM (
            SELECT group_id, count(*) AS count, sum((was = 'queued')::integer) AS queued,
                sum((was = 'finalizing')::integer) AS finalizing, sum(more)::bigint AS more, sum(came)::bigint AS came,
                sum(size - coalesce(size_before, 0))::bigint AS grown, sum((size_before IS NULL)::integer) AS unknown,
                sum(CASE WHEN done_by = 'fetch' THEN byte_charge(brought) - charged ELSE 0 END)::bigint AS charge
            FROM finished GROUP BY 1
        ) AS n
        WHERE has_id(g.id, n.group_id)
        RETURNING g.id, g.name, g.remaining
    ), said AS (
        INSERT INTO pending_events (id, type, subject, data)
        SELECT 'tsk-' || f.id || '-' || f.run || '-succeeded', 'dev.muster.task.succeeded.v1', 'groups/' || c.name,
            jsonb_build_object('group', c.name, 'key', f.key, 'path', f.path, 'size', f.size, 'digests', f.digests,
                'contentVersion', f.version, 'metadata', f.metadata)
                || CASE WHEN f.reused_from IS NULL THEN '{}' ELSE jsonb_build_object('reusedFrom', f.reused_from) END
        FROM finished f JOIN counted c ON c.id = f.group_id
    )
    SELECT array_agg(id) INTO v_groups FROM counted WHERE remaining = 0;
    IF v_groups IS NOT NULL THEN
        PERFORM close_groups(v_groups);
    END IF;
END
$$;

-- Ends the leases of files that are at their paths, and finishes their tasks. Returns for each what the counts of groups, origins and sources need:
-- how many bytes are new (`more`), how many of them came from an origin just now (`came`), and what its lease brought (`brought`).
CREATE FUNCTION finish_tasks(p_contents content[]) RETURNS TABLE (
    task tasks, refused_with integer, was text, size_before bigint, more bigint, came bigint, brought bigint, done_by text, origin_id bigint,
    served_by integer, charged bigint, granted_at timestamptz
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH taken AS MATERIALIZED (
        DELETE FROM leases l USING unnest(p_contents) AS u
        WHERE has_id(l.chunk_id, u.chunk_id) AND l.epoch = u.epoch AND l.session_id IS NOT DISTINCT FROM u.session_id
            -- A fetch lease ends with a file only if it covers all of it.
            AND (l.kind = 'finalize' OR l.kind = 'fetch' AND (
                SELECT NOT t.planned OR l.first = 0 AND l.last IS NOT DISTINCT FROM t.size FROM tasks t WHERE t.id = l.task_id))
        RETURNING l.task_id, l.kind, l.origin_id, l.source, l.first, l.resume, l.durable, l.charged, l.granted_at, u.size,
            u.digests, u.etag, u.last_modified, u.date_strong, u.url, u.path, u.stated, u.crc, u.reused,
            u.reused IS NOT NULL OR u.unasked IS TRUE AS is_had, u.unasked IS TRUE AS unasked
    )
    UPDATE tasks t
    SET state = 'succeeded', planned = true, size = d.size, chunks_left = 0, bytes_done = d.size,
        digests = d.digests, etag = coalesce(d.etag, t.etag), last_modified = coalesce(d.last_modified, t.last_modified),
        stated_digests = coalesce(d.stated, t.stated_digests), effective_url = coalesce(d.url, t.effective_url),
        source = coalesce(t.source, CASE WHEN d.kind = 'fetch' THEN d.source END), path = coalesce(d.path, t.path),
        named = t.named OR d.path <> t.path IS TRUE, date_strong = coalesce(d.date_strong, t.date_strong),
        content_crc = d.crc, reused_from = d.reused,
        -- A file can be reused if the first source can be asked about it, and its content can be checked.
        reuse_key = CASE
            WHEN d.crc IS NOT NULL AND d.size > 0
                AND coalesce(t.source, CASE WHEN d.kind = 'fetch' THEN d.source END) = 0
                AND (coalesce(d.etag, t.etag) IS NOT NULL OR coalesce(d.date_strong, t.date_strong)
                    AND coalesce(d.last_modified, t.last_modified) IS NOT NULL)
            THEN t.reuse_key
        END,
        started_at = coalesce(t.started_at, d.granted_at), finished_at = statement_timestamp(),
        failure_kind = NULL, failure_detail = NULL, failure_at = NULL, failure_status = NULL, failure_source = NULL, failure_request = NULL
    FROM taken d JOIN tasks before ON has_id(before.id, d.task_id)
    WHERE has_id(t.id, d.task_id) AND t.state IN ('queued', 'finalizing')
    RETURNING t,
        CASE WHEN before.failure_status IN (400, 403, 404) AND before.failure_source = d.source THEN before.failure_status END,
        before.state, before.size,
        CASE WHEN d.kind = 'finalize' THEN 0 ELSE d.size - (d.durable - d.first) END,
        -- Bytes that the sink had already came from no origin, and take nothing from other groups.
        CASE WHEN d.kind = 'finalize' OR d.is_had THEN 0 ELSE d.size - (d.durable - d.first) END,
        CASE WHEN d.is_had THEN 0 ELSE d.size - d.resume END,
        d.kind, CASE WHEN d.unasked THEN 0 ELSE d.origin_id END, d.source, d.charged, d.granted_at;
END
$$;

-- Fails a task that is not terminal. Its chunks are kept, but can't be leased until it is retried or cancelled. The event names the answer that
-- caused the failure, if the task recorded that failure last. p_reported is the chunk whose holder has reported the failure; NULL if no holder has.
CREATE FUNCTION fail_task(p_task bigint, p_kind text, p_detail text, p_reported bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_group_name text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task FOR NO KEY UPDATE;
    IF t.state IN ('succeeded', 'failed', 'cancelled') THEN RETURN; END IF;
    -- A deadline keeps the details of the last failure, which `overdue_detail` quotes.
    IF p_kind <> 'deadline' AND (t.failure_kind IS DISTINCT FROM p_kind OR t.failure_detail IS DISTINCT FROM p_detail) THEN
        t.failure_status := NULL;
        t.failure_source := NULL;
        t.failure_request := NULL;
    END IF;
    PERFORM park_chunks(ARRAY[p_task], p_reported);
    UPDATE tasks
    SET state = 'failed', failure_kind = p_kind, failure_detail = p_detail, failure_at = statement_timestamp(),
        failure_status = t.failure_status, failure_source = t.failure_source, failure_request = t.failure_request,
        finished_at = statement_timestamp()
    WHERE id = p_task;
    UPDATE groups
    SET queued = queued - (t.state = 'queued')::integer, paused = paused - (t.state = 'paused')::integer, finalizing = finalizing - (t.state = 'finalizing')::integer,
        failed = failed + 1, unknown_tasks = unknown_tasks - (t.size IS NULL)::integer
    WHERE id = t.group_id
    RETURNING name INTO v_group_name;
    PERFORM write_event('tsk-' || p_task || '-' || t.run || '-failed', 'dev.muster.task.failed.v1', v_group_name,
        jsonb_build_object('group', v_group_name, 'key', t.key, 'path', t.path,
            'failure', jsonb_build_object('kind', p_kind, 'detail', p_detail) || jsonb_strip_nulls(jsonb_build_object(
                'status', t.failure_status, 'requestID', t.failure_request,
                'source', (SELECT s.url FROM sources s WHERE s.task_id = p_task AND s.ordinal = t.failure_source)))));
    PERFORM close_groups(ARRAY[t.group_id]);
END
$$;

-- The zero test (I7). Every verb that may have made a group complete calls it with the locks of the groups held: finishing, failing, cancelling,
-- removing, sealing and letting it begin alike. A group that waits for others completes only by being cancelled, or by its deadline. A group whose
-- deadline passed before it was complete has failed, even if all its tasks have succeeded: more might have come. Prerequisites on a group that has
-- completed are marked in the same transaction; `release_groups` lets them begin, since their locks would be out of order here.
CREATE FUNCTION close_groups(p_groups bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH closed AS (
        UPDATE groups g
        SET state = CASE WHEN g.desired = 'cancel' THEN 'cancelled'
                WHEN g.failed > 0 OR g.held OR g.overdue AND g.deadline_action = 'fail' THEN 'failed'
                ELSE 'succeeded' END,
            -- It no longer shares: if it is retried, or opened for more, it joins at the lowest service level (`level_groups`).
            finished_at = statement_timestamp(), shares_at = NULL
        WHERE g.id = ANY (p_groups) AND g.state = 'sealed' AND g.remaining = 0 AND NOT is_removing(g)
            AND (NOT g.held OR g.desired = 'cancel' OR g.overdue AND g.deadline_action = 'fail')
        RETURNING g.*
    ), untried AS (
        DELETE FROM ready_chunks c USING closed g WHERE has_id(c.group_id, g.id) AND c.kind = 'trial' AND c.status = 'ready'
    )
    INSERT INTO pending_events (id, type, subject, data)
    SELECT 'grp-' || id || '-' || generation || '-' || state,
        'dev.muster.group.' || state || '.v1',
        'groups/' || name,
        jsonb_build_object(
            'group', name, 'generation', generation, 'state', state, 'sink', sink, 'metadata', metadata,
            'tasks', jsonb_build_object(
                'total', succeeded + failed, 'succeeded', succeeded, 'failed', failed, 'cancelled', cancelled),
            'bytes', jsonb_build_object('done', bytes_done, 'total', greatest(bytes_total, bytes_done)))
    FROM closed;

    UPDATE group_prerequisites r SET satisfied_at = statement_timestamp()
    FROM groups g
    WHERE r.prerequisite_id = ANY (p_groups) AND r.satisfied_at IS NULL AND g.id = r.prerequisite_id
        AND satisfies(g.state, r.condition);
END
$$;

-- Writes an event. The same fact always has the same id: written twice, it is logged once (I9).
CREATE FUNCTION write_event(p_id text, p_type text, p_group_name text, p_data jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_events (id, type, subject, data)
    VALUES (p_id, p_type, 'groups/' || p_group_name, p_data);
END
$$;
