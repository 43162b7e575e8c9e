-- What the fleet may do at an origin, what it has learned there, and how fast the origin is.

-- Whether an origin is to be left alone.
CREATE FUNCTION is_resting(o origins) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT o.not_before IS NOT NULL AND o.not_before > statement_timestamp()
$$;

-- Whether requests may be sent to an origin now, even if only by one lane that tries it (`may_try`).
CREATE FUNCTION is_awake(o origins) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT is_resting(o) OR o.try_at IS NOT NULL AND o.try_at <= statement_timestamp()
$$;

-- Whether a group may have the lane that tries an origin: after a refusal, another group that waits has it first. The origin may have meant the
-- refused group alone, as its token or its proxy.
CREATE FUNCTION may_try(o origins, p_group bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT is_resting(o) OR o.refused_group IS DISTINCT FROM p_group OR NOT others_wait(o.id, p_group);
END
$$;

-- Whether other groups have chunks that could be leased on an origin.
CREATE FUNCTION others_wait(p_origin bigint, p_group bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM groups g
        WHERE g.id <> p_group AND g.state IN ('open', 'sealed') AND group_may_run(g) AND EXISTS (
            SELECT 1 FROM ready_chunks c WHERE c.group_id = g.id AND c.origin_id = p_origin AND c.status = 'ready'));
END
$$;

-- Whether an origin's Retry-After means one group alone, as its token or its proxy: a lease of another group that was granted ten seconds or more after
-- the group was refused first brought something, and no lease of the group did. It holds for ten minutes after the group's last refusal.
CREATE FUNCTION is_meant_alone(o origins, p_group bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(o.alone_group = p_group AND o.alone_until > statement_timestamp() - interval '10 min', false)
$$;

-- Whether a group that is meant alone leaves the origin alone now.
CREATE FUNCTION rests_alone(o origins, p_group bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT coalesce(o.alone_group = p_group AND o.alone_until > statement_timestamp(), false) $$;

-- An origin says when to come back: the whole fleet leaves it alone until then, for an hour at the most (row 25). After ten seconds one lane at a
-- time tries it, since the origin may have meant one file. If it serves more than eight requests for each one that it refuses, it certainly means one
-- file, and only the refused chunk waits. So it does if another origin says so, to which redirects led. A group that is meant alone rests for 30 s at
-- the most, since nothing tries the origin for it. The caller has locked the origin.
CREATE FUNCTION heed_retry_after(l leases, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF f.retry_after IS NULL OR f.is_elsewhere THEN RETURN; END IF;
    UPDATE origins o SET alone_until = statement_timestamp() + least(30, f.retry_after) * interval '1 s'
    WHERE o.id = l.origin_id AND is_meant_alone(o, l.group_id);
    IF FOUND THEN RETURN; END IF;
    UPDATE origins o
    SET not_before = greatest(o.not_before,
            statement_timestamp() + least(3600, f.retry_after) * interval '1 s' * (1 + f.random / 10)),
        -- Lanes that are opened after refused_at are those that try the origin.
        refusals = decayed(o.refusals, o.refused_at, 0), refused_at = statement_timestamp(),
        refused_group = l.group_id,
        refused_since = CASE WHEN o.refused_group = l.group_id THEN coalesce(o.refused_since, statement_timestamp()) ELSE statement_timestamp() END,
        -- A pause by an operator stays as it is.
        try_at = CASE WHEN NOT is_resting(o) OR o.try_at IS NOT NULL THEN statement_timestamp() + interval '10 s' END
    WHERE o.id = l.origin_id AND recent_answers(o) <= 8 * (decayed(o.refusals, o.refused_at, 0) + 1);
END
$$;

-- How many lanes an origin may have now: what was learned, and never more than its cap.
CREATE FUNCTION allowed_connections(o origins, p_default integer) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT least(coalesce(o.max_connections, p_default), coalesce(learned_connections(o), coalesce(o.max_connections, p_default)))
$$;

-- The lanes that were learned when an origin refused, and more with the time since: the number grows without a write. NULL: nothing was learned. One
-- more is allowed after ten seconds, which an origin refuses whose limit is the learned number. If it does not refuse, 3, 7, 15 … more are allowed
-- after five more seconds each.
CREATE FUNCTION learned_connections(o origins) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT o.learned + (power(2, least(20, greatest(0, floor(extract(epoch FROM statement_timestamp() - o.learned_at) / 5) - 1))) - 1)::integer
$$;

-- Halves the lanes that an origin may have, though not below those that bring bytes beside the refused one, nor below those that it was seen to serve
-- at once, nor below `lanes_for_others`. Returns whether it has fewer now: it has more if it was seen to serve more. The caller has locked the origin.
CREATE FUNCTION reduce_allowance(o origins, l leases, f failure) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_allowed integer := allowed_connections(o, (f.policy).origin_cap);
    v_learned integer := greatest(1, v_allowed / 2, least(v_allowed, served_beside(l)),
        least(coalesce(o.max_connections, (f.policy).origin_cap), coalesce(f.served, 0)), lanes_for_others(o, l, f));
BEGIN
    UPDATE origins
    SET learned = v_learned, learned_at = clock_timestamp(), limited_at = clock_timestamp(), limited_with = CASE WHEN f.kind <> 'network' THEN f.status END,
        limited_epoch = (SELECT last_value FROM lease_epochs)
    WHERE id = o.id;
    -- Leases that wait in the only lane request nothing meanwhile.
    IF v_allowed = 1 AND v_learned = 1 THEN PERFORM leave_alone(o.id, f); END IF;
    RETURN v_learned < v_allowed;
END
$$;

-- How many lanes an origin keeps where the limit is that of another origin, to which redirects led: half of its cap while other groups have work there,
-- so that these wait for no limit of an origin that they do not use (I19). 0: the limit is its own, or the group is alone there.
CREATE FUNCTION lanes_for_others(o origins, l leases, f failure) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN f.is_elsewhere AND (others_wait(o.id, l.group_id)
            OR EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = o.id AND h.group_id <> l.group_id))
        THEN coalesce(o.max_connections, (f.policy).origin_cap) / 2 ELSE 0 END;
END
$$;

-- When an origin last served something; NULL: never, or not known.
CREATE FUNCTION served_at(p_origin bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT greatest(CASE WHEN o.rate_bytes + o.answers > 0 THEN o.rate_at END,
            (SELECT max(f.at) FROM origin_flow f WHERE f.origin_id = o.id))
        FROM origins o WHERE o.id = p_origin);
END
$$;

-- Whether an origin has served something within this time.
CREATE FUNCTION has_served(p_origin bigint, p_within interval) RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT coalesce(served_at(p_origin) > statement_timestamp() - p_within, false) $$;

-- Whether an origin has served something within five minutes, the longest backoff.
CREATE FUNCTION has_served_lately(p_origin bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT has_served(p_origin, interval '5 min')
$$;

-- Until when no task is given up for connections that an origin refuses: two minutes after it last served something, the longest time that eight
-- tries take.
CREATE FUNCTION tried_until(p_origin bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT served_at(p_origin) + interval '2 min'
$$;

-- How many leases an origin has fulfilled lately: a counter that decays within some ten seconds.
CREATE FUNCTION recent_answers(o origins) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT decayed(o.answers, o.rate_at, coalesce((
            SELECT sum(f.answers) FROM origin_flow f WHERE f.origin_id = o.id AND f.at > statement_timestamp() - interval '10 s'
        ), 0)::double precision));
END
$$;

-- Applies an operator's settings to an origin, which is added if it is unknown. A new cap forgets what the origin refused under the old one.
CREATE FUNCTION change_origin(
    p_key text, p_sets_cap boolean, p_cap integer, p_sets_pause boolean, p_paused_until timestamptz, p_sets_rate boolean,
    p_rate bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO origins (key) VALUES (p_key) ON CONFLICT (key) DO NOTHING;
    UPDATE origins
    SET max_connections = CASE WHEN p_sets_cap THEN p_cap ELSE max_connections END,
        learned = CASE WHEN NOT p_sets_cap THEN learned END,
        learned_at = CASE WHEN NOT p_sets_cap THEN learned_at END,
        not_before = CASE WHEN p_sets_pause THEN p_paused_until ELSE not_before END,
        try_at = CASE WHEN NOT p_sets_pause THEN try_at END,
        bytes_per_second = CASE WHEN p_sets_rate THEN p_rate ELSE bytes_per_second END
    WHERE key = p_key;
END
$$;

-- Adds up the bytes and answers that came from origins. A transaction of its own that locks origins, and chunks of origins that were out; rows that
-- another transaction has locked are left alone. Returns how many origins there were.
CREATE FUNCTION fold_origin_rates() RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_origins bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT array_agg(locked.id) INTO v_origins FROM (
        SELECT o.id FROM origins o WHERE o.id IN (SELECT origin_id FROM origin_flow)
        ORDER BY o.id FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked;
    IF v_origins IS NULL THEN RETURN 0; END IF;
    PERFORM serve_again(v_origins);
    WITH taken AS MATERIALIZED (
        DELETE FROM origin_flow WHERE origin_id = ANY (v_origins) RETURNING *
    ), apart AS (
        -- Whether the group that was refused last was served since, and whether another one was by a lease that was granted later.
        SELECT o.id, bool_or(s.group_id = o.refused_group) AS itself,
            bool_or(s.group_id <> o.refused_group AND s.granted_at >= o.refused_since + interval '10 s') AS others
        FROM origins o CROSS JOIN LATERAL (
            SELECT t.group_id, t.granted_at FROM taken t WHERE t.origin_id = o.id AND t.answers > 0
            UNION ALL SELECT l.group_id, l.granted_at FROM leases l WHERE l.origin_id = o.id AND l.durable >= l.resume + hardly_anything()
        ) AS s
        WHERE o.id = ANY (v_origins) AND o.refused_since IS NOT NULL AND s.granted_at > o.refused_since GROUP BY 1
    )
    UPDATE origins o
    SET rate_bytes = CASE WHEN n.at IS NULL THEN flowed(o.rate_bytes, o.rate_at, n.bytes) ELSE n.bytes END,
        answers = CASE WHEN n.at IS NULL THEN decayed(o.answers, o.rate_at, n.answers) ELSE n.answers END,
        rate_at = coalesce(n.at, statement_timestamp()), out_since = NULL,
        limits_with = ARRAY(SELECT DISTINCT status FROM unnest(o.limits_with || n.forgave) AS u (status) WHERE status IS NOT NULL),
        -- It has fulfilled a lease since one lane may try it, or is serving the lane that tries it; or its pause is meant for one group alone.
        not_before = CASE WHEN n.is_over OR n.is_apart AND o.try_at IS NOT NULL THEN NULL ELSE o.not_before END,
        alone_group = CASE WHEN n.is_apart THEN o.refused_group ELSE o.alone_group END,
        alone_until = CASE WHEN NOT n.is_apart THEN o.alone_until WHEN n.is_over THEN statement_timestamp()
            ELSE least(greatest(o.not_before, statement_timestamp()), statement_timestamp() + interval '30 s') END,
        refused_group = CASE WHEN NOT n.itself THEN o.refused_group END,
        refused_since = CASE WHEN NOT n.itself THEN o.refused_since END
    FROM (
        SELECT f.*, coalesce(a.itself, false) AS itself, coalesce(a.others AND NOT a.itself, false) AS is_apart,
            u.try_at IS NOT NULL AND u.refused_at < statement_timestamp() - interval '10 s' AND (f.answers > 0 OR EXISTS (
                SELECT FROM leases l WHERE l.origin_id = u.id AND l.granted_at > u.refused_at AND l.durable >= l.resume + hardly_anything())) AS is_over
        FROM (
            SELECT origin_id, sum(bytes)::double precision AS bytes, sum(answers)::double precision AS answers, array_agg(DISTINCT forgave) AS forgave,
                -- When the last of these came, if that is more than 5 s ago.
                CASE WHEN max(at) < statement_timestamp() - interval '5 s' THEN max(at) END AS at
            FROM taken GROUP BY 1
        ) AS f JOIN origins u ON u.id = f.origin_id LEFT JOIN apart a ON a.id = f.origin_id
    ) AS n
    WHERE o.id = n.origin_id;
    RETURN cardinality(v_origins);
END
$$;

-- Adds to a counter that decays with a time constant of 10 s.
CREATE FUNCTION decayed(p_bytes double precision, p_at timestamptz, p_more double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT p_bytes * exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_at)::double precision / 10))) + p_more
$$;

-- Adds to a counter of bytes, from which a speed is computed: it decays with a time constant of 4 s, so that the speed is that of the last five
-- seconds or so. Workers of a fleet report every three seconds what has come.
CREATE FUNCTION flowed(p_bytes double precision, p_at timestamptz, p_more double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT p_bytes * exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_at)::double precision / 4))) + p_more
$$;

-- Bytes per second of such a counter; 0 if nothing has come for ten seconds. A counter that is younger than its time constant is divided by what it
-- could hold by now, so that a speed does not seem to rise at first.
CREATE FUNCTION bytes_per_second(p_bytes double precision, p_at timestamptz, p_since timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_at < statement_timestamp() - interval '10 s' THEN 0 ELSE least(9e18, flowed(p_bytes, p_at, 0) / (4 * greatest(0.25,
        1 - exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_since)::double precision / 4)))))) END::bigint
$$;
