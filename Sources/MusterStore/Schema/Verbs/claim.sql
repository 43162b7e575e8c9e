-- Grants leases (I1, I2, I5).
--
-- One call serves many sessions at once, each with its newest sync, the lanes that it may open (p_rooms), how many leases it takes beyond these
-- (p_ahead), and whether it takes one for an origin without a connection (p_spare, adr/0051). For each sink it takes every lock first and reads counts in later statements, whose snapshots are newer than the locks: a statement that
-- locks and counts at once grants beyond a cap (I5). Returns the chunks that are leased; `is_limited` marks those that a byte budget bounds. `c` is the
-- claim in progress (type `claim`, Tables/0002_leasing.sql): `slots` are leases that may be granted, `openings` lanes that may be opened. Which group
-- goes first is decided in sharing.sql, which mirror in mirrors.sql.
CREATE FUNCTION share_leases(p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_ahead integer[], p_spare boolean[], p_policy policy)
RETURNS TABLE (chunk_id bigint, is_limited boolean)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    c claim;
    v_ids bigint[];                     -- the sessions that may be granted anything, and how many leases and lanes each
    v_rooms integer[];
    v_lanes integer[];
    v_spare bigint[];                   -- the sessions that have one slot more for an origin without a connection
    v_sink text;
    v_full bigint[];                    -- the sessions in which this sink is full
BEGIN
    -- The sessions that may be granted anything: alive, not draining, and asking with their newest sync.
    PERFORM s.id FROM sessions s WHERE s.id = ANY (p_sessions) ORDER BY s.id FOR NO KEY UPDATE;
    SELECT array_agg(s.id ORDER BY s.id),
        array_agg(least(r.room + r.ahead, p_policy.session_cap - h.held)::integer ORDER BY s.id),
        array_agg(r.room ORDER BY s.id), array_agg(s.id ORDER BY s.id) FILTER (WHERE r.spare AND r.room = 0 AND h.held < p_policy.session_cap)
    INTO v_ids, v_rooms, v_lanes, v_spare
    FROM unnest(p_sessions, p_sequences, p_rooms, p_ahead, p_spare) AS r (session_id, sequence, room, ahead, spare)
    JOIN sessions s ON s.id = r.session_id
    CROSS JOIN LATERAL (SELECT count(*) AS held FROM leases l WHERE l.session_id = s.id) AS h
    WHERE s.sequence = r.sequence AND NOT s.draining AND s.expires_at > statement_timestamp();

    c.origin_cap := p_policy.origin_cap;
    c.fleet_rate := p_policy.fleet_rate;
    c.granted := '{}';
    c.limited := '{}';
    -- One sink after the other. A sink may be in trouble at one worker and usable at another. In a full sink files are deleted, and nothing else is
    -- done.
    FOR v_sink IN
        SELECT DISTINCT sink FROM sessions s, unnest(s.sinks) AS sink
        WHERE s.id = ANY (v_ids) AND (sink <> ALL (s.parked) OR sink = ANY (s.full_sinks)) ORDER BY sink
    LOOP
        c.sink := v_sink;
        -- Leases for an earlier sink take up the session's slots for this one.
        SELECT coalesce(array_agg(r.id ORDER BY turn, r.id), '{}'),
            coalesce(array_agg(r.id ORDER BY turn, r.id) FILTER (WHERE turn <= r.lanes - g.granted), '{}')
        INTO c.slots, c.openings
        FROM unnest(v_ids, v_rooms, v_lanes) AS r (id, room, lanes)
        JOIN sessions s ON s.id = r.id AND v_sink = ANY (s.sinks) AND (v_sink <> ALL (s.parked) OR v_sink = ANY (s.full_sinks))
        CROSS JOIN LATERAL (
            SELECT count(*)::integer AS granted FROM leases l WHERE l.session_id = r.id AND l.chunk_id = ANY (c.granted)) AS g
        CROSS JOIN generate_series(1, r.room - g.granted) AS turn;
        c := grant_purges(c);
        SELECT array_agg(s.id) INTO v_full FROM sessions s WHERE s.id = ANY (v_ids) AND v_sink = ANY (s.full_sinks);
        IF v_full IS NOT NULL THEN
            c.slots := ARRAY(SELECT id FROM unnest(c.slots) WITH ORDINALITY AS u (id, n) WHERE id <> ALL (v_full) ORDER BY n);
            c.openings := ARRAY(SELECT id FROM unnest(c.openings) WITH ORDINALITY AS u (id, n) WHERE id <> ALL (v_full) ORDER BY n);
        END IF;
        c := grant_to_groups(c);
        IF v_spare IS NOT NULL THEN
            c := grant_spare(c, v_spare);
        END IF;
    END LOOP;
    RETURN QUERY SELECT g.id, g.id = ANY (c.limited) FROM unnest(c.granted) AS g (id);
