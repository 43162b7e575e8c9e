-- How a group's lanes are shared among its origins, and which chunks an origin may take from others (row 30).

-- The tasks of a group whose chunks may go to any of their sources and of which something is ready: 16 at the most, so that a claim
-- stays cheap however many there are. The oldest tasks come first and make room for others as they finish.
CREATE FUNCTION pullable_tasks(p_group bigint) RETURNS TABLE (task_id bigint, version integer)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.version FROM tasks t
    -- Not EXISTS, which a plan may turn into a scan of all chunks first.
    WHERE t.group_id = p_group AND t.mixes AND t.state = 'queued' AND (
        SELECT c.id FROM ready_chunks c
        WHERE c.task_id = t.id AND is_ready(c.status) AND c.kind = 'fetch' AND c.attempts = 0 AND c.moves = 0 LIMIT 1) IS NOT NULL
    ORDER BY t.id LIMIT 16
$$;

-- The sources of these tasks that may serve the content version (row 30), the first one of each origin. A source whose fresh URL is
-- being asked for is left out: it would refuse.
CREATE FUNCTION pull_sources(p_group bigint) RETURNS TABLE (
    task_id bigint, origin_id bigint, source integer, bytes bigint, busy_ms bigint
)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (t.task_id, coalesce(s.fresh_origin_id, s.origin_id))
        t.task_id, coalesce(s.fresh_origin_id, s.origin_id), s.ordinal, s.bytes, s.busy_ms
    FROM pullable_tasks(p_group) AS t
    CROSS JOIN sources_of(t.task_id) AS s
    WHERE NOT s.dead AND s.differs_in IS DISTINCT FROM t.version AND NOT EXISTS (
            SELECT 1 FROM ready_chunks q WHERE q.task_id = t.task_id AND q.kind = 'resolve' AND q.source = s.ordinal)
        AND NOT EXISTS (SELECT 1 FROM leases q WHERE q.task_id = t.task_id AND q.kind = 'resolve' AND q.source = s.ordinal)
    ORDER BY t.task_id, coalesce(s.fresh_origin_id, s.origin_id), s.ordinal
$$;

-- Shares the lanes that a group may open among its origins, the one with the fewest lanes of the group first: an origin that is slow or silent takes no
-- slot while another one waits for it with fewer (I19). Where many lanes are opened at once, some 16 origins have their turn. If chunks may be fetched
-- from any of their sources, an origin whose connections carry half as much as the fastest one's counts as twice as full, so that the slowest is used
-- least. An origin of unknown speed counts as fast, so that its speed becomes known. An origin without a share has a turn all the same if leases can
-- wait in its lanes. p_except are origins that have nothing more to take.
CREATE FUNCTION shared_turns(c claim, p_except bigint[])
RETURNS TABLE (origin_id bigint, turn bigint, share integer)
LANGUAGE sql STABLE AS $$
    WITH room AS (
        SELECT least(cardinality(c.openings), c.room) AS room
    ), candidate AS (
        SELECT r.origin_id, sum(r.bytes)::double precision / nullif(sum(r.busy_ms), 0) AS speed
        FROM (
            SELECT origin_id, 0 AS bytes, 0 AS busy_ms FROM ready_origins(c.group_id) AS own (origin_id) WHERE origin_id > 0
            UNION ALL SELECT origin_id, bytes, busy_ms FROM pull_sources(c.group_id) WHERE c.mixes
        ) AS r
        WHERE r.origin_id <> ALL (p_except)
        GROUP BY 1
    ), weighed AS MATERIALIZED (
        SELECT origin_id, CASE WHEN speed IS NULL THEN 1
            ELSE greatest(1, least(8, max(speed) OVER () / greatest(speed, 0.001))) END AS slowness
        FROM candidate
    ), usable AS MATERIALIZED (
        SELECT o.id, o.rate_bytes, w.slowness, f.free, b.own, is_unresponsive(o)::integer AS silent
        FROM weighed w
        JOIN unnest(c.origins, c.free) AS f (id, free) ON f.id = w.origin_id
        JOIN origins o ON o.id = w.origin_id AND is_awake(o) AND may_try(o, c.group_id) AND NOT rests_alone(o, c.group_id)
        CROSS JOIN LATERAL (
            SELECT count(DISTINCT (l.session_id, l.lane))::integer AS own FROM leases l
            WHERE l.origin_id = o.id AND l.group_id = c.group_id
        ) AS b
        WHERE b.own = 0 OR c.spare IS DISTINCT FROM 'newcomers'
    ), place AS (
        SELECT u.id, row_number() OVER (
            ORDER BY CASE WHEN c.mixes THEN k * u.slowness ELSE (k - 1) / greatest(1, r.room / 16) + u.silent END, u.rate_bytes DESC, u.id, k) AS n
        FROM usable u CROSS JOIN room r CROSS JOIN generate_series(u.own + 1, u.own + least(r.room, u.free)) AS k
    ), part AS (
        SELECT p.id, min(p.n) AS turn, count(*)::integer AS share FROM place p, room r WHERE p.n <= r.room GROUP BY 1
    )
    SELECT u.id, coalesce(p.turn, r.room + 1), coalesce(p.share, 0)
    FROM usable u LEFT JOIN part p USING (id) CROSS JOIN room r
    WHERE p.share > 0 OR NOT c.mixes AND cardinality(c.slots) > cardinality(c.openings) AND has_queue(u.id, c.slots, NULL)
