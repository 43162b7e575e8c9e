-- Moves connections to more urgent groups, and applies a smaller cap to running transfers (I5, I15, adr/0024).
--
-- The holder of a less urgent lease is asked to end its chunk where it is, as a straggler is asked to give its tail away (stragglers.sql): the bytes
-- that have come stay, the rest is ready again, and nothing is fetched twice. Leases that wait behind it in its lane come back unchanged, and so does
-- a lease of which nothing has come.

-- Asks for the lanes that are to be given up. Returns the sessions that are asked, once for each lease. p_origin_cap is the default cap of an origin.
-- Harmless beside another call: only one of them asks, since two would ask for twice as many lanes.
CREATE FUNCTION preempt(p_origin_cap integer) RETURNS SETOF bigint
LANGUAGE plpgsql
-- Planning takes longer than running, and the calls, once a second, are spread over the connections.
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_want record;
    v_asked bigint[];                   -- the sessions that are asked, once for each lease
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('muster.preempt')) THEN RETURN; END IF;
    FOR v_want IN SELECT * FROM surplus_lanes() LOOP
        RETURN QUERY SELECT ask_for_lanes(NULL, v_want.origin_id, v_want.group_id, NULL, v_want.lanes);
    END LOOP;
    FOR v_want IN SELECT * FROM silent_lanes(p_origin_cap) LOOP
        PERFORM o.id FROM origins o WHERE o.id = v_want.origin_id FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        v_asked := ARRAY(SELECT ask_for_lanes(NULL, v_want.origin_id, v_want.group_id, NULL, 1));
        UPDATE origins SET silent_at = statement_timestamp() WHERE id = v_want.origin_id AND v_asked <> '{}';
        RETURN QUERY SELECT unnest(v_asked);
    END LOOP;
    -- A group that is alone in its sink has no other group to take lanes from, or to give them to.
    IF NOT EXISTS (SELECT 1 FROM groups g WHERE g.state IN ('open', 'sealed') GROUP BY g.sink HAVING count(*) > 1) THEN RETURN; END IF;
    FOR v_want IN SELECT * FROM urgent_lanes(p_origin_cap) LOOP
        RETURN QUERY SELECT ask_for_lanes(v_want.sink, v_want.origin_id, NULL, v_want.priority, v_want.lanes);
    END LOOP;
    FOR v_want IN SELECT * FROM uneven_lanes(p_origin_cap) LOOP
        PERFORM g.id FROM groups g WHERE g.id = v_want.taker FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        v_asked := ARRAY(SELECT ask_for_lanes(NULL, v_want.origin_id, v_want.giver, NULL, v_want.lanes));
        CONTINUE WHEN v_asked = '{}';
        -- The refund that the giver gets when its chunks end sooner counts for the taker, or the next claim would give the lanes back to the giver. A
        -- taker that returns from idle joins no higher than `level_groups` allows: the giver's charges for bytes that are still to come may be far
        -- too high.
        UPDATE groups g
        SET served = least(l.level, CASE WHEN g.shares_at = g.priority THEN g.served ELSE shared_level(g.sink, g.priority) END), shares_at = g.priority
        FROM (SELECT h.served - least(cardinality(v_asked), v_want.lanes) * v_want.step AS level FROM groups h WHERE h.id = v_want.giver) AS l
        WHERE g.id = v_want.taker;
        RETURN QUERY SELECT unnest(v_asked);
    END LOOP;
END
$$;

-- Asks the holders of some lanes to give them up (see `preemptible_lanes`). Returns their sessions, once for each lease.
CREATE FUNCTION ask_for_lanes(p_sink text, p_origin bigint, p_group bigint, p_priority integer, p_limit bigint) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF p_limit <= 0 THEN RETURN; END IF;
    RETURN QUERY
    WITH lane AS MATERIALIZED (
        SELECT * FROM preemptible_lanes(p_sink, p_origin, p_group, p_priority, p_limit)
    ), held AS MATERIALIZED (
        SELECT b.chunk_id FROM leases b JOIN lane ON lane.session_id = b.session_id AND lane.lane = b.lane
        -- An empty chunk can't end sooner.
        WHERE b.kind = 'fetch' AND b.last IS DISTINCT FROM b.first FOR UPDATE OF b SKIP LOCKED
    )
    UPDATE leases l
    SET shrink_to = l.first, shrink_asked_at = statement_timestamp(), shrink_asks = least(l.shrink_asks + 1, 100)
    FROM held WHERE l.chunk_id = held.chunk_id
    RETURNING l.session_id;