END
$$;

-- Leases purges, which delete leftovers of cancelled tasks and old content versions, before all else: they are quick and free storage.
CREATE FUNCTION grant_purges(c claim) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_picked bigint[];
BEGIN
    SELECT array_agg(p.id) INTO v_picked FROM (
        SELECT id FROM ready_chunks
        WHERE sink = c.sink AND group_id = 0 AND kind = 'purge' AND status = 'ready' ORDER BY id LIMIT cardinality(c.slots) FOR UPDATE SKIP LOCKED
    ) AS p;
    RETURN grant_chunks(c, v_picked, c.slots, NULL, 0, NULL);
END
$$;

-- Leases work of the sink's groups, the most urgent group and then the least served one first (I15).
CREATE FUNCTION grant_to_groups(c claim) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_groups bigint[];
    v_priority integer;
BEGIN
    IF c.slots = '{}' THEN RETURN c; END IF;
    v_groups := claimable_groups(c);
    IF v_groups IS NULL THEN RETURN c; END IF;
    -- The lock of an origin is for its cap; the lock of a group serialises every verb on its tasks and chunks from here on.
    SELECT array_agg(locked.id) INTO c.origins FROM (
        SELECT o.id FROM origins o
        WHERE o.id IN (
            SELECT r.origin_id FROM unnest(v_groups) AS g (id), ready_origins(g.id) AS r (origin_id)
            UNION ALL SELECT r.origin_id FROM unnest(v_groups) AS g (id), pull_sources(g.id) AS r)
        ORDER BY o.id FOR NO KEY UPDATE
    ) AS locked;
    v_groups := lock_free_groups(v_groups);
    IF v_groups = '{}' THEN RETURN c; END IF;
    -- Free lanes are counted once: from here on only this claim opens lanes.
    c.free := ARRAY(SELECT free_lanes(o, c.origin_cap) FROM unnest(c.origins) WITH ORDINALITY AS u (id, n)
        JOIN origins o ON o.id = u.id ORDER BY u.n);
    PERFORM share_paths(c.sink);
    PERFORM level_groups(v_groups);
    PERFORM unlevel_groups(v_groups);
    -- The other groups get what the more urgent ones can't use.
    FOR v_priority IN SELECT DISTINCT g.priority FROM groups g WHERE g.id = ANY (v_groups) ORDER BY 1 DESC LOOP
        EXIT WHEN c.slots = '{}';
        c := grant_unshared(c, v_groups, v_priority);
        c := grant_shared(c, v_groups, v_priority);
    END LOOP;
    RETURN c;
END
$$;

-- The groups of a sink that can be granted leases now, 32 at the most; NULL when there is none. A group whose origins are all parked or busy does not
-- block others. A group that may not run, since it is paused or waits, is only granted finalizing.
CREATE FUNCTION claimable_groups(c claim) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_queues bigint[] := CASE WHEN cardinality(c.slots) > cardinality(c.openings) THEN c.slots ELSE '{}' END;
    g groups;
    v_origins bigint[];
    v_new bigint[];
    v_seen bigint[] := '{}';            -- the origins that were looked at, each once
    v_open bigint[] := '{}';            -- those of them that may have another lane
    v_queued bigint[] := '{}';          -- those to which these sessions have lanes
    v_groups bigint[];
