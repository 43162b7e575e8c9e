-- Lanes: leases wait ahead in a worker's queue, and connections keep to their caps all the same (I5, adr/0024).
--
-- A lane is one connection of a session to one origin, with the leases that are to use it one after the other. It exists as long as a lease is in it,
-- or a lease was taken from it whose holder has not said that it has let go. A claim opens lanes as far as caps go, and puts further leases into
-- lanes that the session has. Caps bound lanes; the worker runs one transfer of a lane at a time.
--
-- Functions that a claim calls and PostgreSQL does not inline are in plpgsql, which keeps their plans: a function in SQL is planned at each call,
-- which takes milliseconds for `usable_lanes`.

-- The lanes to an origin. It reads all of the origin's leases, which is cheaper than a leap from lane to lane: few wait in each.
CREATE FUNCTION lanes_to(p_origin bigint) RETURNS TABLE (session_id bigint, lane bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.session_id, l.lane FROM leases l WHERE l.origin_id = p_origin
    UNION SELECT h.session_id, h.lane FROM holdouts h WHERE h.origin_id = p_origin
$$;

-- The lanes that have leases of a group, whatever their origins.
CREATE FUNCTION lanes_of(p_group bigint) RETURNS TABLE (session_id bigint, lane bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.session_id, l.lane FROM leases l WHERE l.group_id = p_group AND l.origin_id > 0
    UNION SELECT h.session_id, h.lane FROM holdouts h WHERE h.group_id = p_group AND h.origin_id > 0
$$;

-- How many more lanes an origin may have; negative after its cap was made smaller. An origin that rests may have one lane that tries it. Lanes that
-- were open when it asked for the pause, and still run, do not count against that lane.
CREATE FUNCTION free_lanes(o origins, p_default integer) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_free integer := allowed_connections(o, p_default) - (SELECT count(*) FROM lanes_to(o.id))::integer;
BEGIN
    IF NOT is_resting(o) THEN RETURN v_free; END IF;
    RETURN least(v_free, 1 - (
        SELECT count(DISTINCT (l.session_id, l.lane)) FROM leases l
        WHERE l.origin_id = o.id AND l.granted_at > coalesce(o.refused_at, '-infinity'))::integer);
END
$$;

-- How many lanes more a group may have; NULL where nothing bounds them.
CREATE FUNCTION free_lanes_of(p_group bigint, p_cap integer) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN p_cap IS NOT NULL THEN p_cap - (SELECT count(*) FROM lanes_of(p_group))::integer END;
END
$$;

-- Whether these sessions have leases on an origin, of a group if one is given: further ones may wait behind those.
CREATE FUNCTION has_queue(p_origin bigint, p_sessions bigint[], p_group bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT (SELECT true FROM leases l
        WHERE l.origin_id = p_origin AND l.session_id = ANY (p_sessions) AND (p_group IS NULL OR l.group_id = p_group) LIMIT 1) IS NOT NULL
$$;

-- The places that a claim has for leases of its group on an origin: a session and a lane for each, in the order in which they are to be
-- filled. p_usable are the sessions that may have them, one for each lease; p_free is how many lanes may be opened for them (`opened`).
--
-- Lanes are opened first. Further leases of a session are spread over its lanes, the emptiest first. While another session that wants a lane to the
-- origin has none, sessions with more than their part of the lanes put nothing more into the surplus lanes, which then empty.
CREATE FUNCTION lane_places(c claim, p_origin bigint, p_usable bigint[], p_free integer)
RETURNS TABLE (sessions bigint[], lanes bigint[], opened integer)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    v_free integer := greatest(0, least(p_free, coalesce(free_lanes_of(c.group_id, c.group_cap), p_free)));
BEGIN
    SELECT coalesce(array_agg(u.id ORDER BY u.n), '{}'), coalesce(array_agg(nextval('lane_ids') ORDER BY u.n), '{}'), count(*)::integer
    INTO sessions, lanes, opened
    FROM (
        SELECT id, n FROM unnest(c.openings) WITH ORDINALITY AS u (id, n) WHERE id = ANY (p_usable) ORDER BY n LIMIT v_free
    ) AS u;
    IF c.mixes OR cardinality(c.slots) = cardinality(c.openings) OR (SELECT is_resting(o) FROM origins o WHERE o.id = p_origin) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT sessions || coalesce(array_agg(p.session_id ORDER BY p.depth, p.session_id, p.lane), '{}'),
        lanes || coalesce(array_agg(p.lane ORDER BY p.depth, p.session_id, p.lane), '{}')
    INTO sessions, lanes
    FROM (
        SELECT b.session_id, b.lane, b.depth + k AS depth, b.places,
            row_number() OVER (PARTITION BY b.session_id ORDER BY b.depth + k, b.lane) AS nth
        FROM (
            -- An even spread over all lanes of a session puts no more leases than this into any lane.
            SELECT l.*, u.places, max(l.depth) OVER s - l.depth + u.places / count(*) OVER s + 1 AS most
            FROM usable_lanes(c, p_origin, ARRAY(SELECT DISTINCT id FROM unnest(p_usable) AS id), sessions, lanes) AS l
            JOIN (
                SELECT id, count(*) - (SELECT count(*) FROM unnest(c.openings) AS o (id) WHERE o.id = n.id) AS places
                FROM unnest(p_usable) AS n (id) GROUP BY 1
            ) AS u ON u.id = l.session_id
            WINDOW s AS (PARTITION BY l.session_id)
        ) AS b
        -- The turn takes no more leases than it has room for, so that many places of each lane are enough.
        CROSS JOIN generate_series(1, least(b.places, b.most, c.room)) AS k
    ) AS p
    WHERE p.nth <= p.places;
    RETURN NEXT;
END
$$;

-- The lanes to an origin into which leases of a claim's group may be put, with how many leases are in them: those that the sessions have, and those
-- that are opened now. Lanes beyond what the origin or the group may have get nothing more, so that they empty. A group with a cap keeps to lanes
-- that have leases of it.
CREATE FUNCTION usable_lanes(c claim, p_origin bigint, p_usable bigint[], p_sessions bigint[], p_opened bigint[])
RETURNS TABLE (session_id bigint, lane bigint, depth bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH allowed AS (
        SELECT b.session_id, b.lane FROM lanes_to(p_origin) AS b
        ORDER BY b.lane LIMIT (SELECT greatest(0, allowed_connections(o, c.origin_cap)) FROM origins o WHERE o.id = p_origin)
    ), own AS (
        SELECT b.session_id, b.lane FROM lanes_of(c.group_id) AS b WHERE c.group_cap IS NOT NULL ORDER BY b.lane LIMIT c.group_cap
    ), lane AS (
        SELECT l.session_id, l.lane, count(*) AS depth
        FROM leases l JOIN allowed a ON a.session_id = l.session_id AND a.lane = l.lane
        WHERE l.origin_id = p_origin AND l.session_id = ANY (p_usable)
            AND (c.group_cap IS NULL OR EXISTS (SELECT 1 FROM own WHERE own.session_id = l.session_id AND own.lane = l.lane))
        GROUP BY 1, 2
        -- Nothing is put behind a lease that takes longer than 2 s, or into a lane that is to be given up.
        HAVING min(l.granted_at) > statement_timestamp() - interval '2 s' AND bool_and(l.shrink_to IS NULL)
        UNION ALL SELECT u.session_id, u.lane, 1 FROM unnest(p_sessions, p_opened) AS u (session_id, lane)
    ), part AS (
        SELECT CASE WHEN EXISTS (SELECT 1 FROM unnest(c.openings) AS o (id) WHERE o.id = ANY (p_usable) AND o.id NOT IN (SELECT session_id FROM lane))
            THEN greatest(1, (SELECT count(*) FROM lane) / (SELECT count(DISTINCT id) FROM unnest(p_usable) AS u (id))) END AS lanes
    )
    SELECT r.session_id, r.lane, r.depth
    FROM (SELECT l.*, row_number() OVER (PARTITION BY l.session_id ORDER BY l.lane) AS nth FROM lane l) AS r, part
    WHERE part.lanes IS NULL OR r.nth <= part.lanes;
END
$$;

-- Whether a lease is the one of its lane that has a connection, as far as the database can know: no earlier lease is in the lane.
CREATE FUNCTION heads_lane(l leases) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT l.lane = 0 OR NOT EXISTS (
        SELECT 1 FROM leases e WHERE e.session_id = l.session_id AND e.origin_id = l.origin_id AND e.lane = l.lane AND e.epoch < l.epoch)
$$;
