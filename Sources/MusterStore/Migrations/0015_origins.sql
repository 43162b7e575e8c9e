-- What comes from an origin how fast, and what people set of it.

-- Bytes that came from origins, a row per report: nobody waits to write one. They are added up in the origins' rows in the
-- background. Not logged: after a crash a speed is not known for some seconds.
CREATE UNLOGGED TABLE origin_flow (
    origin_id bigint NOT NULL,
    bytes     bigint NOT NULL
);

-- Adds up what came. A transaction of its own that locks origins alone; those that somebody else has locked are left for
-- the next round. Returns how many origins there were.
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
    WITH taken AS MATERIALIZED (
        DELETE FROM origin_flow WHERE origin_id = ANY (v_origins) RETURNING origin_id, bytes
    )
    UPDATE origins o SET rate_bytes = decayed(o.rate_bytes, o.rate_at, n.bytes), rate_at = statement_timestamp()
    FROM (SELECT origin_id, sum(bytes)::double precision AS bytes FROM taken GROUP BY 1) AS n
    WHERE o.id = n.origin_id;
    RETURN cardinality(v_origins);
END
$$;

-- Moves durable offsets forward (I4). A loss of this commit means a re-download of some bytes, so it does not wait for the
-- disk. Returns the position (from 1) of every report whose lease is not there.
CREATE OR REPLACE FUNCTION report_progress(
    p_sessions bigint[], p_chunks bigint[], p_epochs bigint[], p_offsets bigint[], p_crcs bigint[]
) RETURNS SETOF integer
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM lock_groups_of(p_chunks);
    RETURN QUERY
    WITH said AS MATERIALIZED (
        SELECT * FROM unnest(p_sessions, p_chunks, p_epochs, p_offsets, p_crcs) WITH ORDINALITY
            AS u (session_id, chunk_id, epoch, durable, crc, n)
    ), furthest AS MATERIALIZED (
        -- A batch may hold several reports about one lease, such as a sync and its repetition: the furthest one counts.
        SELECT DISTINCT ON (s.chunk_id) s.*
        FROM said s JOIN leases l ON l.chunk_id = s.chunk_id AND l.epoch = s.epoch AND l.session_id = s.session_id
        WHERE l.last IS NULL OR s.durable <= l.last ORDER BY s.chunk_id, s.durable DESC
    ), moved AS (
        UPDATE leases l
        SET durable = greatest(l.durable, s.durable), crc = CASE WHEN s.durable > l.durable THEN s.crc ELSE l.crc END,
            progress_at = statement_timestamp()
        FROM furthest s JOIN leases before ON before.chunk_id = s.chunk_id
        WHERE l.chunk_id = s.chunk_id AND l.epoch = s.epoch AND l.session_id = s.session_id
        RETURNING l.chunk_id, l.epoch, l.session_id, l.last, l.group_id, l.origin_id, l.kind, l.durable - before.durable AS more
    ), counted AS (
        UPDATE groups g
        SET bytes_done = g.bytes_done + n.more, rate_bytes = decayed(g.rate_bytes, g.rate_at, n.more),
            rate_at = statement_timestamp()
        FROM (SELECT group_id, sum(more)::bigint AS more FROM moved WHERE kind = 'fetch' GROUP BY 1) AS n
        WHERE g.id = n.group_id AND n.more > 0
    ), flowed AS (
        INSERT INTO origin_flow (origin_id, bytes)
        SELECT origin_id, sum(more) FROM moved WHERE kind = 'fetch' AND more > 0 GROUP BY 1
    )
    SELECT s.n::integer FROM said s WHERE NOT EXISTS (
        SELECT 1 FROM moved m
        WHERE m.chunk_id = s.chunk_id AND m.epoch = s.epoch AND m.session_id = s.session_id
            AND (m.last IS NULL OR s.durable <= m.last));
END
$$;

-- What somebody wishes of an origin, which is made known by that if it isn't yet. A new cap is not held against what the
-- origin refused under the old one.
CREATE FUNCTION set_origin(
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