END
$$;

-- The lanes beyond the caps of origins and of groups, after a cap was made smaller. A learned limit of an origin takes effect as its transfers end.
CREATE FUNCTION surplus_lanes() RETURNS TABLE (origin_id bigint, group_id bigint, lanes bigint)
LANGUAGE sql STABLE AS $$
    SELECT o.id, NULL::bigint, s.lanes - asked_lanes(o.id, NULL)
    FROM origins o CROSS JOIN LATERAL (SELECT count(*) - o.max_connections AS lanes FROM lanes_to(o.id)) AS s
    WHERE o.max_connections IS NOT NULL AND s.lanes > 0
    UNION ALL
    SELECT NULL, g.id, s.lanes - asked_lanes(NULL, g.id)
    FROM groups g CROSS JOIN LATERAL (SELECT -free_lanes_of(g.id, g.max_connections) AS lanes OFFSET 0) AS s
    WHERE g.max_connections IS NOT NULL AND g.state IN ('open', 'sealed') AND s.lanes > 0
$$;

-- The origins that have left a group's requests without an answer, while the group is at its cap and another origin has work for it and no lane (I19).
CREATE FUNCTION silent_lanes(p_origin_cap integer) RETURNS TABLE (origin_id bigint, group_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT s.origin_id, g.id
    FROM groups g
    CROSS JOIN LATERAL (
        SELECT count(*) AS origins FROM ready_origins(g.id) AS r (id) JOIN origins o ON o.id = r.id
        WHERE is_awake(o) AND NOT rests_alone(o, g.id) AND NOT is_unresponsive(o) AND free_lanes(o, p_origin_cap) > 0
            AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.origin_id = o.id)
        OFFSET 0
    ) AS neglected
    CROSS JOIN LATERAL (
        SELECT l.origin_id FROM leases l WHERE l.group_id = g.id AND l.lane > 0 GROUP BY 1
        HAVING bool_and(l.durable = l.resume AND l.granted_at < statement_timestamp() - interval '10 s')
        ORDER BY min(l.granted_at) LIMIT neglected.origins
    ) AS s
    WHERE g.max_connections IS NOT NULL AND g.state IN ('open', 'sealed') AND group_may_run(g) AND free_lanes_of(g.id, g.max_connections) <= 0
$$;

-- The lanes that groups have a use for, and that less urgent groups of their sink hold: on an origin that may have no more lanes, or on any origin if
-- no session has a slot free. Only the 32 most urgent groups are considered.
CREATE FUNCTION urgent_lanes(p_origin_cap integer)
RETURNS TABLE (sink text, origin_id bigint, priority integer, lanes bigint)
LANGUAGE sql STABLE AS $$
    SELECT g.sink, w.full_origin, g.priority,
        least(ready_on(g.id, w.id), free_lanes_of(g.id, g.max_connections), CASE WHEN w.full_origin IS NULL THEN w.free END)
            - asked_lanes(w.full_origin, NULL)
    FROM (
        SELECT u.* FROM groups u
        JOIN (
            SELECT b.sink, min(b.priority) AS priority FROM groups b WHERE b.state IN ('open', 'sealed') GROUP BY 1
        ) AS lowest ON lowest.sink = u.sink AND lowest.priority < u.priority
        WHERE u.state IN ('open', 'sealed') AND group_may_run(u)
            AND EXISTS (SELECT 1 FROM sessions s WHERE u.sink = ANY (s.sinks) AND u.sink <> ALL (s.parked) AND NOT s.draining)
            AND EXISTS (SELECT 1 FROM ready_chunks c WHERE c.group_id = u.id AND c.origin_id > 0 AND c.status = 'ready')
        ORDER BY u.priority DESC, u.served, u.id LIMIT 32
    ) AS g
    CROSS JOIN LATERAL (
        SELECT o.id, f.free, CASE WHEN f.free <= 0 THEN o.id END AS full_origin
        FROM ready_origins(g.id) AS r (id) JOIN origins o ON o.id = r.id
        CROSS JOIN LATERAL (SELECT free_lanes(o, p_origin_cap) AS free OFFSET 0) AS f
        WHERE is_awake(o) AND NOT rests_alone(o, g.id)
    ) AS w
    WHERE w.full_origin IS NOT NULL OR NOT has_free_slot(g.sink)
$$;

