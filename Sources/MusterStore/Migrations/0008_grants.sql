-- The grant of leases where tasks may have several sources and origins have been learned about.

-- How many leases an origin may have now: what was learned when it refused, one more with every minute since, and never more
-- than its cap. Nothing has to be written for it to grow.
CREATE FUNCTION allowed_connections(o origins, p_default integer) RETURNS integer
LANGUAGE sql STABLE AS $$
    SELECT least(coalesce(o.max_connections, p_default), coalesce(o.learned
        + floor(least(1000000, extract(epoch FROM statement_timestamp() - o.learned_at) / 60))::integer,
        coalesce(o.max_connections, p_default)))
$$;

-- The grant of leases: the one place where a lease comes into being.
--
-- One call serves many sessions at once, each with its newest sync and its room. First every lock is taken, then counts are
-- read by later statements, whose snapshots are newer than the locks: a statement that locks and counts at once grants beyond
-- a cap (I5). p_is_plain keeps what came later from a coordinator that would not understand it (F18): resolve leases, and
-- chunks that go to another source than the one which taught the version.
CREATE FUNCTION grant_leases(
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
    v_slots bigint[];                   -- a session id for every lease that may be granted, sessions taking turns
    v_total integer;                    -- how many these were to begin with
    v_left integer;                     -- how many of them are still free
    v_groups bigint[];
    v_locked bigint[];                  -- the origins whose locks are held: no other one is granted on
    v_group record;
    v_origin record;
    v_pass integer;
    v_group_room integer;
    v_origin_room integer;
    v_want integer;
    v_picked bigint[];
    v_taken bigint[];
    v_bytes bigint;
    v_starts integer;
    v_idle bigint[];                    -- the mirrors that have nothing more to take for the group
    v_again boolean;
    v_granted bigint[] := '{}';
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
        v_total := coalesce(array_length(v_slots, 1), 0);
        v_left := v_total;
        CONTINUE WHEN v_left = 0;

        -- 3. Leftovers of cancelled tasks and of old content versions go first: they are quick and free storage.
        SELECT array_agg(p.id) INTO v_picked FROM (
            SELECT id FROM ready_chunks
            WHERE sink = v_sink AND kind = 'purge' AND status = 'ready' ORDER BY id LIMIT v_left FOR UPDATE SKIP LOCKED
        ) AS p;
        WITH taken AS MATERIALIZED (
            DELETE FROM ready_chunks WHERE id = ANY (v_picked) RETURNING *
        ), granted AS (
            INSERT INTO leases (chunk_id, session_id, sync, kind, task_id, group_id, origin_id, source, sink, version,
                first, last, resume, durable, crc, rank, attempts, deaths, remove_path, remove_size)
            SELECT t.id, v_slots[t.n], s.sequence, t.kind, t.task_id, t.group_id, t.origin_id, t.source, t.sink, t.version,
                t.first, t.last, t.resume, t.resume, t.crc, t.rank, t.attempts, t.deaths, t.remove_path, t.remove_size
            FROM (SELECT taken.*, row_number() OVER (ORDER BY id) AS n FROM taken) AS t
            JOIN sessions s ON s.id = v_slots[t.n]
            RETURNING leases.chunk_id
        )
        SELECT array_agg(g.chunk_id) INTO v_taken FROM granted g;
        IF v_taken IS NOT NULL THEN
            v_granted := v_granted || v_taken;
            v_slots := v_slots[array_length(v_taken, 1) + 1:];
            v_left := v_left - array_length(v_taken, 1);
        END IF;
        CONTINUE WHEN v_left = 0;

        -- 4. The groups that something could be granted to, the most urgent and then the least served first (I15). Groups
        --    whose origins are all parked or busy must not stand in the way of others. A paused group is only finalized.
        SELECT array_agg(candidate.id) INTO v_groups FROM (
            SELECT g.id FROM groups g
            WHERE g.sink = v_sink AND g.state IN ('open', 'sealed') AND (g.desired = 'run' OR g.finalizing > 0)
                AND EXISTS (
                    SELECT 1 FROM ready_origins(g.id) AS r (origin_id) LEFT JOIN origins o ON o.id = r.origin_id
                    WHERE r.origin_id = 0 OR g.desired = 'run'
                        AND (g.max_connections IS NULL OR g.max_connections > (
                            SELECT count(*) FROM leases l WHERE l.group_id = g.id AND l.origin_id > 0))
                        AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
                        AND (SELECT count(*) FROM leases l WHERE l.origin_id = o.id) < allowed_connections(o, p_origin_cap)
                    UNION ALL
                    SELECT 1 FROM pull_sources(g.id) AS r JOIN origins o ON o.id = r.origin_id
                    WHERE g.desired = 'run' AND NOT p_is_plain
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
        PERFORM g.id FROM groups g WHERE g.id = ANY (v_groups) ORDER BY g.id FOR NO KEY UPDATE;

        -- A group that was idle for long does not get all of the room until it has caught up: it starts level with the
        -- others, but for what one large chunk weighs.
        UPDATE groups g SET served = top.served - 268435456
        FROM (
            SELECT t.priority, max(t.served) AS served FROM groups t WHERE t.id = ANY (v_groups) GROUP BY 1
        ) AS top
        WHERE g.id = ANY (v_groups) AND g.priority = top.priority AND g.served < top.served - 268435456;

        -- 5. Share the room: in a first pass every group of the highest priority gets its part, in a second one whoever has
        --    more gets the rest.
        FOR v_pass IN 1..2 LOOP
            FOR v_group IN
                SELECT g.id, g.desired, g.weight, g.max_connections,
                    g.priority = max(g.priority) OVER () AS is_first,
                    sum(g.weight) OVER (PARTITION BY g.priority) AS weights,
                    NOT p_is_plain AND g.desired = 'run' AND EXISTS (
                        SELECT 1 FROM tasks t
                        WHERE t.group_id = g.id AND t.mixes AND t.state IN ('queued', 'active')) AS mixes
                FROM groups g
                WHERE g.id = ANY (v_groups) AND g.state IN ('open', 'sealed')
                ORDER BY g.priority DESC, g.served, g.id
            LOOP
                EXIT WHEN v_left = 0;
                CONTINUE WHEN v_pass = 1 AND NOT v_group.is_first;
                v_group_room := v_left;
                IF v_pass = 1 THEN
                    v_group_room := greatest(1, (v_total * v_group.weight / v_group.weights)::integer);
                END IF;
                IF v_group.max_connections IS NOT NULL THEN
                    v_group_room := least(v_group_room, v_group.max_connections
                        - (SELECT count(*) FROM leases l WHERE l.group_id = v_group.id AND l.origin_id > 0)::integer);
                END IF;

                -- Once, but where mirrors share the room: what one of them has no use for is shared again by the others.
                v_idle := '{}';
                LOOP
                    v_again := false;
                    FOR v_origin IN
                        SELECT r.origin_id AS id, r.origin_id AS turn, allowed_connections(o, p_origin_cap) AS cap,
                            NULL::integer AS share
                        FROM ready_origins(v_group.id) AS r (origin_id) LEFT JOIN origins o ON o.id = r.origin_id
                        WHERE r.origin_id = 0 OR NOT v_group.mixes AND v_group.desired = 'run' AND o.id = ANY (v_locked)
                            AND (o.not_before IS NULL OR o.not_before <= statement_timestamp())
                        UNION ALL
                        SELECT m.origin_id, m.turn, NULL, m.share
                        FROM mirror_turns(v_group.id, least(v_left, v_group_room), p_origin_cap, v_locked, v_idle) AS m
                        WHERE v_group.mixes
                        ORDER BY turn
                    LOOP
                        v_want := least(v_left, CASE WHEN v_origin.id = 0 THEN v_left ELSE v_group_room END);
                        IF v_origin.share IS NOT NULL THEN
                            v_want := least(v_want, v_origin.share);
                            PERFORM pull_chunks(v_group.id, v_origin.id, v_want);
                        ELSIF v_origin.id > 0 THEN
                            SELECT v_origin.cap - count(*) INTO v_origin_room FROM leases l WHERE l.origin_id = v_origin.id;
                            v_want := least(v_want, v_origin_room);
                        END IF;
                        CONTINUE WHEN v_want <= 0;

                        -- Locked by one statement and moved by another: one that does both may take more than its LIMIT.
                        SELECT array_agg(p.id) INTO v_picked FROM (
                            SELECT id FROM ready_chunks
                            WHERE group_id = v_group.id AND origin_id = v_origin.id AND status = 'ready'
                                AND (kind <> 'resolve' OR v_group.desired = 'run' AND NOT p_is_plain)
                            ORDER BY rank, id LIMIT v_want FOR UPDATE SKIP LOCKED
                        ) AS p;
                        IF v_origin.share IS NOT NULL AND coalesce(array_length(v_picked, 1), 0) < v_want THEN
                            v_idle := v_idle || v_origin.id;
                            v_again := true;
                        END IF;
                        CONTINUE WHEN v_picked IS NULL;
                        WITH taken AS MATERIALIZED (
                            DELETE FROM ready_chunks WHERE id = ANY (v_picked) RETURNING *
                        ), granted AS MATERIALIZED (
                            INSERT INTO leases (chunk_id, session_id, sync, kind, task_id, group_id, origin_id, source, sink,
                                version, first, last, resume, durable, crc, rank, attempts, deaths, moves)
                            SELECT t.id, v_slots[t.n], s.sequence, t.kind, t.task_id, t.group_id, t.origin_id, t.source,
                                t.sink, t.version, t.first, t.last, t.resume, t.resume, t.crc, t.rank, t.attempts, t.deaths,
                                t.moves
                            FROM (SELECT taken.*, row_number() OVER (ORDER BY rank, id) AS n FROM taken) AS t
                            JOIN sessions s ON s.id = v_slots[t.n]
                            RETURNING leases.chunk_id, leases.task_id, leases.kind, leases.first, leases.last, leases.resume
                        ), touched AS (
                            -- A task becomes active with its first lease.
                            UPDATE tasks t
                            SET leases = t.leases + n.count, state = 'active',
                                started_at = coalesce(t.started_at, statement_timestamp())
                            FROM (
                                SELECT g.task_id, count(*)::integer AS count FROM granted g WHERE g.kind = 'fetch' GROUP BY 1
                            ) AS n
                            JOIN tasks before ON before.id = n.task_id
                            WHERE t.id = n.task_id
                            RETURNING (before.state = 'queued')::integer AS starts
                        )
                        SELECT array_agg(g.chunk_id),
                            sum(greatest(65536, coalesce(g.last, g.first + 8388608) - g.resume)),
                            coalesce((SELECT sum(starts) FROM touched), 0)
                        INTO v_taken, v_bytes, v_starts
                        FROM granted g;
                        UPDATE groups g
                        SET queued = g.queued - v_starts, active = g.active + v_starts,
                            served = g.served + v_bytes / g.weight
                        WHERE g.id = v_group.id;
                        v_granted := v_granted || v_taken;
                        v_slots := v_slots[array_length(v_taken, 1) + 1:];
                        v_left := v_left - array_length(v_taken, 1);
                        IF v_origin.id > 0 THEN
                            v_group_room := v_group_room - array_length(v_taken, 1);
                        END IF;
                        EXIT WHEN v_left = 0;
                    END LOOP;
                    EXIT WHEN NOT v_again OR v_left = 0 OR v_group_room <= 0;
                END LOOP;
            END LOOP;
            EXIT WHEN v_left = 0;
        END LOOP;
    END LOOP;

    RETURN QUERY
    SELECT l.session_id, l.chunk_id, l.epoch, l.kind, l.task_id, l.sink, coalesce(t.path, l.remove_path, ''), l.version,
        l.first, l.last, coalesce(t.planned, false), coalesce(t.stream, false), coalesce(t.fenced, false), l.resume, l.crc,
        coalesce(t.size, l.remove_size), t.etag, t.last_modified, coalesce(t.date_strong, false), t.stated_digests::text,
        t.expected_size, t.expected_digests::text, t.content_type,
        l.source, coalesce(l.kind = 'fetch' AND l.source <> t.source, false),
        s.url, s.headers::text, CASE WHEN l.kind = 'fetch' THEN s.fresh_url END,
        CASE WHEN l.kind = 'fetch' THEN s.fresh_headers::text END, g.name, t.key, g.fetch_options::text,
        t.fetch_options::text, g.policy::text, CASE WHEN l.kind = 'resolve' THEN g.resolver::text END, t.failure_status,
        d.firsts, d.lasts, d.crcs
    FROM leases l
    LEFT JOIN tasks t ON t.id = l.task_id AND l.kind <> 'purge'
    LEFT JOIN groups g ON g.id = l.group_id
    LEFT JOIN sources s ON s.task_id = l.task_id AND s.ordinal = l.source AND l.kind IN ('fetch', 'resolve')
    LEFT JOIN LATERAL (
        SELECT array_agg(d.first ORDER BY d.first) AS firsts, array_agg(d.last ORDER BY d.first) AS lasts,
            array_agg(d.crc ORDER BY d.first) AS crcs
        FROM done_chunks d WHERE l.kind = 'finalize' AND d.task_id = l.task_id AND d.version = l.version
    ) AS d ON true
    WHERE l.chunk_id = ANY (v_granted);
END
$$;

-- What a coordinator of before calls, which is granted what it understands (F18). Headers for one URL are not sent to
-- another one.
CREATE OR REPLACE FUNCTION claim_chunks(
    p_sessions bigint[], p_sequences bigint[], p_rooms integer[], p_origin_cap integer, p_session_cap integer
) RETURNS TABLE (
    session_id bigint, chunk_id bigint, epoch bigint, kind text, task_id bigint, sink text, path text, version integer,
    first bigint, last bigint, planned boolean, stream boolean, fenced boolean, resume bigint, crc bigint,
    size bigint, etag text, last_modified text, expected_size bigint, expected_digests text,
    source integer, url text, headers text, done_first bigint[], done_last bigint[], done_crc bigint[]
)
LANGUAGE sql VOLATILE AS $$
    SELECT session_id, chunk_id, epoch, kind, task_id, sink, path, version, first, last, planned, stream, fenced, resume, crc,
        size, etag, last_modified, expected_size, expected_digests, source, coalesce(fresh_url, url),
        CASE WHEN fresh_url IS NULL THEN headers ELSE fresh_headers END, done_first, done_last, done_crc
    FROM grant_leases(p_sessions, p_sequences, p_rooms, p_origin_cap, p_session_cap, true)
$$;
