-- Byte budgets: how many bytes per second the fleet may take for a group, from an origin, or altogether, and who has which
-- share of that.
--
-- A budget is named `group:<name>`, `origin:<key>` or `fleet`. The shares of a budget are never more than its rate together, and
-- no session ever keeps to more than the share that counts for it: one that is made smaller counts in full until a sync of its
-- session says that it keeps to less, and only what has come back that way is given to others. Shares change with the syncs of
-- their sessions. Whoever makes one larger holds the budget's lock, and nobody ever waits for one: a sync or claim that doesn't
-- get it leaves things as they are.

-- Not logged: after a crash of the database every session says what it keeps to, and has that again as far as the rate goes.
CREATE UNLOGGED TABLE budget_shares (
    budget     text NOT NULL,
    session_id bigint NOT NULL,
    slots      integer NOT NULL,                             -- of the session: who uses his share up has as much as these
    share      bigint NOT NULL,                              -- what counts, in bytes per second; 0 waits for something to come back
    offer      bigint NOT NULL,                              -- what the session is told; below its share until it keeps to that
    sync       bigint NOT NULL DEFAULT 0,                    -- its newest sync that was heard
    used       double precision NOT NULL,                    -- bytes per second that it made use of lately
    is_short   boolean NOT NULL DEFAULT true,                -- whether it would have used more
    used_at    timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when that was found out
    counted    bigint NOT NULL DEFAULT 0,                    -- bytes that it told of since then
    had_to_wait boolean NOT NULL DEFAULT false,              -- whether a transfer of it has waited for the budget since then
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
-- get: by its slots, as others that wait for one, or at the beginning all that could come for one. Who gets nothing is noted, so
-- that the others give something back.
CREATE FUNCTION share_budget(p_budget text, p_rate bigint, p_sessions bigint[], p_sink text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_able bigint[];
    v_rest bigint[];
    v_free bigint;
    v_slots bigint;                     -- of all that could come for what is free
    v_served bigint;                    -- of those who have something
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
    -- Crumbs are left until more has come back: who has something is not waited for any more. Transfers that are yet to begin
    -- say nothing for a second.
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

-- How much of a budget a session is to have for its own good, in bytes per second, where p_even is an even part for each slot:
-- what it uses and a little more, half as much again if that was too little for it, and any amount if it waits for a share.
-- Never so little that it couldn't show that it needs more.
CREATE FUNCTION budget_demand(b budget_shares, p_even double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN b.share = 0 THEN 'Infinity'
        WHEN b.is_short THEN greatest(b.used * 3 / 2, p_even * b.slots / 4)
        ELSE greatest(b.used * 33 / 32, p_even * b.slots / 32)
    END
$$;

-- How much of a rate a session may have that would use any amount, in bytes per second: the rest after what the others are to
-- have, and not less than its slots' part of it if these could use more too.
CREATE FUNCTION fair_share(b budget_shares, p_rate bigint, p_even double precision) RETURNS bigint
LANGUAGE sql STABLE AS $$
    -- Everybody is served up to one level for each of his slots, or has what he needs if that is less. In the order of what they
    -- need for each slot: if the first few have what they need, the level is what these leave for each of the other slots. How
    -- many these are is found by trying all numbers: the highest level is the one that comes to the rate.
    SELECT greatest(0, trunc(max((p_rate - met) / slots_left) * b.slots))::bigint
    FROM (
        SELECT coalesce(sum(demand) OVER (before ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS met,
            sum(slots) OVER (before ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS slots_left
        FROM (
            SELECT o.session_id, o.slots, budget_demand(o, p_even) AS demand FROM budget_shares o
            WHERE o.budget = b.budget AND o.session_id <> b.session_id
            UNION ALL SELECT b.session_id, b.slots, 'Infinity'
        ) AS s
        WINDOW before AS (ORDER BY demand / slots, session_id)
    ) AS levels
$$;

-- What a session used of its shares, by a sync, and what its shares are from now on: a row for each of its budgets. Its leases
-- say which these are.
--
-- Of each budget the sync names, it tells how many bytes were used (p_bytes), what rate the session kept to when it sent the
-- sync, if any (p_rates), and whether a transfer had to wait for the budget (p_waits). What is told by an older sync than the
-- newest one that was heard is counted, but decides nothing: the session may keep to something else by now.
--
-- Who never had to wait keeps a little more than he uses, as soon as somebody else has use for the rest.
CREATE FUNCTION settle_budgets(
    p_session bigint, p_sync bigint, p_fleet_rate bigint, p_budgets text[], p_bytes bigint[], p_rates bigint[], p_waits boolean[]
) RETURNS TABLE (budget text, offer bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_budget record;
    b budget_shares;
    v_rate bigint;
    v_elapsed double precision;
    v_speed double precision;
    v_others bigint;                    -- the others' shares
    v_slots bigint;                     -- everybody's slots
    v_waits boolean;                    -- whether somebody has nothing at all
    v_rivals boolean;                   -- whether somebody has less than he could use
    v_even double precision;
    v_fair bigint;
    v_want bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_budget IN
        SELECT n.name, bool_or(n.is_drawn) AS is_drawn, coalesce(max(u.bytes), 0) AS bytes, max(u.rate) AS rate,
            coalesce(bool_or(u.waits), false) AS waits
        FROM (
            SELECT s.budget AS name, false AS is_drawn FROM budget_shares s WHERE s.session_id = p_session
            UNION
            SELECT m.name, true
            FROM leases l JOIN groups g ON g.id = l.group_id JOIN origins o ON o.id = l.origin_id
            CROSS JOIN LATERAL (VALUES
                (CASE WHEN group_rate(g) IS NOT NULL THEN 'group:' || g.name END),
                (CASE WHEN o.bytes_per_second IS NOT NULL THEN 'origin:' || o.key END),
                (CASE WHEN p_fleet_rate IS NOT NULL THEN 'fleet' END)) AS m (name)
            WHERE l.session_id = p_session AND l.kind IN ('fetch', 'double') AND m.name IS NOT NULL
            UNION
            SELECT t.name, false FROM unnest(p_budgets, p_rates) AS t (name, rate) WHERE t.rate > 0
        ) AS n
        LEFT JOIN (
            SELECT name, least(sum(greatest(0, bytes)), 1e15)::bigint AS bytes, least(max(rate), 1e15)::bigint AS rate,
                bool_or(waits) AS waits
            FROM unnest(p_budgets, p_bytes, p_rates, p_waits) AS t (name, bytes, rate, waits) GROUP BY 1
        ) AS u ON u.name = n.name
        GROUP BY 1 ORDER BY 1
    LOOP
        v_rate := budget_rate(v_budget.name, p_fleet_rate);
        IF v_rate IS NULL THEN
            DELETE FROM budget_shares s WHERE s.budget = v_budget.name AND s.session_id = p_session;
            CONTINUE;
        END IF;
        -- A rate that was set while work was under way finds sessions without a share. Where a share was forgotten, in a crash or
        -- because it was not used and the answer that said so was lost, the session still keeps to something, which counts;
        -- without leases it is not granted any for that, since others may have it by now.
        INSERT INTO budget_shares (budget, session_id, slots, share, offer, used)
        SELECT v_budget.name, s.id, s.slots, n.rate, CASE WHEN v_budget.is_drawn THEN n.rate ELSE 0 END, n.rate
        FROM sessions s CROSS JOIN (SELECT greatest(0, coalesce(v_budget.rate, 0)) AS rate) AS n
        WHERE s.id = p_session ON CONFLICT DO NOTHING;
        SELECT * INTO b FROM budget_shares s WHERE s.budget = v_budget.name AND s.session_id = p_session FOR UPDATE;
        CONTINUE WHEN NOT FOUND;

        -- How fast it was: that can't be told in less than half a second.
        b.counted := least(b.counted + v_budget.bytes, 1000000000000000);
        b.had_to_wait := b.had_to_wait OR v_budget.waits;
        v_elapsed := extract(epoch FROM statement_timestamp() - b.used_at)::double precision;
        IF NOT v_budget.is_drawn AND b.counted = 0 AND (v_elapsed >= 2 OR b.share > 0 AND v_elapsed >= 0.5) THEN
            -- It draws from the budget no more. Who waits for a share asks for it again and again.
            DELETE FROM budget_shares s WHERE s.budget = b.budget AND s.session_id = p_session;
            CONTINUE;
        END IF;
        IF b.share > 0 AND v_elapsed >= 0.5 THEN
            v_speed := b.counted / v_elapsed;
            -- Whom his own gaps hold up more than the budget does, more would not help. A sync that was late is no gap.
            b.is_short := b.had_to_wait AND (b.used + v_speed) / 2 >= 0.5 * b.offer;
            b.used := greatest(v_speed, (b.used + 3 * v_speed) / 4);
            b.used_at := statement_timestamp();
            b.counted := 0;
            b.had_to_wait := false;
        END IF;

        IF p_sync > b.sync THEN
            b.sync := p_sync;
            -- What it keeps to by now is all that counts, or else what it is told from now on.
            b.share := greatest(b.offer, coalesce(v_budget.rate, b.share));
            SELECT coalesce(sum(s.share), 0), b.slots + coalesce(sum(s.slots), 0), coalesce(bool_or(s.share = 0), false),
                coalesce(bool_or(s.share = 0 OR s.is_short), false)
            INTO v_others, v_slots, v_waits, v_rivals
            FROM budget_shares s WHERE s.budget = b.budget AND s.session_id <> p_session;
            v_even := v_rate::double precision / v_slots;
            v_fair := fair_share(b, v_rate, v_even);
            v_want := CASE
                WHEN b.share = 0 OR b.is_short THEN v_fair
                WHEN v_rivals THEN least(v_fair, ceil(budget_demand(b, v_even)))
                ELSE least(v_fair, b.offer)
            END;
            IF v_want > b.share THEN
                -- More, as far as the others have given it back; that is certain only with the budget's lock.
                IF open_budget(b.budget, ARRAY[p_session]) THEN
                    SELECT coalesce(sum(s.share), 0) INTO v_others
                    FROM budget_shares s WHERE s.budget = b.budget AND s.session_id <> p_session;
                    b.offer := greatest(b.share, least(v_want, v_rate - v_others));
                    -- What it will make of that, the time before doesn't tell.
                    IF b.share = 0 AND b.offer < v_even * b.slots / 4 THEN
                        b.offer := 0;       -- crumbs
                    ELSIF b.share = 0 THEN
                        b.used := b.offer;
                        b.is_short := true;
                        b.used_at := statement_timestamp() + interval '1 s';
                    ELSIF b.offer > 1.1 * b.share THEN
                        b.used_at := statement_timestamp();
                        b.counted := 0;
                        b.had_to_wait := false;
                    END IF;
                    b.share := b.offer;
                END IF;
            ELSIF v_want < 0.97 * b.offer OR v_waits OR v_others + b.share > v_rate THEN
                -- Small differences are left alone: what is moved is of use to nobody for a moment.
                b.offer := least(b.offer, v_want);
            END IF;
        END IF;
        UPDATE budget_shares s
        SET share = b.share, offer = b.offer, sync = b.sync, used = b.used, is_short = b.is_short, used_at = b.used_at,
            counted = b.counted, had_to_wait = b.had_to_wait
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