$$;

-- Moves ready chunks of other origins to an origin, as far as it has less than p_want of its own. A chunk that failed or was taken away
-- somewhere stays where it was put. The caller holds the locks of the group and of the origin.
CREATE FUNCTION pull_chunks(p_group bigint, p_origin bigint, p_want integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH picked AS MATERIALIZED (
        SELECT c.id, s.source
        FROM pull_sources(p_group) AS s
        JOIN ready_chunks c ON c.task_id = s.task_id AND c.kind = 'fetch' AND is_ready(c.status) AND c.origin_id <> p_origin
            AND c.attempts = 0 AND c.moves = 0
        WHERE s.origin_id = p_origin
        LIMIT p_want - (
            SELECT count(*) FROM (
                SELECT 1 FROM ready_chunks
                WHERE group_id = p_group AND origin_id = p_origin AND status = 'ready' LIMIT p_want
            ) AS own)
        FOR UPDATE OF c SKIP LOCKED
    )
    UPDATE ready_chunks c SET source = p.source, origin_id = p_origin FROM picked p WHERE has_id(c.id, p.id);
END
$$;

-- The source that a chunk goes on with after a source that failed: the next one that may serve this content version, in a circle. NULL
-- if there is none. p_stays prefers the same source.
CREATE FUNCTION next_source(t tasks, p_source integer, p_stays boolean) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT s.ordinal FROM sources s
        WHERE s.task_id = t.id AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version
        ORDER BY p_stays AND s.ordinal <> p_source, s.ordinal <= p_source, s.ordinal LIMIT 1);
END
$$;

-- How many sources the tries of a task's chunks go round: those that are not given up, and are not known to have other content than its version.
CREATE FUNCTION live_sources(t tasks) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF t.mirrors = 1 THEN RETURN 1; END IF;
    RETURN (
        SELECT greatest(count(*), 1) FROM sources s WHERE s.task_id = t.id AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version);
END
$$;

-- A bound of tries per source, multiplied by the number of sources; NULL for no bound, which `least` would ignore.
CREATE FUNCTION for_each(p_tries integer, p_sources integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT least(p_tries::bigint * p_sources, 2147483647)::integer $$;

-- Multiplies the bounds of tries of a failed fetch by the sources that its tries go round: each source has as many tries as the only source of
-- another task (I12).
CREATE FUNCTION going_round(f failure, l leases, t tasks) RETURNS failure
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF l.kind = 'fetch' THEN
        f.sources := live_sources(t);
        f.max_attempts := for_each(f.max_attempts, f.sources);
        f.unreached_attempts := for_each(f.unreached_attempts, f.sources);
    END IF;
    RETURN f;
END
$$;

-- Gives a source up. Returns the tries of the chunk that are left to count; NULL if no source is left. The tries of the source were not those of the
-- others: each chunk has as many less as it had at one of the sources. When no source is left, those that refused the file are asked once more.
CREATE FUNCTION give_up_source(l leases, p_source integer, f failure, p_attempts integer) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sources SET dead = true, refused_with = coalesce(refused_with, CASE WHEN l.durable = 0 AND f.status BETWEEN 400 AND 499 THEN f.status END)
    WHERE task_id = l.task_id AND ordinal = p_source AND NOT dead;
    IF FOUND AND f.sources > 1 THEN
        p_attempts := p_attempts - p_attempts / f.sources;
        UPDATE ready_chunks SET attempts = attempts - attempts / f.sources WHERE task_id = l.task_id AND kind = 'fetch' AND attempts >= f.sources;
        UPDATE leases SET attempts = attempts - attempts / f.sources WHERE task_id = l.task_id AND kind = 'fetch' AND attempts >= f.sources;
    END IF;
    IF EXISTS (SELECT 1 FROM sources WHERE task_id = l.task_id AND NOT dead) THEN RETURN p_attempts; END IF;
    RETURN CASE WHEN ask_once_more(l, p_source) THEN 0 END;
END
$$;

-- Makes the sources usable again that refused a file with a status which may be a limit, each of them once: the file was not kept waiting for them as
-- long as another source was left (row 24). They serve others, as far as is known, and no three files were refused so for good. Returns whether there
-- are any.
CREATE FUNCTION ask_once_more(l leases, p_source integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sources s SET dead = false, asked_again = true
    FROM origins o
    WHERE s.task_id = l.task_id AND s.ordinal <> p_source AND s.dead AND NOT s.asked_again AND s.refused_with IS NOT NULL
        AND o.id = coalesce(s.fresh_origin_id, s.origin_id)
        AND (has_served_lately(o.id) OR EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = o.id AND h.task_id <> l.task_id))
        AND NOT is_believed(o, s.refused_with);
    RETURN FOUND;
END
$$;

-- Whether a source is asked once more: then no other one is the better remedy.
CREATE FUNCTION is_asked_again(p_task bigint, p_source integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT s.asked_again FROM sources s WHERE s.task_id = p_task AND s.ordinal = p_source), false);
END
$$;

