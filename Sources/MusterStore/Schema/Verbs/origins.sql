-- What the fleet may do at an origin, what it has learned there, and how fast that one is.

-- Whether another lane leads to the origin of a lease: what waits in the same one was not asked for yet.
CREATE FUNCTION shares_origin(l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND (h.session_id, h.lane) <> (l.session_id, l.lane));
END
$$;

-- Whether an origin is to be left alone.
CREATE FUNCTION is_resting(o origins) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT o.not_before IS NOT NULL AND o.not_before > statement_timestamp()
$$;

-- Whether an origin may be asked now, be it by one lane that tries it.
CREATE FUNCTION is_awake(o origins) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT is_resting(o) OR o.try_at IS NOT NULL AND o.try_at <= statement_timestamp()
$$;

-- An origin says when to come back: the whole fleet leaves it alone until then, for an hour at the most (row 25). After ten seconds one lane
-- tries it at a time: what it said may have been meant for one file. That is certain, and nothing rests but the chunk that was refused,
-- where it serves many others for each request that it refuses. The caller has locked the origin.
CREATE FUNCTION heed_retry_after(p_origin bigint, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF f.retry_after IS NULL THEN RETURN; END IF;
    UPDATE origins o
    SET not_before = greatest(o.not_before,
            statement_timestamp() + least(3600, f.retry_after) * interval '1 s' * (1 + f.random / 10)),
        -- What an operator paused stays as it is.
        try_at = CASE WHEN NOT is_resting(o) OR o.try_at IS NOT NULL THEN statement_timestamp() + interval '10 s' END
    WHERE o.id = p_origin AND recent_answers(o) <= 8 * (decayed(o.refusals, o.refused_at, 0) + 1);
END
$$;

-- How many lanes an origin may have now: what was learned when it refused, one more with every ten seconds since, and never more
-- than its cap. It grows without a write.
CREATE FUNCTION allowed_connections(o origins, p_default integer) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT least(coalesce(o.max_connections, p_default), coalesce(o.learned
        + floor(least(1000000, extract(epoch FROM statement_timestamp() - o.learned_at) / 10))::integer,
        coalesce(o.max_connections, p_default)))
$$;

-- An origin refused because of too much at once, or may have (row 24). Its allowance is halved, though not below the lanes that bring bytes
-- beside the refused one, and at most once for a burst: only by a lease that was granted after the last time. Returns NULL if it is no
-- such refusal. Otherwise returns whether it counts as a try of the chunk: it does not as long as something was taken from the
-- allowance, or just had been (I12). A refusal changes nothing where no other lane leads to the origin, where refusals are far rarer than
-- one lane too many would make them, or where the file was refused before while others are served. Connections that are refused while nothing
-- is served are an outage. As long as nobody can tell, for two seconds, they take nothing and are no tries. The caller has locked the origin.
CREATE FUNCTION heed_limit(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    o origins;
    v_is_shared boolean;
    v_is_echo boolean;
    v_allowed integer;
    v_learned integer;
BEGIN
    IF f.limit_signal = 'none' THEN RETURN NULL; END IF;
    SELECT * INTO o FROM origins WHERE id = l.origin_id;
    IF NOT FOUND THEN RETURN NULL; END IF;
    v_is_echo := coalesce(l.epoch <= o.limited_epoch, false);
    v_is_shared := v_is_echo OR shares_origin(l);
    IF f.unreached_attempts IS NOT NULL AND f.kind = 'network' AND l.durable = l.resume AND NOT v_is_echo THEN
        o := doubt(o, v_is_shared);
        IF o.out_since IS NOT NULL OR is_out(o, l) THEN
            UPDATE origins SET out_since = coalesce(out_since, rate_at) WHERE id = o.id;
            RETURN NULL;
        END IF;
        IF o.doubted_at > statement_timestamp() - interval '2 s' THEN RETURN false; END IF;
    END IF;
    -- A refusal that may have another reason is believed if there was something to limit, and if it worked before or nothing came at all.
    -- The leases that shared the origin may be gone by now: then what worked before is tried once more before the refusal is believed,
    -- and some more times where the origin is known to have limits, since it may count connections that have ended already.
    IF f.limit_signal = 'possible' THEN
        IF NOT may_be_limit(o, l, t, f, v_is_shared) THEN RETURN NULL; END IF;
        IF NOT v_is_shared THEN
            RETURN CASE WHEN f.kind <> 'network' AND l.attempts < CASE WHEN o.learned IS NULL THEN 1 ELSE 4 END THEN true END;
        END IF;
    END IF;
    UPDATE origins SET refusals = decayed(refusals, refused_at, 1), refused_at = statement_timestamp() WHERE id = o.id;
    IF v_is_echo THEN RETURN false; END IF;
    IF NOT v_is_shared THEN RETURN true; END IF;
    IF recent_answers(o) >= 1 AND (is_rarely_refused(o) OR f.limit_signal = 'certain' AND (
        SELECT a.serial FROM attempts a WHERE a.task_id = t.id AND a.status = t.failure_status LIMIT 1) IS NOT NULL)
    THEN
        IF f.limit_signal = 'possible' AND f.kind <> 'network' AND NOT t.planned THEN PERFORM believe_refusals(o.id, f.status); END IF;
        RETURN CASE WHEN f.limit_signal = 'certain' THEN true END;
    END IF;
    v_allowed := allowed_connections(o, f.origin_cap);
    v_learned := greatest(1, v_allowed / 2, least(v_allowed, served_beside(l)));
    UPDATE origins
    SET learned = v_learned, learned_at = clock_timestamp(), limited_at = clock_timestamp(), limited_with = f.status,
        doubted_at = NULL, limited_epoch = (SELECT last_value FROM lease_epochs)
    WHERE id = o.id;
    RETURN v_learned = v_allowed;
END
$$;

-- Notes that an origin refuses connections: since when, without a break of two seconds, if it began to while several lanes led there. Returns it.
CREATE FUNCTION doubt(o origins, p_is_shared boolean) RETURNS origins
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE origins
    SET refusals = decayed(refusals, refused_at, 0), refused_at = statement_timestamp(),
        doubted_at = CASE WHEN doubted_at IS NOT NULL AND refused_at > statement_timestamp() - interval '2 s' THEN doubted_at
            WHEN p_is_shared THEN statement_timestamp() END
    WHERE id = o.id RETURNING * INTO o;
    RETURN o;
END
$$;

-- Whether an origin that refused one more connection serves nothing: since it began to, nothing has come of it but what was on its way, and no
-- other lane that leads there is kept for long, as one is that waits for its answer. The caller has locked the origin.
CREATE FUNCTION is_out(o origins, l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN o.doubted_at <= statement_timestamp() - interval '2 s'
        AND o.rate_at < o.doubted_at + interval '1600 ms'
        AND NOT EXISTS (SELECT 1 FROM origin_flow f WHERE f.origin_id = o.id)
        AND NOT EXISTS (
            SELECT 1 FROM leases h
            WHERE h.origin_id = o.id AND (h.session_id, h.lane) <> (l.session_id, l.lane)
                AND greatest(h.granted_at, h.progress_at) < statement_timestamp() - interval '1 s');
END
$$;

-- Whether something has come of an origin within this time.
CREATE FUNCTION has_served(p_origin bigint, p_within interval) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM origins o WHERE o.id = p_origin AND (
            o.rate_bytes + o.answers > 0 AND o.rate_at > statement_timestamp() - p_within
            OR EXISTS (SELECT 1 FROM origin_flow f WHERE f.origin_id = o.id)));
END
$$;

-- Whether something has come of an origin for as long back as the longest backoff.
CREATE FUNCTION has_served_lately(p_origin bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT has_served(p_origin, interval '5 min')
$$;

-- Whether a refusal that may have another reason may be a limit. One of a file that worked before may be, and one of a file of which nothing has
-- come, where the origin is known to limit with this status, or where nobody knows, and no other source may have it. It is tried again beside
-- others, with fewer of those each time as far as the allowance goes, and once more where all others have just gone. The first one that is refused
-- for good is believed, and so are all that follow there with the same status. The caller has locked the origin.
CREATE FUNCTION may_be_limit(o origins, l leases, t tasks, f failure, p_is_shared boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF f.kind = 'network' THEN RETURN l.durable = l.resume; END IF;
    IF f.status = ANY (o.limits_with) THEN RETURN true; END IF;
    IF t.planned THEN
        RETURN coalesce(t.source, l.source) = l.source OR EXISTS (
            SELECT 1 FROM sources s WHERE s.task_id = t.id AND s.ordinal = l.source AND s.bytes > 0);
    END IF;
    IF f.status = ANY (o.refuses_with) OR EXISTS (SELECT 1 FROM sources s WHERE s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source) THEN RETURN false; END IF;
    -- So often can the allowance be halved, whatever counts as a try.
    IF l.attempts <= p_is_shared::integer AND (p_is_shared OR recent_answers(o) > 0)
        AND (SELECT s.failures FROM sources s WHERE s.task_id = t.id AND s.ordinal = l.source) < 7
    THEN
        RETURN true;
    END IF;
    -- One that was refused alone from the beginning tells nothing of the others, unless they have been kept waiting for such refusals.
    IF l.attempts > 0 OR o.learned IS NOT NULL THEN PERFORM believe_refusals(o.id, f.status); END IF;
    RETURN false;
END
$$;

-- What an origin refuses with this status it will not give: what was taken from its allowance for such refusals is given back. It may be known
-- better.
CREATE FUNCTION believe_refusals(p_origin bigint, p_status integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE origins SET refuses_with = refuses_with || p_status, learned = NULL, learned_at = NULL
    WHERE id = p_origin AND p_status <> ALL (refuses_with || limits_with);
END
$$;

-- How many other lanes to the origin of a lease bring bytes: so many it serves.
CREATE FUNCTION served_beside(l leases) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(DISTINCT (h.session_id, h.lane))::integer FROM leases h
        WHERE h.origin_id = l.origin_id AND (h.session_id, h.lane) <> (l.session_id, l.lane) AND h.durable > h.resume);
END
$$;

-- How many leases an origin has fulfilled lately: a counter that decays within some ten seconds.
CREATE FUNCTION recent_answers(o origins) RETURNS double precision
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT decayed(o.answers, o.rate_at, coalesce((SELECT sum(f.answers) FROM origin_flow f WHERE f.origin_id = o.id), 0)::double precision));
END
$$;

-- Whether an origin that refuses once more still refuses far more rarely than it would if one lane of those that it has were too many.
-- That one would be refused each time: one request of as many as there are lanes. Half of that is far more rarely.
CREATE FUNCTION is_rarely_refused(o origins) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT recent_answers(o) > 2 * (decayed(o.refusals, o.refused_at, 0) + 1) * (SELECT count(*) FROM lanes_to(o.id)));
END
$$;

-- What an operator wishes of an origin; an unknown origin is made known. A new cap forgets what the origin refused under the old one.
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

-- Adds up the bytes and answers that came from origins. A transaction of its own that locks origins, and chunks of those that were out; what
-- another transaction has locked is left alone. Returns how many origins there were.
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
    PERFORM try_again(ARRAY(SELECT o.id FROM origins o WHERE o.id = ANY (v_origins) AND o.out_since IS NOT NULL));
    WITH taken AS MATERIALIZED (
        DELETE FROM origin_flow WHERE origin_id = ANY (v_origins) RETURNING origin_id, bytes, answers, forgave
    )
    UPDATE origins o
    SET rate_bytes = flowed(o.rate_bytes, o.rate_at, n.bytes), answers = decayed(o.answers, o.rate_at, n.answers),
        rate_at = statement_timestamp(), out_since = NULL,
        limits_with = ARRAY(SELECT DISTINCT status FROM unnest(o.limits_with || n.forgave) AS u (status) WHERE status IS NOT NULL),
        -- It has served somebody since one lane may try it.
        not_before = CASE WHEN n.answers > 0 AND o.try_at IS NOT NULL AND o.refused_at < statement_timestamp() - interval '10 s'
            THEN NULL ELSE o.not_before END
    FROM (
        SELECT origin_id, sum(bytes)::double precision AS bytes, sum(answers)::double precision AS answers, array_agg(DISTINCT forgave) AS forgave
        FROM taken GROUP BY 1
    ) AS n
    WHERE o.id = n.origin_id;
    RETURN cardinality(v_origins);
END
$$;

-- Ends the waits of what was refused while these origins were out: they serve again.
CREATE FUNCTION try_again(p_origins bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_origins = '{}' THEN RETURN; END IF;
    UPDATE ready_chunks SET not_before = statement_timestamp()
    WHERE id IN (
        SELECT c.id FROM ready_chunks c JOIN tasks t ON t.id = c.task_id
        WHERE is_waiting(c.status) AND c.not_before > statement_timestamp() AND c.kind = 'fetch' AND c.origin_id = ANY (p_origins)
            AND t.failure_kind = 'network' AND t.failure_status IS NULL
        LIMIT 10000 FOR UPDATE OF c SKIP LOCKED);
END
$$;

-- Adds to a counter that decays with a time constant of 10 s.
CREATE FUNCTION decayed(p_bytes double precision, p_at timestamptz, p_more double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT p_bytes * exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_at)::double precision / 10))) + p_more
$$;

-- Adds to a counter of bytes, of which a speed is made: it decays with a time constant of 4 s, so that the speed is that of the last five
-- seconds or so. Workers of a fleet tell every three seconds what has come.
CREATE FUNCTION flowed(p_bytes double precision, p_at timestamptz, p_more double precision) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT p_bytes * exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_at)::double precision / 4))) + p_more
$$;

-- Bytes per second of such a counter; none where nothing has come for ten seconds. A counter that is younger than its time constant is
-- divided by what it could hold by now, so that a speed does not seem to rise at first.
CREATE FUNCTION bytes_per_second(p_bytes double precision, p_at timestamptz, p_since timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_at < statement_timestamp() - interval '10 s' THEN 0 ELSE least(9e18, flowed(p_bytes, p_at, 0) / (4 * greatest(0.25,
        1 - exp(-least(700, greatest(0, extract(epoch FROM statement_timestamp() - p_since)::double precision / 4)))))) END::bigint
$$;
