-- How groups share what is fetched (adr/0008): within a priority by bytes, in proportion to their weights. A group is charged for a lease
-- when it is granted, by what the lease can bring, and the charge is set right when the lease ends, by what it brought.

-- Makes the service of groups of one sink comparable to that of the others of their priority. The caller holds their locks.
CREATE FUNCTION level_groups(p_groups bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- A group that returns from idle joins at the lowest service level: no credit, no penalty. Charges of the others for bytes that are still to come
    -- do not count: where sizes are unknown, they may be far too high.
    IF EXISTS (SELECT 1 FROM groups g WHERE g.id = ANY (p_groups) AND g.shares_at IS DISTINCT FROM g.priority) THEN
        UPDATE groups g
        SET shares_at = g.priority,
            served = CASE WHEN g.shares_at IS NULL THEN greatest(g.served, l.served) ELSE l.served END
        FROM (
            SELECT priority, coalesce(
                min(served - pending_charge(id) / weight) FILTER (WHERE shares_at = priority), shared_level(min(sink), priority),
                max(served)) AS served
            FROM groups WHERE id = ANY (p_groups) GROUP BY 1
        ) AS l
        WHERE g.id = ANY (p_groups) AND g.priority = l.priority AND g.shares_at IS DISTINCT FROM g.priority;
    END IF;

    -- A group that could not be served for long, since an origin was busy or parked, is not owed all of that: the gap between a group and the next
    -- one is at most one large chunk (256 MiB). All groups below such a gap move together, so that they stay fair to each other.
    UPDATE groups g SET served = g.served + f.shift
    FROM (
        SELECT id, sum(greatest(0, gap - 268435456)) OVER (PARTITION BY priority ORDER BY served DESC, id)::bigint AS shift
        FROM (
            SELECT id, priority, served,
                lag(served) OVER (PARTITION BY priority ORDER BY served DESC, id) - served AS gap
            FROM groups WHERE id = ANY (p_groups)
        ) AS places
    ) AS f
    WHERE has_id(g.id, f.id) AND f.shift > 0;
END
$$;

-- The lowest service level of the groups that share in a sink at a priority now; NULL if there is none.
CREATE FUNCTION shared_level(p_sink text, p_priority integer) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT g.served - pending_charge(g.id) / g.weight FROM groups g
    WHERE g.sink = p_sink AND g.priority = p_priority AND g.shares_at = p_priority AND g.state IN ('open', 'sealed')
    ORDER BY g.served LIMIT 1
$$;

-- A group's charge for bytes of its leases that are still to come.
CREATE FUNCTION pending_charge(p_group bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(greatest(0, l.charged - byte_charge(l.durable - l.resume))), 0)::bigint
    FROM leases l WHERE l.group_id = p_group AND l.kind = 'fetch'
$$;

-- Forgets the service level of groups that have nothing to lease while those of p_groups go on: what a group does not ask for is not
-- owed to it. Groups that another transaction has locked are left for the next time.
CREATE FUNCTION unlevel_groups(p_groups bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE groups u SET shares_at = NULL
    FROM (
        SELECT g.id FROM groups g
        JOIN (
            SELECT sink, priority, min(served) AS served FROM groups WHERE id = ANY (p_groups) GROUP BY 1, 2
        ) AS l ON g.sink = l.sink AND g.priority = l.priority AND g.served < l.served
        WHERE g.state IN ('open', 'sealed') AND g.shares_at IS NOT NULL AND g.id <> ALL (p_groups)
            AND (NOT group_may_run(g)
                OR (SELECT c.id FROM ready_chunks c WHERE c.group_id = g.id AND c.status = 'ready' AND c.origin_id > 0 LIMIT 1) IS NULL
                AND (SELECT l.chunk_id FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0 LIMIT 1) IS NULL)
        FOR NO KEY UPDATE OF g SKIP LOCKED
    ) AS idle
    WHERE has_id(u.id, idle.id);
END
$$;

-- The turns of groups in one round, the least served first: how many leases each wants (`want`) and what they may bring in bytes
-- (`allowance`; NULL where no other group competes). p_left leases are free. The groups are filled up to the level at which the k least
-- served ones use all that is free; the lowest such level is the right one, since any further group only takes from it. A turn is an eighth of what
-- is free at least (adr/0008): with a thousand groups, turns of one lease each would make a claim pay for each of them.
CREATE FUNCTION group_turns(p_hungry bigint[], p_left integer) RETURNS TABLE (
    id bigint, name text, max_connections integer, mean bigint, rate bigint, mixes boolean, want integer, allowance double precision
)
LANGUAGE sql STABLE AS $$
    SELECT f.id, f.name, f.max_connections, f.mean, f.rate, f.mixes, least(p_left, ceil(t.size / f.cost))::integer,
        CASE WHEN f.others > 0 THEN t.size * f.weight END
    FROM (
        SELECT p.*, min((p_left + p.ahead_sum) / p.chunks_sum) OVER () AS level
        FROM (
            SELECT h.*, sum(h.ahead / h.cost) OVER w AS ahead_sum, sum(1 / h.cost) OVER w AS chunks_sum
            FROM (
                SELECT g.id, g.name, g.weight, g.max_connections, mean_size(g) AS mean, group_rate(g) AS rate,
                    (g.served - min(g.served) OVER ())::double precision AS ahead,
                    count(*) OVER () - 1 AS others,
                    coalesce((
                        SELECT chunk_charge(c.first, c.last, c.resume, mean_size(g)) FROM ready_chunks c
                        WHERE c.group_id = g.id AND c.origin_id > 0 AND c.status = 'ready'
                        ORDER BY c.origin_id, c.rank, c.id LIMIT 1
                    ), byte_charge(0))::double precision / g.weight AS cost,
                    (SELECT t.id FROM tasks t
                        WHERE t.group_id = g.id AND t.mixes AND t.state = 'queued' LIMIT 1) IS NOT NULL AS mixes
                FROM groups g WHERE g.id = ANY (p_hungry)
            ) AS h
            WINDOW w AS (ORDER BY h.ahead, h.id)
        ) AS p
    ) AS f
    CROSS JOIN LATERAL (SELECT greatest(f.level - f.ahead, ceil(p_left / 8.0) * f.cost) AS size) AS t
    WHERE f.ahead < f.level ORDER BY f.ahead, f.id
$$;

-- The charge for bytes: at least that of a request (16 KiB), so that empty files don't go first for ever (I15).
CREATE FUNCTION byte_charge(p_bytes bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(16384, p_bytes)
$$;

-- The charge for a lease on a chunk: the bytes that it can bring. p_mean is the mean size of the group's files, given if the chunk is the first one
-- of a file of unknown size. Without it, the charge is all of the chunk, or 8 MiB of a stream.
CREATE FUNCTION chunk_charge(p_first bigint, p_last bigint, p_resume bigint, p_mean bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT byte_charge(coalesce(least(p_last, p_mean), p_first + 8388608) - p_resume)
$$;

-- The mean size of a group's files, as far as sizes are known; NULL where all are, or none is.
CREATE FUNCTION mean_size(g groups) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN g.unknown_tasks > 0
        THEN g.bytes_total / nullif(g.remaining + g.succeeded + g.failed - g.unknown_tasks, 0) END
$$;

-- Corrects the charges of groups for leases on tasks that are taken back now, by the bytes that are durable. The caller holds the locks of the
-- groups.
CREATE FUNCTION settle_charges(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE groups g SET served = g.served + n.charge / g.weight
    FROM (
        SELECT group_id, sum(byte_charge(durable - resume) - charged)::bigint AS charge
        FROM leases WHERE task_id = ANY (p_tasks) AND kind = 'fetch' GROUP BY 1
    ) AS n
    WHERE has_id(g.id, n.group_id) AND n.charge <> 0;
END
$$;

-- Leases one chunk to each session that has a slot to spare, and has been granted nothing: all its slots are taken by transfers that last long, which
-- may not be given up (I19). Trials come first: they take a moment, and once an origin has served a file twice, its transfers give way to others. Then
-- a group gets a connection to an origin to which it has none.
CREATE FUNCTION grant_spare(c claim, p_sessions bigint[]) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_for text;
BEGIN
    FOREACH v_for IN ARRAY ARRAY['trials', 'newcomers'] LOOP
        c.spare := v_for;
        c.slots := ARRAY(
            SELECT s.id FROM sessions s
            WHERE s.id = ANY (p_sessions) AND c.sink = ANY (s.sinks) AND c.sink <> ALL (s.parked) AND c.sink <> ALL (s.full_sinks) AND NOT EXISTS (
                SELECT 1 FROM leases l WHERE l.session_id = s.id AND l.chunk_id = ANY (c.granted))
            ORDER BY s.id);
        c.openings := c.slots;
        c := grant_to_groups(c);
    END LOOP;
    c.spare := NULL;
    RETURN c;
END
$$;

-- Whether a group may take slots of a claim: any group may, but slots to spare are for those with a trial, or with work at an origin to which they have
-- no connection.
CREATE FUNCTION may_take(g groups, p_spare text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE p_spare
        WHEN 'trials' THEN EXISTS (SELECT 1 FROM ready_chunks r WHERE r.group_id = g.id AND r.status = 'ready' AND r.kind = 'trial')
        WHEN 'newcomers' THEN EXISTS (
            SELECT 1 FROM ready_origins(g.id) AS r (id)
            WHERE r.id > 0 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.origin_id = r.id AND l.lane > 0))
        ELSE true END
$$;
