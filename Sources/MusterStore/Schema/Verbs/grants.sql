-- The parts of a claim: the origins of a group, the chunks that are picked, and their move from ready_chunks to leases.

-- The origins that a group has something ready on, found by leaps through the index: as many probes as there are origins, however many
-- chunks there are. Origin 0 is work that fetches nothing.
CREATE FUNCTION ready_origins(p_group bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE leap (origin_id) AS (
        (SELECT min(c.origin_id) FROM ready_chunks c WHERE c.group_id = p_group AND c.status = 'ready')
        UNION ALL
        SELECT (
            SELECT min(c.origin_id) FROM ready_chunks c
            WHERE c.group_id = p_group AND c.status = 'ready' AND c.origin_id > leap.origin_id)
        FROM leap WHERE leap.origin_id IS NOT NULL
    )
    SELECT leap.origin_id FROM leap WHERE leap.origin_id IS NOT NULL;
END
$$;

-- Locks groups in the order of locks, except those that another transaction keeps for long: a claim waits 200 ms for one of them and then goes on
-- without it, so that an addition of millions of tasks delays only its own group. The holder wakes coordinators when it has released the lock.
-- Returns the groups whose locks are held.
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

-- The origins that the group of a claim may be granted on now, in their order, each with the lanes that may be opened to it. Of a group with several
-- origins, each has its share of the lanes (`shared_turns`), and `later` are the shares of those that follow. p_idle are origins that have nothing more
-- to take.
CREATE FUNCTION origin_turns(c claim, p_idle bigint[])
RETURNS TABLE (id bigint, key text, rate bigint, free integer, later bigint, is_shared boolean)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_ready bigint[] := ARRAY(SELECT r.id FROM ready_origins(c.group_id) AS r (id) WHERE r.id > 0);
BEGIN
    IF c.mixes OR cardinality(v_ready) > 1 THEN
        RETURN QUERY
        SELECT o.id, o.key, o.bytes_per_second, s.share,
            coalesce(sum(s.share) OVER (ORDER BY s.turn, o.id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0), true
        FROM shared_turns(c, p_idle) AS s JOIN origins o ON o.id = s.origin_id
        ORDER BY s.turn, o.id;
    ELSE
        RETURN QUERY
        SELECT o.id, o.key, o.bytes_per_second, f.free, 0::bigint, false
        FROM origins o JOIN unnest(c.origins, c.free) AS f (id, free) ON f.id = o.id
        WHERE o.id = ANY (v_ready) AND is_awake(o) AND may_try(o, c.group_id) AND NOT rests_alone(o, c.group_id);
    END IF;
END
$$;

-- Locks the next chunks of a claim's group on an origin, p_want at the most and no more than its allowance pays for, and returns their charge. They
-- are locked by this statement and moved by another one: a statement that does both may take more than its LIMIT.
CREATE FUNCTION pick_chunks(c claim, p_origin bigint, p_want integer) RETURNS TABLE (chunks bigint[], charge bigint)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    SELECT array_agg(p.id), sum(p.charge)::bigint FROM (
        SELECT r.id, r.charge,
            sum(r.charge) OVER (ORDER BY r.rank, r.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM (
            SELECT k.id, k.rank, chunk_charge(k.first, k.last, k.resume,
                CASE WHEN c.mean IS NOT NULL AND k.first = 0 THEN (
                    SELECT CASE WHEN t.size IS NULL THEN c.mean END FROM tasks t WHERE t.id = k.task_id) END) AS charge
            FROM ready_chunks k
            -- A chunk of another sink would come back from every worker that does not reach that sink, and be granted again at once.
            WHERE k.group_id = c.group_id AND k.origin_id = p_origin AND k.status = 'ready' AND k.sink = c.sink
                AND (c.spare IS DISTINCT FROM 'trials' OR k.kind = 'trial')
            ORDER BY k.rank, k.id LIMIT p_want FOR UPDATE SKIP LOCKED
        ) AS r
    ) AS p
    WHERE c.allowance IS NULL OR coalesce(p.before, 0) < c.allowance;
END
$$;

-- Leases chunks that the caller has locked to the first sessions of p_usable, which are slots of the claim, in lanes if p_lanes is given. A lease
-- without a lane uses up an opening of its session. NULL chunks change nothing.
CREATE FUNCTION grant_chunks(
    c claim, p_chunks bigint[], p_usable bigint[], p_lanes bigint[], p_group bigint, p_mean bigint
) RETURNS claim
LANGUAGE plpgsql AS $$
BEGIN
    IF p_chunks IS NULL THEN RETURN c; END IF;
    PERFORM lease_chunks(p_chunks, p_usable, p_lanes, p_group, p_mean);
    c.granted := c.granted || p_chunks;
    c.slots := CASE WHEN p_usable = c.slots THEN c.slots[cardinality(p_chunks) + 1:]
        ELSE without_slots(c.slots, p_usable[:cardinality(p_chunks)]) END;
    IF p_lanes IS NULL THEN
        c.openings := without_slots(c.openings, p_usable[:cardinality(p_chunks)]);
    END IF;
    RETURN c;
END
$$;

-- Moves chunks that the caller has locked into leases: the first one for the first session of p_slots, in the first of p_lanes, and so on. Their
-- tasks are not touched (adr/0035).
CREATE FUNCTION lease_chunks(p_chunks bigint[], p_slots bigint[], p_lanes bigint[], p_group bigint, p_mean bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_charged bigint;
BEGIN
    WITH taken AS MATERIALIZED (
        DELETE FROM ready_chunks WHERE id = ANY (p_chunks) RETURNING *
    ), granted AS (
        INSERT INTO leases (chunk_id, session_id, lane, sync, kind, task_id, group_id, origin_id, source, sink, version, first, last,
            resume, durable, crc, rank, attempts, deaths, moves, shrink_asks, reach, pace, remove_path, remove_size,
            remove_group, remove_failure, charged, reuse_key)
        SELECT t.id, p_slots[t.n], coalesce(p_lanes[t.n], 0), s.sequence, t.kind, t.task_id, t.group_id, t.origin_id, t.source, t.sink, t.version, t.first,
            t.last, t.resume, t.resume, t.crc, t.rank, t.attempts, t.deaths, t.moves, t.shrink_asks, b.reach, b.pace, t.remove_path, t.remove_size,
            t.remove_group, t.remove_failure,
            CASE WHEN t.kind = 'fetch' THEN chunk_charge(t.first, t.last, t.resume, CASE WHEN k.size IS NULL AND t.first = 0 THEN p_mean END)
                ELSE 0 END,
            k.reuse_key
        FROM (SELECT taken.*, row_number() OVER (ORDER BY rank, id) AS n FROM taken) AS t
        CROSS JOIN LATERAL (SELECT sequence FROM sessions WHERE id = p_slots[t.n] OFFSET 0) AS s
        LEFT JOIN LATERAL (SELECT size, reuse_key FROM tasks WHERE id = t.task_id OFFSET 0) AS k ON t.kind = 'fetch' AND t.first = 0
        -- OFFSET 0 keeps the condition in front of the call: the function runs only where it can return something.
        LEFT JOIN LATERAL (
            SELECT r.reach, r.pace FROM request_beside(p_slots[t.n], t.task_id, t.source, t.first, t.last) AS r
            WHERE t.kind = 'fetch' AND t.first > 0 AND t.resume = t.first AND NOT t.plain OFFSET 0
        ) AS b ON true
        RETURNING charged
    )
    SELECT sum(charged) INTO v_charged FROM granted;
    IF v_charged > 0 THEN
        UPDATE groups g SET served = g.served + v_charged / g.weight WHERE g.id = p_group;
    END IF;
END
$$;

-- Returns leases with all data that their work needs. p_limited are those that a byte budget bounds.
CREATE FUNCTION granted_leases(p_chunks bigint[], p_limited bigint[]) RETURNS TABLE (
    session_id bigint, lane bigint, chunk_id bigint, epoch bigint, kind text, task_id bigint, sink text, path text, version integer,
    first bigint, last bigint, planned boolean, rung text, fenced boolean, resume bigint, crc bigint,
    size bigint, etag text, last_modified text, date_strong boolean, stated_digests text,
    expected_size bigint, expected_digests text, content_type text,
    source integer, is_other_mirror boolean, earlier text, url text, headers text, fresh_url text, fresh_headers text,
    group_name text, key text, group_options text, task_options text, policy text, resolver text, failure_status integer,
    done_first bigint[], done_last bigint[], done_crc bigint[], origin text, is_limited boolean, have text, revoke bigint[],
    asks_for_all boolean, attempts integer, may_look boolean, looks_early boolean, looks_at_endings boolean,
    may_move_on boolean, round integer, slow_tries integer, reach bigint, pace bigint, sources integer, restarts integer, is_measure_gone boolean
)
-- Volatile, so that it sees the rows of the function that made its arguments.
LANGUAGE plpgsql VOLATILE
SET enable_material = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.session_id, l.lane, l.chunk_id, l.epoch, l.kind, l.task_id, l.sink,
        coalesce(t.path, l.remove_path, ''), l.version,
        l.first, l.last, coalesce(t.planned, false), coalesce(t.rung, 'chunks'), coalesce(t.fenced, false), l.resume, l.crc,
        coalesce(t.size, l.remove_size), t.etag, t.last_modified, coalesce(t.date_strong, false), t.stated_digests::text,
        t.expected_size, t.expected_digests::text, t.content_type,
        l.source, coalesce(l.kind IN ('fetch', 'trial') AND l.source <> t.source, false), t.earlier::text,
        s.url, s.headers::text, CASE WHEN l.kind <> 'resolve' THEN s.fresh_url END,
        CASE WHEN l.kind <> 'resolve' THEN s.fresh_headers::text END, g.name, t.key, g.fetch_options::text,
        t.fetch_options::text, g.policy::text, CASE WHEN l.kind = 'resolve' THEN g.resolver::text END, t.failure_status,
        d.firsts, d.lasts, d.crcs, o.key, l.chunk_id = ANY (p_limited),
        -- Until a source has answered, a lease is told what the sink has of the task (reuse.sql), whichever source it asks. It is told once more if
        -- its worker died, but not for ever, since the file may have caused the death.
        CASE WHEN l.kind = 'fetch' AND l.first = 0 AND l.resume = 0 AND l.deaths < 2 AND NOT t.planned AND t.reuse_key IS NOT NULL
            AND (SELECT h.id FROM tasks h WHERE h.reuse_key = t.reuse_key AND h.state = 'succeeded' LIMIT 1) IS NOT NULL
            THEN held_file(t.id, g.fetch_options) END,
        -- Sessions that are not waited for any more are named here: they were ended before this statement.
        (SELECT array_agg(r.session_id ORDER BY r.session_id) FROM revocations r WHERE r.sink = l.sink AND l.kind NOT IN ('resolve', 'trial')),
        l.kind = 'fetch' AND l.first = 0 AND l.resume = 0 AND NOT t.planned AND t.rung = 'chunks'
            AND g.resolver IS NULL AND NOT o.serves_again AND lower(left(s.url, 4)) = 'http',
        l.attempts, coalesce(l.pace IS NULL AND may_look(l, t), false), coalesce(looks_early(l, t), false),
        coalesce(looks_at_endings(l, t), false), coalesce(may_move_on(l, t), false), round_of(l, t), coalesce(slow_tries(l, t), 0), l.reach,
        l.pace, CASE WHEN t.mirrors > 1 THEN live_sources(t) ELSE 1 END, coalesce(t.restarts, 0),
        -- What another source has shown is no measure any more once that source is given up.
        coalesce(t.mirrors > 1 AND t.earlier IS NOT NULL, false) AND EXISTS (
            SELECT 1 FROM sources e WHERE e.task_id = t.id AND e.ordinal = (t.earlier->>'source')::integer AND e.dead)
    FROM leases l
    LEFT JOIN task_of(CASE WHEN l.kind <> 'purge' THEN l.task_id END) AS t ON true
    LEFT JOIN group_of(l.group_id) AS g ON true
    LEFT JOIN origin_of(l.origin_id) AS o ON true
    LEFT JOIN source_of(CASE WHEN l.kind IN ('fetch', 'resolve', 'trial') THEN l.task_id END, l.source) AS s ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(d.first ORDER BY d.first) AS firsts, array_agg(d.last ORDER BY d.first) AS lasts,
            array_agg(d.crc ORDER BY d.first) AS crcs
        FROM done_chunks d WHERE l.kind = 'finalize' AND d.task_id = l.task_id AND d.version = l.version
    ) AS d ON true
    WHERE l.chunk_id = ANY (p_chunks);
END
$$;
