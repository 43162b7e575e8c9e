-- How a session's share of a byte budget follows what it uses (adr/0009, budgets.sql).

-- Takes in what a session used of its shares, as a sync reports it, and returns its shares from now on: a row for each of its budgets.
--
-- For each budget that it names, the sync tells how many bytes were used (p_bytes), what rate the session kept to when it sent the sync, if any
-- (p_rates), and whether a transfer had to wait for the budget (p_waits). The bytes of a sync that is not the newest one are counted, but it decides
-- nothing, even if the share has been forgotten since: the session may keep to another rate by now.
CREATE FUNCTION settle_budgets(
    p_session bigint, p_sync bigint, p_fleet_rate bigint, p_budgets text[], p_bytes bigint[], p_rates bigint[], p_waits boolean[]
) RETURNS TABLE (budget text, offer bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_told record;
    b budget_shares;
    v_rate bigint;
    v_elapsed double precision;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_told IN SELECT * FROM told_budgets(p_session, p_fleet_rate, p_budgets, p_bytes, p_rates, p_waits) LOOP
        v_rate := budget_rate(v_told.name, p_fleet_rate);
        IF v_rate IS NULL THEN
            DELETE FROM budget_shares s WHERE s.budget = v_told.name AND s.session_id = p_session;
            CONTINUE;
        END IF;
        -- Sessions have no share yet if the rate was set while work was under way. If a share was forgotten, in a crash or because it was not used
        -- and the answer that said so was lost, the session still keeps to its old rate, which counts. Without leases it is offered nothing for that,
        -- since other sessions may have it by now.
        INSERT INTO budget_shares (budget, session_id, slots, share, offer, used)
        SELECT v_told.name, s.id, s.slots, n.rate, CASE WHEN v_told.is_drawn THEN n.rate ELSE 0 END, n.rate
        FROM sessions s CROSS JOIN (SELECT greatest(0, coalesce(v_told.rate, 0)) AS rate) AS n
        WHERE s.id = p_session AND s.sequence <= p_sync ON CONFLICT DO NOTHING;
        SELECT * INTO b FROM budget_shares s WHERE s.budget = v_told.name AND s.session_id = p_session FOR UPDATE;
        CONTINUE WHEN NOT FOUND;

        b.counted := least(b.counted + v_told.bytes, 1000000000000000);
        b.had_to_wait := b.had_to_wait OR v_told.waits;
        v_elapsed := extract(epoch FROM statement_timestamp() - b.used_at)::double precision;
        IF p_sync > b.sync AND NOT v_told.is_drawn AND b.counted = 0 AND (v_elapsed >= 2 OR b.share > 0 AND v_elapsed >= 0.5) THEN
            -- The session no longer draws from the budget. A session that waits for a share keeps asking for it.
            DELETE FROM budget_shares s WHERE s.budget = b.budget AND s.session_id = p_session;
            CONTINUE;
        END IF;
        b := measured_share(b, v_elapsed);
        IF p_sync > b.sync THEN
            b.sync := p_sync;
            -- The rate that the session keeps to now counts, or its offer if that is more.
            b.share := greatest(b.offer, coalesce(v_told.rate, b.share));
            b := offered_share(b, v_rate);
        END IF;
        UPDATE budget_shares s
        SET share = b.share, offer = b.offer, sync = b.sync, used = b.used, is_short = b.is_short, used_at = b.used_at,
            counted = b.counted, had_to_wait = b.had_to_wait
        WHERE s.budget = b.budget AND s.session_id = p_session;
    END LOOP;
    RETURN QUERY SELECT s.budget, s.offer FROM budget_shares s WHERE s.session_id = p_session ORDER BY 1;
END
$$;

-- The budgets that concern a session: those of which it has a share, those that its leases draw from (`is_drawn`), and those that its
-- sync says it keeps to; with what the sync tells of each.
CREATE FUNCTION told_budgets(
    p_session bigint, p_fleet_rate bigint, p_budgets text[], p_bytes bigint[], p_rates bigint[], p_waits boolean[]
) RETURNS TABLE (name text, is_drawn boolean, bytes bigint, rate bigint, waits boolean)
LANGUAGE sql STABLE AS $$
    SELECT n.name, bool_or(n.is_drawn), coalesce(max(u.bytes), 0), max(u.rate), coalesce(bool_or(u.waits), false)
    FROM (
        SELECT s.budget AS name, false AS is_drawn FROM budget_shares s WHERE s.session_id = p_session
        UNION
        SELECT m.name, true
        FROM leases l JOIN groups g ON g.id = l.group_id JOIN origins o ON o.id = l.origin_id
        CROSS JOIN LATERAL (VALUES
            (CASE WHEN group_rate(g) IS NOT NULL THEN 'group:' || g.name END),
            (CASE WHEN o.bytes_per_second IS NOT NULL THEN 'origin:' || o.key END),
            (CASE WHEN p_fleet_rate IS NOT NULL THEN 'fleet' END)) AS m (name)
        WHERE l.session_id = p_session AND l.kind = 'fetch' AND m.name IS NOT NULL
        UNION
        SELECT t.name, false FROM unnest(p_budgets, p_rates) AS t (name, rate) WHERE t.rate > 0
    ) AS n
    LEFT JOIN (
        SELECT name, least(sum(greatest(0, bytes)), 1e15)::bigint AS bytes, least(max(rate), 1e15)::bigint AS rate,
            bool_or(waits) AS waits
        FROM unnest(p_budgets, p_bytes, p_rates, p_waits) AS t (name, bytes, rate, waits) GROUP BY 1
    ) AS u ON u.name = n.name
    GROUP BY 1 ORDER BY 1
$$;

-- Returns a share with the recent use of its session. Measuring takes at least half a second.
CREATE FUNCTION measured_share(b budget_shares, p_elapsed double precision) RETURNS budget_shares
LANGUAGE plpgsql AS $$
DECLARE
    v_speed double precision;
BEGIN
    IF b.share > 0 AND p_elapsed >= 0.5 THEN
        v_speed := b.counted / p_elapsed;
        -- A larger share does not help a session that is held up more by its own gaps than by the budget. A late sync is no gap.
        b.is_short := b.had_to_wait AND (b.used + v_speed) / 2 >= 0.5 * b.offer;
        b.used := greatest(v_speed, (b.used + 3 * v_speed) / 4);
        b.used_at := statement_timestamp();
        b.counted := 0;
        b.had_to_wait := false;
    END IF;
    RETURN b;
END
$$;

-- Returns a share with the next offer to its session. A session that never had to wait keeps a little more than it uses, as soon as another session
-- can use the rest.
CREATE FUNCTION offered_share(b budget_shares, p_rate bigint) RETURNS budget_shares
LANGUAGE plpgsql AS $$
DECLARE
    v_others bigint;                    -- the others' shares
    v_slots bigint;                     -- the slots of all
    v_waits boolean;                    -- whether a session has nothing at all
    v_rivals boolean;                   -- whether another one has less than it could use
    v_even double precision;
    v_fair bigint;
    v_want bigint;
BEGIN
    SELECT coalesce(sum(s.share), 0), b.slots + coalesce(sum(s.slots), 0), coalesce(bool_or(s.share = 0), false),
        coalesce(bool_or(s.share = 0 OR s.is_short), false)
    INTO v_others, v_slots, v_waits, v_rivals
    FROM budget_shares s WHERE s.budget = b.budget AND s.session_id <> b.session_id;
    v_even := p_rate::double precision / v_slots;
    v_fair := fair_share(b, p_rate, v_even);
    v_want := CASE
        WHEN b.share = 0 OR b.is_short THEN v_fair
        WHEN v_rivals THEN least(v_fair, ceil(budget_demand(b, v_even)))
        ELSE least(v_fair, b.offer)
    END;
    IF v_want > b.share THEN
        -- The session gets more, as far as the others have given it back; that is certain only with the budget's lock.
        IF open_budget(b.budget, ARRAY[b.session_id]) THEN
            SELECT coalesce(sum(s.share), 0) INTO v_others
            FROM budget_shares s WHERE s.budget = b.budget AND s.session_id <> b.session_id;
            b.offer := greatest(b.offer, least(v_want, p_rate - v_others));
            -- Earlier use does not tell how a session will use a new share.
            IF b.share = 0 AND b.offer < v_even * b.slots / 4 THEN
                b.offer := 0;           -- no tiny shares
            ELSIF b.share = 0 THEN
                b.used := b.offer;
                b.is_short := true;
                b.used_at := statement_timestamp() + interval '1 s';
            ELSIF b.offer > 1.1 * b.share THEN
                b.used_at := statement_timestamp();
                b.counted := 0;
                b.had_to_wait := false;
            END IF;
            b.share := greatest(b.share, b.offer);
        END IF;
    ELSIF v_want < 0.97 * b.offer OR v_waits OR v_others + b.share > p_rate THEN
        -- Small differences are left alone: a rate that moves between sessions is unused for a moment.
        b.offer := least(b.offer, v_want);
    END IF;
    RETURN b;
END
$$;

-- How much of a budget a session needs, in bytes per second: its use and a little more, half as much again if its share was too small, and any amount
-- if it waits for a share. Never so little that it could not show that it needs more. p_even is an even part of the rate for each slot.
CREATE FUNCTION budget_demand(b budget_shares, p_even double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN b.share = 0 THEN 'Infinity'
        WHEN b.is_short THEN greatest(b.used * 3 / 2, p_even * b.slots / 4)
        ELSE greatest(b.used * 33 / 32, p_even * b.slots / 32)
    END
$$;

-- The part of a rate, in bytes per second, for a session that would use any amount: the rest after what the others need, and not less than its slots'
-- part if the others could use more too.
CREATE FUNCTION fair_share(b budget_shares, p_rate bigint, p_even double precision) RETURNS bigint
LANGUAGE sql STABLE AS $$
    -- Every session is served up to the same level for each of its slots, or has what it needs if that is less. Sessions are sorted by their need for
    -- each slot. If the first k have what they need, the level is the rest of the rate, divided by the slots of the others. All k are tried: the
    -- highest level is the one that uses up the rate.
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