-- A mirror has other content than this version, or gives no parts of it (row 30): it is skipped for this version, and its chunks go to the other
-- mirrors with the bytes that they have. Returns NULL if no other mirror is left: then the task starts over with this one.
CREATE FUNCTION leave_mirror(l leases, t tasks, p_source integer, p_policy policy) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE sources SET differs_in = t.version WHERE task_id = t.id AND ordinal = p_source;
    v_next := next_source(t, p_source, false);
    IF v_next IS NULL THEN RETURN NULL; END IF;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, p_policy);
    PERFORM move_chunks(t.id, p_source, v_next);
    RETURN 'nextSource';
END
$$;

-- There is no room for the size that a source states: the next source is asked at once, since it may state another size. The task does not go
-- back to the skipped sources as long as the next one states no size. Returns NULL after the last source: from then on all sources are asked again.
CREATE FUNCTION ask_for_size(l leases, t tasks, f failure) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer := next_source(t, l.source, false);
BEGIN
    IF v_next IS NULL OR v_next <= l.source THEN
        UPDATE sources SET differs_in = NULL WHERE task_id = t.id AND differs_in = t.version;
        RETURN NULL;
    END IF;
    UPDATE sources SET differs_in = t.version WHERE task_id = t.id AND ordinal = l.source;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
    PERFORM move_chunks(t.id, l.source, v_next);
    RETURN 'nextSource';
END
$$;

-- Moves chunks of files without any answer yet from origins that rest for longer than a second to the next of their sources whose origin does not
-- rest. Each call checks p_limit chunks of each such origin, and the next call those behind them. Returns how many have moved.
CREATE FUNCTION leave_resting_origins(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_chunks bigint[];
    v_groups bigint[];
    v_moved bigint;
BEGIN
    WITH resting AS (
        SELECT o.id, o.looked_up_to FROM origins o WHERE o.not_before > statement_timestamp() + interval '1 s'
    ), looked AS MATERIALIZED (
        SELECT r.id AS origin_id, c.id, c.group_id
        FROM resting r CROSS JOIN LATERAL (
            SELECT c.id, c.group_id FROM ready_chunks c
            WHERE c.origin_id = r.id AND c.may_move AND c.status = 'ready' AND c.id > r.looked_up_to ORDER BY c.id LIMIT p_limit) AS c
    ), turned AS (
        -- Usually there are fewer chunks than p_limit, and nothing is written.
        UPDATE origins o SET looked_up_to = n.last
        FROM (
            SELECT r.id, CASE WHEN count(l.id) = p_limit THEN max(l.id) ELSE 0 END AS last
            FROM resting r LEFT JOIN looked l ON l.origin_id = r.id GROUP BY 1
        ) AS n
        WHERE o.id = n.id AND o.looked_up_to <> n.last
    )
    SELECT array_agg(l.id), array_agg(DISTINCT l.group_id) INTO v_chunks, v_groups FROM looked l;
    IF v_chunks IS NULL THEN RETURN 0; END IF;
    v_groups := lock_free_groups(v_groups);
    WITH picked AS MATERIALIZED (
        SELECT c.id, s.ordinal, s.origin_id
        FROM ready_chunks c
        JOIN tasks t ON t.id = c.task_id AND NOT t.planned
        CROSS JOIN LATERAL (
            SELECT s.ordinal, o.id AS origin_id
            FROM sources s JOIN origins o ON o.id = coalesce(s.fresh_origin_id, s.origin_id)
            WHERE s.task_id = t.id AND NOT s.dead AND s.differs_in IS DISTINCT FROM t.version AND NOT is_resting(o)
            ORDER BY s.ordinal <= c.source, s.ordinal LIMIT 1
        ) AS s
        WHERE c.id = ANY (v_chunks) AND c.group_id = ANY (v_groups) AND c.status = 'ready' AND c.kind = 'fetch'
        FOR UPDATE OF c SKIP LOCKED
    )
    UPDATE ready_chunks c SET source = p.ordinal, origin_id = p.origin_id FROM picked p WHERE has_id(c.id, p.id);
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    RETURN v_moved;
END
$$;

-- Hands the chunks of one source that are not leased to another source.
CREATE FUNCTION move_chunks(p_task bigint, p_from integer, p_to integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ready_chunks c SET source = s.ordinal, origin_id = coalesce(s.fresh_origin_id, s.origin_id)
    FROM sources s
    WHERE c.task_id = p_task AND c.kind = 'fetch' AND c.source = p_from AND s.task_id = p_task AND s.ordinal = p_to;
END
$$;
