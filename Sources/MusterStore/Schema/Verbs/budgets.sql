-- Byte budgets (adr/0009): how many bytes per second the fleet may take for a group, from an origin, or altogether, and which session has
-- which share of that. A budget is named `group:<name>`, `origin:<key>` or `fleet`.
--
-- Together, the shares of a budget are never more than its rate, and no session ever keeps to more than the share that counts for it: a share that is
-- made smaller counts in full until a sync of its session says that it keeps to less, and only what has come back that way is given to others. Shares
-- change with the syncs of their sessions. A transaction that makes one larger holds the budget's lock, and none ever waits for it: a sync or claim
-- that doesn't get it leaves the shares as they are.

-- Whether any rate is set, or some session still has a share of one. A coordinator asks this now and then, so that syncs cost nothing
-- where there is no rate. Forgets the shares of sessions that are over.
CREATE FUNCTION has_budgets() RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM budget_shares b USING (
        SELECT o.budget, o.session_id FROM budget_shares o
        WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = o.session_id AND s.expires_at > statement_timestamp())
        FOR UPDATE SKIP LOCKED
    ) AS gone
    WHERE b.budget = gone.budget AND b.session_id = gone.session_id;
    RETURN EXISTS (SELECT 1 FROM budget_shares)
        OR EXISTS (SELECT 1 FROM origins WHERE bytes_per_second IS NOT NULL)
        OR EXISTS (
            SELECT 1 FROM groups
            WHERE (bytes_per_second IS NOT NULL OR timetable IS NOT NULL) AND state IN ('open', 'sealed'));
END
$$;

-- The rate of a budget now; NULL when it does not limit.
CREATE FUNCTION budget_rate(p_budget text, p_fleet_rate bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_budget = 'fleet' THEN p_fleet_rate
        WHEN p_budget LIKE 'group:%' THEN (SELECT group_rate(g) FROM groups g WHERE g.name = substr(p_budget, 7))
        ELSE (SELECT o.bytes_per_second FROM origins o WHERE o.key = substr(p_budget, 8))
    END
$$;

-- Takes the lock of a budget if it is free, and forgets the shares of sessions that are over, and of silent sessions that waited for a share. The
-- sessions in p_present are not silent. Returns whether the lock is held.
CREATE FUNCTION open_budget(p_budget text, p_present bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(p_budget, 0)) THEN
        RETURN false;
    END IF;
    DELETE FROM budget_shares b WHERE b.budget = p_budget AND b.session_id <> ALL (p_present) AND (
        NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = b.session_id AND s.expires_at > statement_timestamp())
        OR b.share = 0 AND b.used_at < statement_timestamp() - interval '5 s');
    RETURN true;
END
$$;

-- The slots whose sessions may draw from all the byte budgets that a group's chunks on an origin have.
CREATE FUNCTION usable_slots(
    p_slots bigint[], p_sink text, p_fleet_rate bigint, p_group text, p_group_rate bigint, p_origin text, p_origin_rate bigint
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_able bigint[];
BEGIN
    SELECT array_agg(DISTINCT id) INTO v_able FROM unnest(p_slots) AS u (id);
    IF p_fleet_rate IS NOT NULL THEN
        v_able := share_budget('fleet', p_fleet_rate, v_able, p_sink);
    END IF;
    IF p_group_rate IS NOT NULL THEN
        v_able := share_budget('group:' || p_group, p_group_rate, v_able, p_sink);
    END IF;
    IF p_origin_rate IS NOT NULL THEN
        v_able := share_budget('origin:' || p_origin, p_origin_rate, v_able, p_sink);
    END IF;
    RETURN (SELECT coalesce(array_agg(id ORDER BY n), '{}') FROM unnest(p_slots) WITH ORDINALITY AS u (id, n)
        WHERE id = ANY (v_able));
END
$$;

-- Returns the sessions of p_sessions, which ask for work, that have a share of a budget. A session without a share gets one as far as the rate is
-- free: in proportion to its slots among the sessions that wait for a share, or among all that could ask for one while no session has a share. A
-- session that gets nothing is noted with a share of 0, so that the others give something back.
CREATE FUNCTION share_budget(p_budget text, p_rate bigint, p_sessions bigint[], p_sink text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_able bigint[];
    v_rest bigint[];
    v_free bigint;
    v_slots bigint;                     -- slots of all sessions that could ask for the free part
    v_served bigint;                    -- slots of the sessions that have a share
BEGIN
    SELECT coalesce(array_agg(session_id), '{}') INTO v_able FROM budget_shares
    WHERE budget = p_budget AND session_id = ANY (p_sessions) AND offer > 0;
    IF v_able @> p_sessions OR NOT open_budget(p_budget, p_sessions) THEN
        RETURN v_able;
    END IF;
    SELECT array_agg(DISTINCT id) INTO v_rest FROM unnest(p_sessions) AS u (id) WHERE id <> ALL (v_able);
    SELECT greatest(0, p_rate - coalesce(sum(share), 0)), coalesce(sum(slots) FILTER (WHERE share > 0), 0)
    INTO v_free, v_served FROM budget_shares WHERE budget = p_budget;
    SELECT sum(s.slots) INTO v_slots
    FROM sessions s LEFT JOIN budget_shares b ON b.budget = p_budget AND b.session_id = s.id
    WHERE s.id = ANY (v_rest)
        OR s.expires_at > statement_timestamp() AND NOT s.draining AND p_sink = ANY (s.sinks)
            AND (b.share = 0 OR b.share IS NULL AND v_served = 0);
    -- Don't hand out tiny shares; wait for more: a session with a tiny share would not count as waiting any more. A new share is not
    -- measured for a second, in which its transfers begin.
    INSERT INTO budget_shares (budget, session_id, slots, share, offer, used, used_at)
    SELECT p_budget, s.id, s.slots, n.share, n.share, n.share,
        statement_timestamp() + CASE WHEN n.share > 0 THEN interval '1 s' ELSE interval '0' END
    FROM sessions s CROSS JOIN LATERAL (
        SELECT CASE WHEN v_free::numeric * 4 * (v_served + v_slots) >= p_rate::numeric * v_slots
            THEN trunc(v_free::numeric * s.slots / v_slots)::bigint ELSE 0 END AS share) AS n
    WHERE s.id = ANY (v_rest)
    ON CONFLICT (budget, session_id) DO UPDATE
        SET share = excluded.share, offer = excluded.offer, used = excluded.used, is_short = true, used_at = excluded.used_at
        WHERE budget_shares.share = 0;
    RETURN v_able || (
        SELECT coalesce(array_agg(session_id), '{}') FROM budget_shares
        WHERE budget = p_budget AND session_id = ANY (v_rest) AND offer > 0);
END
$$;

-- The slots that are left after p_used: for each session, as many fewer as it has used.
CREATE FUNCTION without_slots(p_slots bigint[], p_used bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(s.id ORDER BY s.n), '{}')
        FROM (
            SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS k FROM unnest(p_slots) WITH ORDINALITY AS u (id, n)
        ) AS s
        LEFT JOIN (SELECT id, count(*) AS k FROM unnest(p_used) AS u (id) GROUP BY 1) AS used ON used.id = s.id
        WHERE s.k > coalesce(used.k, 0));
END
$$;
