-- The grant of leases where groups share by bytes and have byte budgets.

-- Finds the places of groups among those of their priority, in bytes of service over weight. The caller holds their locks.
CREATE FUNCTION level_groups(p_groups bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever was idle starts level with the least served of the others: he neither catches up nor waits.
    UPDATE groups g
    SET shares_at = g.priority,
        served = CASE WHEN g.shares_at IS NULL THEN greatest(g.served, l.served) ELSE l.served END
    FROM (
        SELECT priority, coalesce(min(served) FILTER (WHERE shares_at = priority), max(served)) AS served
        FROM groups WHERE id = ANY (p_groups) GROUP BY 1
    ) AS l
    WHERE g.id = ANY (p_groups) AND g.priority = l.priority AND g.shares_at IS DISTINCT FROM g.priority;

    -- Whoever could not be served for long, since an origin was busy or parked, is not owed all of that: no more than one large
    -- chunk lies between a group and the next one. All below such a gap move together, so that they stay fair to each other.
    UPDATE groups g SET served = g.served + f.shift
    FROM (
        SELECT id, sum(greatest(0, gap - 268435456)) OVER (PARTITION BY priority ORDER BY served DESC, id)::bigint AS shift
        FROM (
            SELECT id, priority, served,
                lag(served) OVER (PARTITION BY priority ORDER BY served DESC, id) - served AS gap
            FROM groups WHERE id = ANY (p_groups)
        ) AS places
    ) AS f
    WHERE g.id = f.id AND f.shift > 0;
END
$$;

-- Forgets the places of groups that have nothing to lease while those of p_groups go on: what they don't ask for is not owed
-- to them. Groups that somebody else has locked are left for the next time.
CREATE FUNCTION unlevel_groups(p_groups bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE groups u SET shares_at = NULL
    FROM (
        SELECT g.id FROM groups g
        JOIN (
            SELECT sink, priority, min(served) AS served FROM groups WHERE id = ANY (p_groups) GROUP BY 1, 2
        ) AS l ON g.sink = l.sink AND g.priority = l.priority AND g.served < l.served
        WHERE g.state IN ('open', 'sealed') AND g.shares_at IS NOT NULL AND g.id <> ALL (p_groups)
            AND (NOT group_may_run(g) OR NOT EXISTS (
                    SELECT 1 FROM ready_chunks c WHERE c.group_id = g.id AND c.status = 'ready' AND c.origin_id > 0)
                AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0))
        FOR NO KEY UPDATE OF g SKIP LOCKED
    ) AS idle
    WHERE u.id = idle.id;
END
$$;

-- Locks groups in the order of locks, but for those that somebody keeps for long: a claim waits for one of them, for a moment, and goes on
-- without it then, so that an addition of millions of tasks holds up nobody but its own group. Whoever held it has news when he lets
-- it go. Returns those whose locks are held.
CREATE FUNCTION lock_free_groups(p_groups bigint[]) RETURNS bigint[]
LANGUAGE plpgsql
SET lock_timeout = '200ms'
AS $$
DECLARE
    v_group bigint;
    v_locked bigint[] := '{}';
    v_waits boolean := true;
BEGIN
    FOR v_group IN SELECT id FROM unnest(p_groups) AS id ORDER BY id LOOP
        PERFORM g.id FROM groups g WHERE g.id = v_group FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            v_locked := v_locked || v_group;
        ELSIF v_waits THEN
            BEGIN
                PERFORM g.id FROM groups g WHERE g.id = v_group FOR NO KEY UPDATE;
                IF FOUND THEN
                    v_locked := v_locked || v_group;
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                v_waits := false;
            END;
        END IF;
    END LOOP;
    RETURN v_locked;
END
$$;

-- Makes leases of chunks that the caller has locked: the first one for the first session of p_slots, and so on.
CREATE FUNCTION lease_chunks(p_chunks bigint[], p_slots bigint[], p_group bigint, p_mean bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_charged bigint;
    v_starts integer;
BEGIN
    WITH taken AS MATERIALIZED (
        DELETE FROM ready_chunks WHERE id = ANY (p_chunks) RETURNING *
    ), granted AS MATERIALIZED (
        INSERT INTO leases (chunk_id, session_id, sync, kind, task_id, group_id, origin_id, source, sink, version, first, last,
            resume, durable, crc, rank, attempts, deaths, moves, remove_path, remove_size, charged)
        SELECT t.id, p_slots[t.n], s.sequence, t.kind, t.task_id, t.group_id, t.origin_id, t.source, t.sink, t.version, t.first,
            t.last, t.resume, t.resume, t.crc, t.rank, t.attempts, t.deaths, t.moves, t.remove_path, t.remove_size,
            CASE WHEN t.kind = 'fetch' THEN chunk_charge(t.first, t.last, t.resume,
                CASE WHEN p_mean IS NOT NULL AND t.first = 0 THEN mean_of(t.task_id, p_mean) END) ELSE 0 END
        FROM (SELECT taken.*, row_number() OVER (ORDER BY rank, id) AS n FROM taken) AS t
        JOIN sessions s ON s.id = p_slots[t.n]
        RETURNING task_id, kind, charged
    ), touched AS (
        -- A task becomes active with its first lease.
        UPDATE tasks t
        SET leases = t.leases + n.count, state = 'active', started_at = coalesce(t.started_at, statement_timestamp())
        FROM (SELECT g.task_id, count(*)::integer AS count FROM granted g WHERE g.kind = 'fetch' GROUP BY 1) AS n
        JOIN tasks before ON before.id = n.task_id
        WHERE t.id = n.task_id
        RETURNING (before.state = 'queued')::integer AS starts
    )
    SELECT sum(g.charged), coalesce((SELECT sum(starts) FROM touched), 0) INTO v_charged, v_starts FROM granted g;
    IF v_charged > 0 THEN
        UPDATE groups g
        SET queued = g.queued - v_starts, active = g.active + v_starts, served = g.served + v_charged / g.weight
        WHERE g.id = p_group;
    END IF;
END
$$;

-- The grant of leases: the one place where a lease comes into being.
--
-- One call serves many sessions at once, each with its newest sync and its room. First every lock is taken, then counts are
-- read by later statements, whose snapshots are newer than the locks: a statement that locks and counts at once grants beyond
-- a cap (I5). p_fleet_rate is the byte budget of the whole fleet, if it has one. What came later is kept from a coordinator that
-- would not understand it (F18): with p_is_plain resolve leases, and chunks that go to another source than the one which taught
-- the version; without p_keeps_budgets whatever has a byte budget.
CREATE FUNCTION share_leases(
    p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_origin_cap integer, p_session_cap integer,
    p_fleet_rate bigint, p_is_plain boolean, p_keeps_budgets boolean
) RETURNS TABLE (chunk_id bigint, is_limited boolean)
LANGUAGE plpgsql VOLATILE
-- Its statements are planned once per connection: planning them for the values of every call takes longer than running
-- them. The plans must do for a queue that may hold ten chunks or ten million, whatever it held when they were made: few
-- rows by their index.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_ids bigint[];                     -- the sessions that may be granted anything, and how many leases each
    v_rooms integer[];
    v_sink text;
    v_slots bigint[];                   -- a session id for every lease that may be granted still, sessions taking turns
    v_usable bigint[];                  -- those of them that may draw from the byte budgets
    v_left integer;                     -- how many of them are still free
    v_groups bigint[];
    v_locked bigint[];                  -- the origins whose locks are held: no other one is granted on
    v_priority integer;
    v_hungry bigint[];                  -- the groups of the priority that may have more to take
    v_group record;
    v_origin record;
    v_group_room integer;               -- how many leases the group may have still in this turn
    v_allowance double precision;       -- for how many bytes; NULL: there is nobody else
    v_origin_room integer;
    v_want integer;
    v_count integer;
    v_charge bigint;
    v_picked bigint[];
    v_found integer;
    v_repeats boolean;                  -- whether some of what was found waits for the file of another task now
    v_idle bigint[];                    -- the mirrors that have nothing more to take for the group
    v_again boolean;
    v_granted bigint[] := '{}';
    v_limited bigint[] := '{}';         -- what of it has a byte budget
BEGIN
    -- 1. The sessions that may be granted anything: alive, not draining, and asking with their newest sync.
    PERFORM s.id FROM sessions s WHERE s.id = ANY (p_sessions) ORDER BY s.id FOR NO KEY UPDATE;
    SELECT array_agg(s.id ORDER BY s.id),
        array_agg(least(r.room, p_session_cap - (SELECT count(*) FROM leases l WHERE l.session_id = s.id))::integer
            ORDER BY s.id)
    INTO v_ids, v_rooms
    FROM unnest(p_sessions, p_sequences, p_rooms) AS r (session_id, sequence, room)
    JOIN sessions s ON s.id = r.session_id
    WHERE s.sequence = r.sequence AND NOT s.draining AND s.expires_at > statement_timestamp();

    -- 2. One sink after the other. A sink that is in trouble at one worker may be well at another.
    FOR v_sink IN
        SELECT DISTINCT sink FROM sessions s, unnest(s.sinks) AS sink
        WHERE s.id = ANY (v_ids) AND sink <> ALL (s.parked) ORDER BY sink
    LOOP
        -- What a session got for an earlier sink is not free for this one.
        SELECT array_agg(r.id ORDER BY turn, r.id) INTO v_slots
        FROM unnest(v_ids, v_rooms) AS r (id, room)
        JOIN sessions s ON s.id = r.id AND v_sink = ANY (s.sinks) AND v_sink <> ALL (s.parked)
        CROSS JOIN generate_series(1, r.room - (
            SELECT count(*)::integer FROM leases l WHERE l.session_id = r.id AND l.chunk_id = ANY (v_granted))) AS turn;
        v_left := coalesce(array_length(v_slots, 1), 0);
        CONTINUE WHEN v_left = 0;

        -- 3. Leftovers of cancelled tasks and of old content versions go first: they are quick and free storage.
        SELECT array_agg(p.id) INTO v_picked FROM (
            SELECT id FROM ready_chunks
            WHERE sink = v_sink AND kind = 'purge' AND status = 'ready' ORDER BY id LIMIT v_left FOR UPDATE SKIP LOCKED
        ) AS p;
        IF v_picked IS NOT NULL THEN
            PERFORM lease_chunks(v_picked, v_slots, 0, NULL);
            v_granted := v_granted || v_picked;
            v_slots := v_slots[array_length(v_picked, 1) + 1:];
            v_left := v_left - array_length(v_picked, 1);
        END IF;
        CONTINUE WHEN v_left = 0;

        -- 4. The groups that something could be granted to, the most urgent and then the least served first (I15). Groups
        --    whose origins are all parked or busy must not stand in the way of others. A group that may not run, since it is
        --    paused or waits, is only finalized.
        SELECT array_agg(candidate.id) INTO v_groups FROM (
            SELECT g.id FROM groups g
            WHERE g.sink = v_sink AND g.state IN ('open', 'sealed') AND (g.finalizing > 0 OR group_may_run(g))
                AND EXISTS (
                    SELECT 1 FROM ready_origins(g.id) AS r (origin_id) LEFT JOIN origins o ON o.id = r.origin_id
                    WHERE r.origin_id = 0 OR group_may_run(g)
                        AND (g.max_connections IS NULL OR g.max_connections > (
                            SELECT count(*) FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0))
                        AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
                        AND (SELECT count(*) FROM leases l WHERE l.origin_id = o.id) < allowed_connections(o, p_origin_cap)
                    UNION ALL
                    SELECT 1 FROM pull_sources(g.id) AS r JOIN origins o ON o.id = r.origin_id
                    WHERE group_may_run(g) AND NOT p_is_plain
                        AND (g.max_connections IS NULL OR g.max_connections > (
                            SELECT count(*) FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0))
                        AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
                        AND (SELECT count(*) FROM leases l WHERE l.origin_id = o.id) < allowed_connections(o, p_origin_cap))
            ORDER BY g.priority DESC, g.served, g.id LIMIT 32
        ) AS candidate;
        CONTINUE WHEN v_groups IS NULL;
        -- The locks: on the origin for its cap, on the group to serialise every verb on its tasks and chunks from here on.
        SELECT array_agg(locked.id) INTO v_locked FROM (
            SELECT o.id FROM origins o
            WHERE o.id IN (
                SELECT r.origin_id FROM unnest(v_groups) AS g (id), ready_origins(g.id) AS r (origin_id)
                UNION ALL SELECT r.origin_id FROM unnest(v_groups) AS g (id), pull_sources(g.id) AS r WHERE NOT p_is_plain)
            ORDER BY o.id FOR NO KEY UPDATE
        ) AS locked;
        v_groups := lock_free_groups(v_groups);
        CONTINUE WHEN v_groups = '{}';
        PERFORM level_groups(v_groups);
        PERFORM unlevel_groups(v_groups);

        -- 5. One priority after the other: what the more urgent groups can't use is for the others.
        FOR v_priority IN SELECT DISTINCT g.priority FROM groups g WHERE g.id = ANY (v_groups) ORDER BY 1 DESC LOOP
            EXIT WHEN v_left = 0;
            -- Files that are there already are put in place, and resolvers are asked: that brings no bytes, so that nobody has
            -- to share it.
            FOR v_group IN
                SELECT g.id, group_may_run(g) AS runs FROM groups g
                WHERE g.id = ANY (v_groups) AND g.priority = v_priority AND g.state IN ('open', 'sealed') AND EXISTS (
                    SELECT 1 FROM ready_chunks c WHERE c.group_id = g.id AND c.origin_id = 0 AND c.status = 'ready')
                ORDER BY g.served, g.id
            LOOP
                SELECT array_agg(p.id) INTO v_picked FROM (
                    SELECT id FROM ready_chunks
                    WHERE group_id = v_group.id AND origin_id = 0 AND status = 'ready'
                        AND (kind <> 'resolve' OR v_group.runs AND NOT p_is_plain)
                    ORDER BY rank, id LIMIT v_left FOR UPDATE SKIP LOCKED
                ) AS p;
                CONTINUE WHEN v_picked IS NULL;
                PERFORM lease_chunks(v_picked, v_slots, v_group.id, NULL);
                v_granted := v_granted || v_picked;
                v_slots := v_slots[array_length(v_picked, 1) + 1:];
                v_left := v_left - array_length(v_picked, 1);
                EXIT WHEN v_left = 0;
            END LOOP;

            -- The rest is shared by bytes. In every round all that is free is handed out as if chunks were as large as each
            -- group's next one: the groups are filled up to a common level of service. Where chunks turn out larger a group
            -- stops at that level, and what is free then is for the next round.
            SELECT array_agg(g.id) INTO v_hungry FROM groups g
            WHERE g.id = ANY (v_groups) AND g.priority = v_priority AND g.state IN ('open', 'sealed') AND group_may_run(g);
            WHILE v_left > 0 AND v_hungry <> '{}' LOOP
                FOR v_group IN
                    SELECT f.id, f.name, f.max_connections, f.mean, f.rate, f.mixes,
                        least(v_left, ceil((f.level - f.ahead) / f.cost))::integer AS want,
                        CASE WHEN f.others > 0 THEN (f.level - f.ahead) * f.weight END AS allowance
                    FROM (
                        -- Filled up to the level at which the k least served groups use all that is free; it is the lowest
                        -- one, since any further group only takes from it.
                        SELECT p.*, min((v_left + p.ahead_sum) / p.chunks_sum) OVER () AS level
                        FROM (
                            SELECT h.*, sum(h.ahead / h.cost) OVER w AS ahead_sum, sum(1 / h.cost) OVER w AS chunks_sum
                            FROM (
                                SELECT g.id, g.name, g.weight, g.max_connections, mean_size(g) AS mean, group_rate(g) AS rate,
                                    (g.served - min(g.served) OVER ())::double precision AS ahead,
                                    count(*) OVER () - 1 AS others,
                                    coalesce((
                                        SELECT chunk_charge(c.first, c.last, c.resume, mean_size(g)) FROM ready_chunks c
                                        WHERE c.group_id = g.id AND c.origin_id > 0 AND c.status = 'ready'
                                        ORDER BY c.origin_id, c.rank, c.id LIMIT 1
                                    ), byte_charge(0))::double precision / g.weight AS cost,
                                    NOT p_is_plain AND EXISTS (
                                        SELECT 1 FROM tasks t
                                        WHERE t.group_id = g.id AND t.mixes AND t.state IN ('queued', 'active')) AS mixes
                                FROM groups g WHERE g.id = ANY (v_hungry)
                            ) AS h
                            WINDOW w AS (ORDER BY h.ahead, h.id)
                        ) AS p
                    ) AS f
                    WHERE f.ahead < f.level ORDER BY f.ahead, f.id
                LOOP
                    EXIT WHEN v_left = 0;
                    v_group_room := least(v_group.want, v_left);
                    IF v_group.max_connections IS NOT NULL THEN
                        v_group_room := least(v_group_room, v_group.max_connections
                            - (SELECT count(*) FROM leases l WHERE l.group_id = v_group.id AND l.origin_id > 0)::integer);
                    END IF;
                    v_count := 0;
                    v_repeats := false;
                    v_allowance := v_group.allowance;

                    -- Once, but where mirrors share the room: what one of them has no use for is shared again by the others.
                    v_idle := '{}';
                    LOOP
                        v_again := false;
                        FOR v_origin IN
                            SELECT r.origin_id AS id, r.origin_id AS turn, o.key, o.bytes_per_second AS rate,
                                allowed_connections(o, p_origin_cap) AS cap, NULL::integer AS share
                            FROM ready_origins(v_group.id) AS r (origin_id) JOIN origins o ON o.id = r.origin_id
                            WHERE NOT v_group.mixes AND o.id = ANY (v_locked)
                                AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
                            UNION ALL
                            SELECT m.origin_id, m.turn, o.key, o.bytes_per_second, NULL, m.share
                            FROM mirror_turns(v_group.id, least(v_left, v_group_room), p_origin_cap, v_locked, v_idle) AS m
                            JOIN origins o ON o.id = m.origin_id
                            WHERE v_group.mixes
                            ORDER BY turn
                        LOOP
                            v_want := least(v_left, v_group_room);
                            IF v_origin.share IS NULL THEN
                                SELECT v_origin.cap - count(*) INTO v_origin_room FROM leases l WHERE l.origin_id = v_origin.id;
                                v_want := least(v_want, v_origin_room);
                            ELSE
                                v_want := least(v_want, v_origin.share);
                            END IF;
                            -- Who has no share of a byte budget gets nothing that would have to draw from it.
                            v_usable := v_slots;
                            IF p_fleet_rate IS NOT NULL OR v_group.rate IS NOT NULL OR v_origin.rate IS NOT NULL THEN
                                v_usable := CASE WHEN NOT p_keeps_budgets THEN '{}' ELSE usable_slots(v_slots, v_sink, p_fleet_rate,
                                    v_group.name, v_group.rate, v_origin.key, v_origin.rate) END;
                                v_want := least(v_want, cardinality(v_usable));
                            END IF;
                            CONTINUE WHEN v_want <= 0;
                            IF v_origin.share IS NOT NULL THEN
                                PERFORM pull_chunks(v_group.id, v_origin.id, v_want);
                            END IF;

                            -- Locked by one statement and moved by another: one that does both may take more than its LIMIT.
                            SELECT array_agg(p.id), sum(p.charge) INTO v_picked, v_charge FROM (
                                SELECT r.id, r.charge, sum(r.charge) OVER (
                                    ORDER BY r.rank, r.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                                FROM (
                                    SELECT c.id, c.rank, chunk_charge(c.first, c.last, c.resume,
                                        CASE WHEN v_group.mean IS NOT NULL AND c.first = 0
                                            THEN mean_of(c.task_id, v_group.mean) END) AS charge
                                    FROM ready_chunks c
                                    WHERE c.group_id = v_group.id AND c.origin_id = v_origin.id AND c.status = 'ready'
                                    ORDER BY c.rank, c.id LIMIT v_want FOR UPDATE SKIP LOCKED
                                ) AS r
                            ) AS p
                            WHERE v_allowance IS NULL OR coalesce(p.before, 0) < v_allowance;
                            -- What is being fetched already is not fetched twice, and what comes after it is looked at in
                            -- another round: 0027_reuse.sql.
                            v_found := coalesce(cardinality(v_picked), 0);
                            v_picked := without_repeats(v_picked, v_group.id);
                            v_repeats := v_repeats OR coalesce(cardinality(v_picked), 0) < v_found;
                            IF v_origin.share IS NOT NULL AND coalesce(array_length(v_picked, 1), 0) < v_want
                                AND (v_allowance IS NULL OR coalesce(v_charge, 0) < v_allowance)
                            THEN
                                v_idle := v_idle || v_origin.id;
                                v_again := true;
                            END IF;
                            CONTINUE WHEN v_picked IS NULL;
                            PERFORM lease_chunks(v_picked, v_usable, v_group.id, v_group.mean);
                            v_granted := v_granted || v_picked;
                            IF p_fleet_rate IS NOT NULL OR v_group.rate IS NOT NULL OR v_origin.rate IS NOT NULL THEN
                                v_limited := v_limited || v_picked;
                                v_slots := without_slots(v_slots, v_usable[:array_length(v_picked, 1)]);
                            ELSE
                                v_slots := v_slots[array_length(v_picked, 1) + 1:];
                            END IF;
                            v_count := v_count + array_length(v_picked, 1);
                            v_left := v_left - array_length(v_picked, 1);
                            v_group_room := v_group_room - array_length(v_picked, 1);
                            v_allowance := v_allowance - v_charge;
                            EXIT WHEN v_left = 0 OR v_group_room = 0 OR v_allowance <= 0;
                        END LOOP;
                        EXIT WHEN NOT v_again OR v_left = 0 OR v_group_room <= 0 OR v_allowance <= 0;
                    END LOOP;
                    -- Whoever took less than he might have has nothing more to take.
                    IF v_count < v_group.want AND (v_allowance IS NULL OR v_allowance > 0) AND NOT v_repeats THEN
                        v_hungry := array_remove(v_hungry, v_group.id);
                    END IF;
                END LOOP;
            END LOOP;
        END LOOP;
    END LOOP;

    RETURN QUERY SELECT g.id, g.id = ANY (v_limited) FROM unnest(v_granted) AS g (id);
END
$$;

-- Leases that were granted just now, with all that their work needs. p_limited are those that draw from a byte budget.
CREATE FUNCTION granted_leases(p_chunks bigint[], p_limited bigint[]) RETURNS TABLE (
    session_id bigint, chunk_id bigint, epoch bigint, kind text, task_id bigint, sink text, path text, version integer,
    first bigint, last bigint, planned boolean, stream boolean, fenced boolean, resume bigint, crc bigint,
    size bigint, etag text, last_modified text, date_strong boolean, stated_digests text,
    expected_size bigint, expected_digests text, content_type text,
    source integer, is_other_mirror boolean, url text, headers text, fresh_url text, fresh_headers text,
    group_name text, key text, group_options text, task_options text, policy text, resolver text, failure_status integer,
    done_first bigint[], done_last bigint[], done_crc bigint[], origin text, is_limited boolean, have text
)
-- Volatile, so that it sees what the function has written that its arguments came from.
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.session_id, l.chunk_id, l.epoch, CASE WHEN l.kind = 'double' THEN 'fetch' ELSE l.kind END, l.task_id, l.sink, coalesce(t.path, l.remove_path, ''), l.version,
        l.first, l.last, coalesce(t.planned, false), coalesce(t.stream, false), coalesce(t.fenced, false), l.resume, l.crc,
        coalesce(t.size, l.remove_size), t.etag, t.last_modified, coalesce(t.date_strong, false), t.stated_digests::text,
        t.expected_size, t.expected_digests::text, t.content_type,
        l.source, coalesce(l.kind IN ('fetch', 'double') AND l.source <> t.source, false),
        s.url, s.headers::text, CASE WHEN l.kind <> 'resolve' THEN s.fresh_url END,
        CASE WHEN l.kind <> 'resolve' THEN s.fresh_headers::text END, g.name, t.key, g.fetch_options::text,
        t.fetch_options::text, g.policy::text, CASE WHEN l.kind = 'resolve' THEN g.resolver::text END, t.failure_status,
        d.firsts, d.lasts, d.crcs, o.key, l.chunk_id = ANY (p_limited),
        -- What the sink has of it already is looked for by the first lease of a task: 0027_reuse.sql. Once more if its worker died, but
        -- not for ever, since that may have been the file's fault.
        CASE WHEN l.kind = 'fetch' AND l.first = 0 AND l.resume = 0 AND l.source = 0 AND l.version = 1 AND l.deaths < 2
            AND NOT t.planned AND t.reuse_key IS NOT NULL
            AND EXISTS (SELECT 1 FROM tasks h WHERE h.reuse_key = t.reuse_key AND h.state = 'succeeded')
            THEN held_file(t, g.fetch_options, s.url, s.headers) END
    FROM leases l
    LEFT JOIN tasks t ON t.id = l.task_id AND l.kind <> 'purge'
    LEFT JOIN groups g ON g.id = l.group_id
    LEFT JOIN origins o ON o.id = l.origin_id
    LEFT JOIN sources s ON s.task_id = l.task_id AND s.ordinal = l.source AND l.kind IN ('fetch', 'double', 'resolve')
    LEFT JOIN LATERAL (
        SELECT array_agg(d.first ORDER BY d.first) AS firsts, array_agg(d.last ORDER BY d.first) AS lasts,
            array_agg(d.crc ORDER BY d.first) AS crcs
        FROM done_chunks d WHERE l.kind = 'finalize' AND d.task_id = l.task_id AND d.version = l.version
    ) AS d ON true
    WHERE l.chunk_id = ANY (p_chunks);
END
$$;

-- What coordinators of before call.
CREATE OR REPLACE FUNCTION grant_leases(
    p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_origin_cap integer, p_session_cap integer,
    p_is_plain boolean
) RETURNS TABLE (
    session_id bigint, chunk_id bigint, epoch bigint, kind text, task_id bigint, sink text, path text, version integer,
    first bigint, last bigint, planned boolean, stream boolean, fenced boolean, resume bigint, crc bigint,
    size bigint, etag text, last_modified text, date_strong boolean, stated_digests text,
    expected_size bigint, expected_digests text, content_type text,
    source integer, is_other_mirror boolean, url text, headers text, fresh_url text, fresh_headers text,
    group_name text, key text, group_options text, task_options text, policy text, resolver text, failure_status integer,
    done_first bigint[], done_last bigint[], done_crc bigint[]
)
LANGUAGE sql VOLATILE AS $$
    SELECT session_id, chunk_id, epoch, kind, task_id, sink, path, version, first, last, planned, stream, fenced, resume, crc,
        size, etag, last_modified, date_strong, stated_digests, expected_size, expected_digests, content_type, source,
        is_other_mirror, url, headers, fresh_url, fresh_headers, group_name, key, group_options, task_options, policy, resolver,
        failure_status, done_first, done_last, done_crc
    FROM granted_leases(ARRAY(
        SELECT s.chunk_id
        FROM share_leases(p_sessions, p_sequences, p_rooms, p_origin_cap, p_session_cap, NULL, p_is_plain, false) AS s), '{}')
$$;