BEGIN
    FOR g IN
        SELECT * FROM groups u
        WHERE u.sink = c.sink AND u.state IN ('open', 'sealed') AND (u.finalizing > 0 OR group_may_run(u))
            AND (c.spare IS NULL OR may_take(u, c.spare))
        ORDER BY u.priority DESC, u.served, u.id
    LOOP
        v_origins := ARRAY(SELECT ready_origins(g.id));
        IF group_may_run(g) AND NOT v_origins && v_open THEN
            v_origins := v_origins || ARRAY(SELECT r.origin_id FROM pull_sources(g.id) AS r);
        END IF;
        v_new := ARRAY(SELECT id FROM unnest(v_origins) AS id WHERE id > 0 AND id <> ALL (v_seen));
        IF v_new <> '{}' AND group_may_run(g) THEN
            v_seen := v_seen || v_new;
            v_open := v_open || ARRAY(
                SELECT o.id FROM origins o
                WHERE o.id = ANY (v_new) AND is_awake(o) AND free_lanes(o, c.origin_cap) > 0);
            v_queued := v_queued || ARRAY(
                SELECT o.id FROM origins o WHERE o.id = ANY (v_new) AND NOT is_resting(o) AND has_queue(o.id, v_queues, NULL));
        END IF;
        IF 0 = ANY (v_origins)
            OR group_may_run(g) AND (
                v_origins && v_open AND coalesce(free_lanes_of(g.id, g.max_connections) > 0, true)
                OR v_origins && v_queued AND (g.max_connections IS NULL OR (
                    SELECT bool_or(has_queue(id, v_queues, g.id)) FROM unnest(v_origins) AS id WHERE id = ANY (v_queued))))
        THEN
            v_groups := v_groups || g.id;
            EXIT WHEN cardinality(v_groups) = 32;
        END IF;
    END LOOP;
    RETURN v_groups;
END
$$;

-- Leases work that brings no bytes, so that groups need not share it: complete files are put in place, and resolvers are asked.
CREATE FUNCTION grant_unshared(c claim, p_groups bigint[], p_priority integer) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_group record;
    v_picked bigint[];
BEGIN
    FOR v_group IN
        SELECT g.id, group_may_run(g) AS runs FROM groups g
        WHERE g.id = ANY (p_groups) AND g.priority = p_priority AND is_unfinished(g.state) AND EXISTS (
            SELECT 1 FROM ready_chunks r WHERE r.group_id = g.id AND r.origin_id = 0 AND r.status = 'ready')
        ORDER BY g.served, g.id
    LOOP
        EXIT WHEN c.slots = '{}';
        SELECT array_agg(p.id) INTO v_picked FROM (
            SELECT id FROM ready_chunks
            WHERE group_id = v_group.id AND origin_id = 0 AND status = 'ready' AND sink = c.sink AND (kind <> 'resolve' OR v_group.runs)
            ORDER BY rank, id LIMIT cardinality(c.slots) FOR UPDATE SKIP LOCKED
        ) AS p;
        c := grant_chunks(c, without_disputed(v_picked), c.slots, NULL, v_group.id, NULL);
    END LOOP;
    RETURN c;
END
$$;

-- Leases fetches, shared by bytes. A round hands out all free slots as if all chunks of a group were as large as its next one: the groups are filled
-- up to a common service level (`group_turns`). A group whose chunks turn out larger stops at that level, and the slots that are left go to the next
-- round.
CREATE FUNCTION grant_shared(c claim, p_groups bigint[], p_priority integer) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_hungry bigint[];                  -- the groups that may have more to take
    v_turn record;
    v_before integer;
BEGIN
    SELECT array_agg(g.id) INTO v_hungry FROM groups g
    WHERE g.id = ANY (p_groups) AND g.priority = p_priority AND is_unfinished(g.state) AND group_may_run(g);
    WHILE c.slots <> '{}' AND v_hungry <> '{}' LOOP
        FOR v_turn IN SELECT * FROM group_turns(v_hungry, cardinality(c.slots)) LOOP
            EXIT WHEN c.slots = '{}';
            c.group_id := v_turn.id;
            c.group_name := v_turn.name;
            c.group_rate := v_turn.rate;
            c.group_cap := v_turn.max_connections;
            c.mean := v_turn.mean;
            c.mixes := v_turn.mixes;
            c.allowance := v_turn.allowance;
            c.repeats := false;
            c.room := least(v_turn.want, cardinality(c.slots));
            v_before := cardinality(c.granted);
            c := grant_turn(c);
            -- A group that took less than it was offered is exhausted.
            IF cardinality(c.granted) - v_before < v_turn.want AND (c.allowance IS NULL OR c.allowance > 0) AND NOT c.repeats THEN
                v_hungry := array_remove(v_hungry, v_turn.id);
            END IF;
        END LOOP;
    END LOOP;
    RETURN c;
