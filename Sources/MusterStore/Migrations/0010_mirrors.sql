-- Which chunks an origin may take from others, and how a group's room is shared among its mirrors (http.md row 30).

-- The tasks of a group whose chunks may go to any of their sources and of which something is ready: no more than so many,
-- so that a claim stays cheap however many there are. Those come first that were added first, and make room for others as
-- they finish.
CREATE FUNCTION pullable_tasks(p_group bigint) RETURNS TABLE (task_id bigint, version integer)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.version FROM tasks t
    WHERE t.group_id = p_group AND t.mixes AND t.state IN ('queued', 'active') AND EXISTS (
        SELECT 1 FROM ready_chunks c
        WHERE c.task_id = t.id AND c.status = 'ready' AND c.kind = 'fetch' AND c.attempts = 0 AND c.moves = 0)
    ORDER BY t.id LIMIT 16
$$;

-- Their sources that will do for the content version (http.md row 30), by origin: the first one of each. One whose fresh
-- URL is being asked for would only refuse.
CREATE FUNCTION pull_sources(p_group bigint) RETURNS TABLE (
    task_id bigint, origin_id bigint, source integer, bytes bigint, busy_ms bigint
)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (t.task_id, coalesce(s.fresh_origin_id, s.origin_id))
        t.task_id, coalesce(s.fresh_origin_id, s.origin_id), s.ordinal, s.bytes, s.busy_ms
    FROM pullable_tasks(p_group) AS t
    JOIN sources s ON s.task_id = t.task_id AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version
    WHERE NOT EXISTS (
            SELECT 1 FROM ready_chunks q WHERE q.task_id = t.task_id AND q.kind = 'resolve' AND q.source = s.ordinal)
        AND NOT EXISTS (SELECT 1 FROM leases q WHERE q.task_id = t.task_id AND q.kind = 'resolve' AND q.source = s.ordinal)
    ORDER BY t.task_id, coalesce(s.fresh_origin_id, s.origin_id), s.ordinal
$$;

-- Shares a group's room among the origins that its chunks may be fetched from, where they may be fetched from several: a
-- place for every lease that could be granted, the emptiest origin's first. An origin whose connections carry half as much
-- as the fastest one's counts as twice as full, so that the slowest is used least; one that nothing is known of counts as
-- fast, so that it is found out. p_except are origins that have nothing more to take.
CREATE FUNCTION mirror_turns(p_group bigint, p_room integer, p_origin_cap integer, p_locked bigint[], p_except bigint[])
RETURNS TABLE (origin_id bigint, turn bigint, share integer)
LANGUAGE sql STABLE AS $$
    WITH candidate AS (
        SELECT r.origin_id, sum(r.bytes)::double precision / nullif(sum(r.busy_ms), 0) AS speed
        FROM (
            SELECT origin_id, 0 AS bytes, 0 AS busy_ms FROM ready_origins(p_group) AS own (origin_id) WHERE origin_id > 0
            UNION ALL SELECT origin_id, bytes, busy_ms FROM pull_sources(p_group)
        ) AS r
        WHERE r.origin_id = ANY (p_locked) AND r.origin_id <> ALL (p_except)
        GROUP BY 1
    ), weighed AS MATERIALIZED (
        SELECT origin_id, CASE WHEN speed IS NULL THEN 1
            ELSE greatest(1, least(8, max(speed) OVER () / greatest(speed, 0.001))) END AS slowness
        FROM candidate
    ), place AS (
        SELECT w.origin_id, row_number() OVER (ORDER BY k * w.slowness, o.rate_bytes DESC, o.id, k) AS n
        FROM weighed w
        JOIN origins o ON o.id = w.origin_id AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
        CROSS JOIN LATERAL (
            SELECT count(*)::integer AS held, count(*) FILTER (WHERE l.group_id = p_group)::integer AS own
            FROM leases l WHERE l.origin_id = o.id
        ) AS b
        CROSS JOIN generate_series(b.own + 1, b.own + least(p_room, allowed_connections(o, p_origin_cap) - b.held)) AS k
    )
    SELECT origin_id, min(n), count(*)::integer FROM place WHERE n <= p_room GROUP BY 1
$$;

-- Makes ready chunks of other origins an origin's own, as far as that one has less than p_want of its own. A chunk that
-- failed or was taken away somewhere before is left where it was put. The caller holds the locks of the group and of the
-- origin.
CREATE FUNCTION pull_chunks(p_group bigint, p_origin bigint, p_want integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH picked AS MATERIALIZED (
        SELECT c.id, s.source
        FROM pull_sources(p_group) AS s
        JOIN ready_chunks c ON c.task_id = s.task_id AND c.kind = 'fetch' AND c.status = 'ready' AND c.origin_id <> p_origin
            AND c.attempts = 0 AND c.moves = 0
        WHERE s.origin_id = p_origin
        LIMIT p_want - (
            SELECT count(*) FROM (
                SELECT 1 FROM ready_chunks
                WHERE group_id = p_group AND origin_id = p_origin AND status = 'ready' LIMIT p_want
            ) AS own)
        FOR UPDATE OF c SKIP LOCKED
    )
    UPDATE ready_chunks c SET source = p.source, origin_id = p_origin FROM picked p WHERE c.id = p.id;
END
$$;