-- Whether a session that works in a sink has a slot free.
CREATE FUNCTION has_free_slot(p_sink text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM sessions s
        WHERE p_sink = ANY (s.sinks) AND p_sink <> ALL (s.parked) AND NOT s.draining AND s.slots > (
            SELECT count(DISTINCT l.lane) FILTER (WHERE l.lane > 0) + count(*) FILTER (WHERE l.lane = 0)
            FROM leases l WHERE l.session_id = s.id));
END
$$;

-- The lanes that are to go from one group (the giver) to another of the same priority (the taker), since their numbers are far from the groups' weights
-- and transfers take long: lanes of an origin that may have no more, or of any origin (NULL) if no session has a slot free. There is one pair for each
-- origin, and one for the slots of each sink. For each lane, the taker has to be at least `step` below the giver's level of service. The taker has had
-- no more bytes than the giver (adr/0008); charges for bytes that are still to come do not count. A giver with a byte budget is never ahead by bytes,
-- whatever lanes it fills while it waits for the budget.
CREATE FUNCTION uneven_lanes(p_origin_cap integer)
RETURNS TABLE (origin_id bigint, taker bigint, giver bigint, lanes bigint, step bigint)
LANGUAGE sql STABLE AS $$
    WITH asker AS MATERIALIZED (
        SELECT u.* FROM groups u
        WHERE u.state IN ('open', 'sealed') AND group_may_run(u) AND group_rate(u) IS NULL
            AND EXISTS (SELECT 1 FROM ready_chunks c WHERE c.group_id = u.id AND c.origin_id > 0 AND c.status = 'ready')
        ORDER BY u.priority DESC, u.served, u.id LIMIT 32
    ), room AS MATERIALIZED (
        SELECT k.sink, has_free_slot(k.sink) AS has_slot FROM (SELECT DISTINCT a.sink FROM asker a) AS k
    ), waiting AS MATERIALIZED (
        SELECT g.id, p.place, sum(ready_on(g.id, o.id))::bigint AS ready   -- a place is an origin, or 0 for slots
        FROM asker g JOIN room USING (sink)
        CROSS JOIN LATERAL ready_origins(g.id) AS r (id) JOIN origins o ON o.id = r.id
        CROSS JOIN LATERAL (SELECT CASE WHEN free_lanes(o, p_origin_cap) <= 0 THEN o.id WHEN NOT room.has_slot THEN 0 END AS place OFFSET 0) AS p
        WHERE p.place IS NOT NULL AND is_awake(o) AND NOT rests_alone(o, g.id)
            AND coalesce(free_lanes_of(g.id, g.max_connections) > 0, true) AND asked_lanes(nullif(p.place, 0), NULL, CASE WHEN p.place = 0 THEN g.sink END) = 0
        GROUP BY 1, 2
    ), held AS MATERIALIZED (
        SELECT w.place, l.group_id AS id, count(DISTINCT (l.session_id, l.lane)) AS lanes,
            sum(greatest(0, l.charged - byte_charge(l.durable - l.resume))) AS pending
        FROM (SELECT DISTINCT w.place FROM waiting w) AS w JOIN leases l ON w.place IN (0, l.origin_id) AND l.kind = 'fetch' GROUP BY 1, 2
    ), sharer AS (
        SELECT i.place, g.id, g.sink, g.priority, g.weight, g.served, g.shares_at, coalesce(h.lanes, 0) AS lanes,
            coalesce(h.pending, 0) AS pending, coalesce(w.ready, 0) AS ready, group_rate(g) IS NOT NULL AS is_limited,
            sum(coalesce(h.lanes, 0)) OVER same * g.weight / sum(g.weight) OVER same AS part
        FROM (SELECT w.place, w.id FROM waiting w UNION SELECT h.place, h.id FROM held h) AS i
        JOIN groups g ON g.id = i.id
        LEFT JOIN waiting w ON w.place = i.place AND w.id = i.id
        LEFT JOIN held h ON h.place = i.place AND h.id = i.id
        WINDOW same AS (PARTITION BY i.place, g.sink, g.priority)
    ), pair AS (
        SELECT DISTINCT ON (t.place, t.sink) t.place, t.id AS taker, h.id AS giver, t.weight,
            least(floor(t.part) - t.lanes, h.lanes - ceil(h.part), t.ready)::bigint AS lanes, h.pending / h.lanes / h.weight AS refund
        FROM sharer t JOIN sharer h ON h.place = t.place AND h.sink = t.sink AND h.priority = t.priority
        WHERE t.ready > 0 AND t.lanes < floor(t.part) AND h.lanes > ceil(h.part)
            AND (t.shares_at IS NULL OR h.is_limited OR t.served - t.pending / t.weight <= h.served - h.pending / h.weight)
        ORDER BY t.place, t.sink, floor(t.part) - t.lanes DESC, h.lanes - ceil(h.part) DESC, t.id, h.id
    )
    SELECT nullif(p.place, 0), p.taker, p.giver, p.lanes, (p.refund + next.charge::numeric / p.weight)::bigint
    FROM pair p
    CROSS JOIN LATERAL (
        SELECT chunk_charge(c.first, c.last, c.resume, NULL) AS charge FROM ready_chunks c
        WHERE c.group_id = p.taker AND c.origin_id > 0 AND p.place IN (0, c.origin_id) AND c.status = 'ready' ORDER BY c.rank, c.id LIMIT 1
    ) AS next
