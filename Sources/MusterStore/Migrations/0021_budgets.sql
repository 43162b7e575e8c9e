-- Byte budgets: how many bytes per second the fleet may take for a group, from an origin, or altogether, and who has which
-- share of that.
--
-- A budget is named `group:<name>`, `origin:<key>` or `fleet`. The shares of a budget are never more than its rate together: a
-- share that is made smaller counts in full until its session has settled the sync that told it so, and only what has come back
-- that way is given to others. Shares change with the syncs of their sessions. Whoever changes them holds the budget's lock,
-- and nobody ever waits for one: a sync or claim that doesn't get it leaves things as they are.

-- Not logged: after a crash of the database every session asks for its shares anew, as if rates had been set just now.
CREATE UNLOGGED TABLE budget_shares (
    budget     text NOT NULL,
    session_id bigint NOT NULL,
    share      bigint NOT NULL,                              -- what counts, in bytes per second; 0 waits for something to come back
    offer      bigint NOT NULL,                              -- what the session is told; below its share until it has settled that
    offer_sync bigint NOT NULL DEFAULT 0,                    -- the sync that told it
    used       double precision NOT NULL,                    -- bytes per second that it made use of lately
    used_at    timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when that was found out
    counted    bigint NOT NULL DEFAULT 0,                    -- bytes that it told of since then
    leases     integer NOT NULL DEFAULT 1,                   -- how many leases of it draw from the budget
    PRIMARY KEY (budget, session_id),
    CONSTRAINT budget_shares_offer_within CHECK (offer >= 0 AND offer <= share)
) WITH (fillfactor = 50);
CREATE INDEX budget_shares_by_session ON budget_shares (session_id);

CREATE INDEX groups_with_rate ON groups (id)
    WHERE (bytes_per_second IS NOT NULL OR timetable IS NOT NULL) AND state IN ('open', 'sealed');
CREATE INDEX origins_with_rate ON origins (id) WHERE bytes_per_second IS NOT NULL;

-- Whether any rate is set, or was and is not taken back everywhere: what a coordinator asks now and then, so that syncs cost
-- nothing where there is none. Forgets the shares of sessions that are over.
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

-- Takes the lock of a budget if it is free, and forgets the shares of sessions that are over, and of others that have waited for
-- one and are not heard of any more; those of p_present are. Returns whether it did.
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