END
$$;

-- Grants one group's turn, one origin after the other. Where several share the room, what one of them can't use is shared again among the others.
CREATE FUNCTION grant_turn(c claim) RETURNS claim
LANGUAGE plpgsql AS $$
DECLARE
    v_origin record;
    v_idle bigint[] := '{}';            -- the origins that have nothing more to take for the group
    v_again boolean;
    v_is_limited boolean;
    v_usable bigint[];                  -- the slots whose sessions may draw from the byte budgets
    v_places record;
    v_want integer;
    v_picked bigint[];
    v_found integer;
    v_charge bigint;
    v_opened integer;                   -- lanes that this turn has opened
BEGIN
    LOOP
        v_again := false;
        FOR v_origin IN SELECT * FROM origin_turns(c, v_idle) LOOP
            -- A session without a share of a byte budget gets nothing that would have to draw from it.
            v_usable := c.slots;
            v_is_limited := c.fleet_rate IS NOT NULL OR c.group_rate IS NOT NULL OR v_origin.rate IS NOT NULL;
            IF v_is_limited THEN
                v_usable := usable_slots(c.slots, c.sink, c.fleet_rate, c.group_name, c.group_rate, v_origin.key, v_origin.rate);
            END IF;
            v_places := lane_places(c, v_origin.id, v_usable, v_origin.free);
            -- Leases that wait in lanes leave room for the lanes of the origins that follow.
            v_want := least(cardinality(v_places.sessions), c.room - v_origin.later);
            CONTINUE WHEN v_want <= 0;
            IF c.mixes THEN
                PERFORM pull_chunks(c.group_id, v_origin.id, v_want);
            END IF;
            SELECT p.chunks, p.charge INTO v_picked, v_charge FROM pick_chunks(c, v_origin.id, v_want) AS p;
            -- A file that another task is fetching is not fetched twice (reuse.sql), and no file is put at a path where another task may be at work
            -- (paths.sql). The chunks behind such a chunk are considered in another round.
            v_found := coalesce(cardinality(v_picked), 0);
            v_picked := without_repeats(without_disputed(v_picked), c.group_id);
            c.repeats := c.repeats OR coalesce(cardinality(v_picked), 0) < v_found;
            IF v_origin.is_shared AND coalesce(cardinality(v_picked), 0) < v_want
                AND (c.allowance IS NULL OR coalesce(v_charge, 0) < c.allowance)
            THEN
                v_idle := v_idle || v_origin.id;
                v_again := true;
            END IF;
            CONTINUE WHEN v_picked IS NULL;
            c := grant_chunks(c, v_picked, v_places.sessions, v_places.lanes, c.group_id, c.mean);
            v_opened := least(v_places.opened, cardinality(v_picked));
            c.openings := without_slots(c.openings, v_places.sessions[:v_opened]);
            UPDATE origins o SET try_at = statement_timestamp() + interval '10 s'
            WHERE o.id = v_origin.id AND is_resting(o) AND v_opened > 0;
            c.free[array_position(c.origins, v_origin.id)] := c.free[array_position(c.origins, v_origin.id)] - v_opened;
            IF v_is_limited THEN
                c.limited := c.limited || v_picked;
            END IF;
            c.room := c.room - cardinality(v_picked);
            c.allowance := c.allowance - v_charge;
            EXIT WHEN c.slots = '{}' OR c.room = 0 OR c.allowance <= 0;
        END LOOP;
        EXIT WHEN NOT v_again OR c.slots = '{}' OR c.room <= 0 OR c.allowance <= 0;
    END LOOP;
    RETURN c;
END
$$;
