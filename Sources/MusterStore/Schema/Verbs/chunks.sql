-- The rank of a chunk: finalizing before fetching, higher priority before lower, begun files before new ones.
CREATE FUNCTION chunk_rank(p_kind text, p_priority integer, p_is_first boolean) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_kind = 'fetch' THEN -2 * p_priority - (NOT p_is_first)::integer ELSE -1000000 END
$$;

-- Makes chunks ready whose wait is over. A transaction of its own: it takes no other lock. Returns how many there were.
CREATE FUNCTION promote_due_chunks(p_limit integer) RETURNS bigint
LANGUAGE sql AS $$
    WITH due AS MATERIALIZED (
        SELECT id FROM ready_chunks
        WHERE status = 'waiting' AND not_before <= statement_timestamp()
        ORDER BY not_before LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), promoted AS (
        UPDATE ready_chunks c SET status = 'ready', not_before = NULL FROM due WHERE c.id = due.id RETURNING 1
    )
    SELECT count(*) FROM promoted
$$;