-- Of sessions that ask for work, those that have a share of a budget. Who has none gets one, as far as there is something to
-- get: as much as every other session that could come for one. Who gets nothing is noted, so that the others give something back.
CREATE FUNCTION share_budget(p_budget text, p_rate bigint, p_sessions bigint[], p_sink text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_able bigint[];
    v_rest bigint[];
    v_free bigint;
    v_others bigint;
BEGIN
    SELECT coalesce(array_agg(session_id), '{}') INTO v_able FROM budget_shares
    WHERE budget = p_budget AND session_id = ANY (p_sessions) AND offer > 0;
    IF v_able @> p_sessions OR NOT open_budget(p_budget, p_sessions) THEN
        RETURN v_able;
    END IF;
    SELECT array_agg(DISTINCT id) INTO v_rest FROM unnest(p_sessions) AS u (id) WHERE id <> ALL (v_able);
    SELECT p_rate - coalesce(sum(share), 0) INTO v_free FROM budget_shares
    WHERE budget = p_budget AND NOT (share = 0 AND session_id = ANY (v_rest));
    SELECT count(*) INTO v_others FROM sessions s
    WHERE s.expires_at > statement_timestamp() AND NOT s.draining AND p_sink = ANY (s.sinks) AND s.id <> ALL (v_rest)
        AND NOT EXISTS (SELECT 1 FROM budget_shares b WHERE b.budget = p_budget AND b.session_id = s.id);
    INSERT INTO budget_shares (budget, session_id, share, offer, used)
    SELECT p_budget, r.id, n.share, n.share, n.share
    FROM unnest(v_rest) AS r (id)
    CROSS JOIN (SELECT greatest(0, v_free / (cardinality(v_rest) + v_others)) AS share) AS n
    ON CONFLICT (budget, session_id) DO UPDATE
        SET share = excluded.share, offer = excluded.offer, used = excluded.used, used_at = excluded.used_at
        WHERE budget_shares.share = 0;
    RETURN v_able || (
        SELECT coalesce(array_agg(session_id), '{}') FROM budget_shares
        WHERE budget = p_budget AND session_id = ANY (v_rest) AND offer > 0);
END
$$;

-- The places for leases whose sessions may draw from all the byte budgets that a group's chunks on an origin have.
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

-- The places that are left when some of them are used: of every session's as many fewer.
CREATE FUNCTION without_slots(p_slots bigint[], p_used bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(s.id ORDER BY s.n), '{}')
    FROM (
        SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS k FROM unnest(p_slots) WITH ORDINALITY AS u (id, n)
    ) AS s
    LEFT JOIN (SELECT id, count(*) AS k FROM unnest(p_used) AS u (id) GROUP BY 1) AS used ON used.id = s.id
    WHERE s.k > coalesce(used.k, 0)
$$;

-- What a session used of its shares, by a sync, and what its shares are from now on: a row for each of its budgets. Its leases
-- say which these are.
--
-- Who uses less than four fifths of his share keeps a third more than he uses, as soon as somebody else has use for the rest;
-- that is split, by numbers of leases, among those who use theirs up. p_settled is the sync up to which it has every answer.
CREATE FUNCTION settle_budgets(
    p_session bigint, p_sync bigint, p_settled bigint, p_fleet_rate bigint, p_budgets text[], p_bytes bigint[]
) RETURNS TABLE (budget text, offer bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_budget record;
    b budget_shares;
    v_rate bigint;
    v_elapsed double precision;
    v_others bigint;                    -- the others' shares, and what of these belongs to sessions that don't use theirs up
    v_idle bigint;
    v_rivals bigint;                    -- leases of those who do
    v_waits boolean;                    -- whether somebody has nothing at all
    v_fair bigint;
    v_want bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_budget IN
        SELECT n.name, sum(n.leases)::integer AS leases, coalesce(max(u.bytes), 0) AS bytes
        FROM (
            SELECT s.budget AS name, 0 AS leases FROM budget_shares s WHERE s.session_id = p_session
            UNION ALL
            SELECT m.name, count(*)::integer
            FROM leases l JOIN groups g ON g.id = l.group_id JOIN origins o ON o.id = l.origin_id
            CROSS JOIN LATERAL (VALUES
                (CASE WHEN group_rate(g) IS NOT NULL THEN 'group:' || g.name END),
                (CASE WHEN o.bytes_per_second IS NOT NULL THEN 'origin:' || o.key END),
                (CASE WHEN p_fleet_rate IS NOT NULL THEN 'fleet' END)) AS m (name)
            WHERE l.session_id = p_session AND l.kind IN ('fetch', 'double') AND m.name IS NOT NULL GROUP BY 1
        ) AS n
        LEFT JOIN (
            SELECT name, least(sum(greatest(0, bytes)), 1e15)::bigint AS bytes FROM unnest(p_budgets, p_bytes) AS t (name, bytes) GROUP BY 1
        ) AS u ON u.name = n.name
        GROUP BY 1 ORDER BY 1
    LOOP
        v_rate := budget_rate(v_budget.name, p_fleet_rate);
        IF v_rate IS NULL THEN
            DELETE FROM budget_shares s WHERE s.budget = v_budget.name AND s.session_id = p_session;
            CONTINUE;
        END IF;
        -- A rate that was set while work was under way finds sessions without a share.
        INSERT INTO budget_shares (budget, session_id, share, offer, used)
        VALUES (v_budget.name, p_session, 0, 0, 0) ON CONFLICT DO NOTHING;
        SELECT * INTO b FROM budget_shares s WHERE s.budget = v_budget.name AND s.session_id = p_session FOR UPDATE;
        IF b.offer < b.share AND b.offer_sync <= p_settled THEN
            b.share := b.offer;
        END IF;

        -- How fast it was: that can't be told in less than a quarter of a second.
        b.counted := least(b.counted + v_budget.bytes, 1000000000000000);
        b.leases := v_budget.leases;
        v_elapsed := extract(epoch FROM statement_timestamp() - b.used_at)::double precision;
        IF v_elapsed >= 0.25 THEN
            IF b.leases = 0 AND b.counted = 0 THEN
                -- It draws from the budget no more.
                DELETE FROM budget_shares s WHERE s.budget = b.budget AND s.session_id = p_session;
                CONTINUE;
            END IF;
            b.used := (b.used + b.counted / v_elapsed) / 2;
            b.used_at := statement_timestamp();
            b.counted := 0;
        END IF;

        IF open_budget(b.budget, ARRAY[p_session]) THEN
            SELECT coalesce(sum(s.share), 0), coalesce(sum(s.share) FILTER (WHERE NOT s.is_hungry), 0),
                coalesce(sum(greatest(1, s.leases)) FILTER (WHERE s.is_hungry), 0), coalesce(bool_or(s.share = 0), false)
            INTO v_others, v_idle, v_rivals, v_waits
            FROM (SELECT o.*, o.used >= 0.8 * o.offer AS is_hungry FROM budget_shares o WHERE o.budget = b.budget) AS s
            WHERE s.session_id <> p_session;
            v_fair := greatest(0, v_rate - v_idle) * greatest(1, b.leases) / (greatest(1, b.leases) + v_rivals);
            v_want := v_fair;
            IF b.used < 0.8 * b.offer THEN
                v_want := least(v_fair, CASE WHEN v_rivals = 0 THEN b.offer ELSE greatest(1, b.used * 4 / 3)::bigint END);
            END IF;
            IF v_want > b.share THEN
                -- More, as far as the others have given it back.
                b.offer := greatest(b.share, least(v_want, v_rate - v_others));
                b.used := CASE WHEN b.offer > b.share THEN b.offer ELSE b.used END;
                b.share := b.offer;
            ELSIF v_want < 0.9 * b.offer OR v_waits OR v_others + b.share > v_rate THEN
                -- Small differences are left alone: what is moved is of use to nobody for a moment.
                b.offer := least(b.offer, v_want);
                b.offer_sync := p_sync;
            END IF;
        END IF;
        UPDATE budget_shares s
        SET share = b.share, offer = b.offer, offer_sync = b.offer_sync, used = b.used, used_at = b.used_at,
            counted = b.counted, leases = b.leases
        WHERE s.budget = b.budget AND s.session_id = p_session;
    END LOOP;
    RETURN QUERY SELECT s.budget, s.offer FROM budget_shares s WHERE s.session_id = p_session ORDER BY 1;
END
$$;

-- What somebody wishes of an origin, which is made known by that if it isn't yet. A new cap is not held against what the
-- origin refused under the old one.
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
        bytes_per_second = CASE WHEN p_sets_rate THEN p_rate ELSE bytes_per_second END
    WHERE key = p_key;
END
$$;
