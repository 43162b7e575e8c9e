-- Origins that serve nothing: when that is known, and what follows when they serve again.

-- Notes that an origin refuses connections, and since when (`doubted_at`): a break of two seconds ends that, and it begins only while several lanes
-- lead there. Returns the origin.
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

-- Whether an origin that refused one more connection serves nothing: since the refusals began, nothing has come from it but what was in flight, and
-- no other lane that leads there is kept for long. The caller has locked the origin.
CREATE FUNCTION is_out(o origins, l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN o.doubted_at <= statement_timestamp() - interval '2 s'
        AND o.rate_at < o.doubted_at + interval '1600 ms'
        AND NOT is_anything_served(o, l);
END
$$;

-- Whether an origin serves something while it refuses a lease: something has just come from it, or another lane is kept for long, as a lane is that
-- waits for its answer.
CREATE FUNCTION is_anything_served(o origins, l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM origin_flow f WHERE f.origin_id = o.id)
        OR EXISTS (
            SELECT 1 FROM leases h
            WHERE h.origin_id = o.id AND (h.session_id, h.lane) <> (l.session_id, l.lane)
                AND greatest(h.granted_at, h.progress_at) < statement_timestamp() - interval '1 s');
END
$$;

-- Whether an origin refused all requests, for a second at least, before it served again.
CREATE FUNCTION refused_all(o origins) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(o.refused_at >= o.doubted_at + interval '1 s' AND o.rate_at < o.doubted_at, false)
$$;

-- Whether an origin left a request without an answer lately, and has served nothing since. Of a group's origins, others come before it.
CREATE FUNCTION is_unresponsive(o origins) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(o.silent_at > statement_timestamp() - interval '5 min' AND o.rate_at < o.silent_at, false)
$$;

-- These origins serve again. Chunks that failed while an origin was out, or had served nothing for a while, are tried again. The allowance of origins
-- that refused all requests is restored, since nothing was served that could have been too much; except for a status that is known as a limit there,
-- and 429, which may be a limit over some seconds. The caller has locked the origins.
CREATE FUNCTION serve_again(p_origins bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM try_again(ARRAY(SELECT o.id FROM origins o WHERE o.id = ANY (p_origins)
        AND (o.out_since IS NOT NULL OR o.rate_at < statement_timestamp() - interval '3 s' OR refused_all(o))), NULL);
    UPDATE origins o SET learned = NULL, learned_at = NULL
    WHERE o.id = ANY (p_origins) AND refused_all(o) AND o.learned_at >= o.doubted_at
        AND coalesce(o.limited_with <> ALL (429 || o.limits_with), true);
END
$$;

-- Ends the waits of chunks that these origins refused with p_status. NULL: of chunks that they did not answer, cut, or refused as in an outage before
-- they served again, except those that wait for a Retry-After.
CREATE FUNCTION try_again(p_origins bigint[], p_status integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_origins = '{}' THEN RETURN; END IF;
    UPDATE ready_chunks SET not_before = statement_timestamp()
    WHERE id IN (
        SELECT c.id FROM ready_chunks c JOIN tasks t ON t.id = c.task_id
        WHERE is_waiting(c.status) AND c.not_before > statement_timestamp() AND c.kind = 'fetch' AND c.origin_id = ANY (p_origins)
            AND CASE WHEN p_status IS NULL THEN t.failure_kind = 'network' OR t.failure_status IN (500, 502, 504)
                    OR t.failure_status IN (429, 503) AND NOT EXISTS (
                        SELECT FROM origins o WHERE o.id = c.origin_id AND (is_resting(o) OR is_meant_alone(o, t.group_id)))
                ELSE t.failure_status = p_status END
        LIMIT 10000 FOR UPDATE OF c SKIP LOCKED);
END
$$;

-- The number of tries without progress after which a task fails. Fewer are enough if no peer was reached, but not at an origin that has served
-- lately: that is an outage, and no wrong name. For a proxy that has brought the group nothing yet, earlier service of the origin tells nothing.
-- Whatever the number of tries, a task is not given up before an outage has lasted for a while (`tried_until`). Connections that end without an
-- answer count like refused ones in this.
CREATE FUNCTION most_attempts(l leases, p_attempts integer, f failure) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE
        WHEN wants_few_tries(f) THEN least(coalesce(f.unreached_attempts, f.max_attempts), f.max_attempts)
        WHEN (f.status IN (500, 502, 504) OR f.kind = 'network' AND f.status BETWEEN 200 AND 299) AND p_attempts >= f.max_attempts AND is_in_outage(l) THEN p_attempts + 1
        WHEN f.unreached_attempts IS NULL AND NOT f.is_unanswered THEN f.max_attempts
        WHEN f.kind = 'proxy' AND l.durable = 0 AND NOT EXISTS (SELECT FROM groups g WHERE g.id = l.group_id AND g.succeeded > 0)
        THEN least(f.unreached_attempts, f.max_attempts)
        -- A user may wait for many files of an origin that has refused all connections for as long as one file is tried (8 s): one try per source is
        -- enough then.
        WHEN f.unreached_attempts < f.max_attempts AND NOT has_served_lately(l.origin_id) AND EXISTS (
            SELECT 1 FROM origins o WHERE o.id = l.origin_id AND o.out_since IS NOT NULL AND o.doubted_at <= statement_timestamp() - interval '8 s') THEN f.sources
        WHEN NOT has_served_lately(l.origin_id) THEN least(f.unreached_attempts, f.max_attempts)
        WHEN p_attempts >= f.max_attempts AND tried_until(l.origin_id) > statement_timestamp() THEN p_attempts + 1
        ELSE f.max_attempts
    END;
END
$$;

-- Whether the origin has served lately but serves nothing now, and the task has failed for less than a minute. The tries may by chance be used up
-- within half of that time, before an outage is over.
CREATE FUNCTION is_in_outage(l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN served_at(l.origin_id) < statement_timestamp() - interval '3 s' AND tried_until(l.origin_id) > statement_timestamp()
        AND NOT EXISTS (SELECT FROM attempts a WHERE a.task_id = l.task_id AND a.at < statement_timestamp() - interval '1 min');
END
$$;

-- Whether the user wants hardly more than one try: then no more are made, even if an outage or a limit may pass.
CREATE FUNCTION wants_few_tries(f failure) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT f.max_attempts < 3 * f.sources $$;