$$;

-- How many chunks of a group could be leased on an origin now; 256 at the most.
CREATE FUNCTION ready_on(p_group bigint, p_origin bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM (
        SELECT 1 FROM ready_chunks c WHERE c.group_id = p_group AND c.origin_id = p_origin AND c.status = 'ready' LIMIT 256
    ) AS c
$$;

-- How many lanes of an origin, of a group or of a sink are asked for already. A holder that has not answered for five seconds is not counted.
CREATE FUNCTION asked_lanes(p_origin bigint, p_group bigint, p_sink text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(DISTINCT (l.session_id, l.lane)) FROM leases l
        WHERE l.shrink_to < l.last AND l.shrink_asked_at > statement_timestamp() - interval '5 s'
            AND (p_origin IS NULL OR l.origin_id = p_origin) AND (p_group IS NULL OR l.group_id = p_group) AND (p_sink IS NULL OR l.sink = p_sink));
END
$$;

-- Lanes that can be given up, those of the least urgent groups first: of a sink, an origin or a group if one is given, and of groups below a priority
-- if one is given. Only lanes whose transfer others can resume, and which would take more than 2 s more; or whose file has brought nothing for three
-- seconds, or ten if the waiting group is no more urgent (60 for a lane of one origin whose URLs may work once), and twice as long each time.
CREATE FUNCTION preemptible_lanes(p_sink text, p_origin bigint, p_group bigint, p_priority integer, p_limit bigint)
RETURNS TABLE (session_id bigint, lane bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.session_id, l.lane
    FROM (
        SELECT g.* FROM groups g
        WHERE g.state IN ('open', 'sealed') AND (p_sink IS NULL OR g.sink = p_sink) AND (p_group IS NULL OR g.id = p_group)
            AND (p_priority IS NULL OR g.priority < p_priority)
            AND EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0)
    ) AS g
    JOIN leases l ON l.group_id = g.id
    JOIN tasks t ON t.id = l.task_id
    CROSS JOIN LATERAL lease_pace(l, g) AS p
    WHERE l.kind = 'fetch' AND l.lane > 0 AND (p_origin IS NULL OR l.origin_id = p_origin) AND heads_lane(l)
        AND l.shrink_to IS NULL
        AND CASE WHEN t.planned THEN t.rung = 'chunks' AND p.needs > 2
            ELSE l.durable = l.resume AND l.granted_at < statement_timestamp() - power(2, least(l.shrink_asks, 6)) * CASE
                WHEN p_priority IS NOT NULL THEN interval '3 s'
                WHEN p_origin IS NULL OR (SELECT o.serves_again FROM origins o WHERE o.id = l.origin_id) THEN interval '10 s' ELSE interval '60 s' END END
        -- A file that may be served once is fetched to its end, unless a more urgent group waits (row 22).
        AND (l.tile IS NULL OR p_priority IS NOT NULL OR (SELECT o.serves_again FROM origins o WHERE o.id = l.origin_id))
        -- A holder that could not shorten its chunk is asked less and less often.
        AND (l.shrink_asked_at IS NULL
            OR l.shrink_asked_at < statement_timestamp() - interval '3 s' * power(2, least(l.shrink_asks, 10)))
        AND (p_priority IS NULL OR NOT EXISTS (
            SELECT 1 FROM leases w JOIN groups u ON u.id = w.group_id
            WHERE w.session_id = l.session_id AND w.lane = l.lane AND u.priority >= p_priority))
    ORDER BY g.priority, l.tile IS NOT NULL, g.served DESC, l.granted_at DESC, l.chunk_id LIMIT p_limit
$$;
