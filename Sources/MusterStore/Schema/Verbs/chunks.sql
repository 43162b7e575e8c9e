-- The rank of a chunk: finalizing before fetching, higher priority before lower, begun files before new ones.
CREATE FUNCTION chunk_rank(p_kind text, p_priority integer, p_is_first boolean) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_kind = 'fetch' THEN -2 * p_priority - (NOT p_is_first)::integer ELSE -1000000 END
$$;

-- Makes all unfinished chunks of a task wait, and puts them behind the other work of its group: a file that does not fit into the sink is not tried
-- again before files that may fit. Each chunk counts the try: chunks that were leased together fail together.
CREATE FUNCTION set_back(p_task bigint, p_attempts integer, p_wait interval) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ready_chunks
    SET attempts = greatest(attempts, p_attempts), rank = 1000000, status = 'waiting', not_before = statement_timestamp() + p_wait
    WHERE task_id = p_task AND kind IN ('fetch', 'finalize') AND status <> 'parked' AND awaits IS NULL;
END
$$;

-- Makes chunks ready whose wait is over. A transaction of its own: it takes no other lock. Returns how many there were.
CREATE FUNCTION promote_due_chunks(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    WITH due AS MATERIALIZED (
        SELECT id FROM ready_chunks
        WHERE is_waiting(status) AND not_before <= statement_timestamp()
        ORDER BY not_before LIMIT p_limit FOR UPDATE SKIP LOCKED
    )
    UPDATE ready_chunks c SET status = 'ready', not_before = NULL FROM due WHERE has_id(c.id, due.id);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;

-- The wait of a chunk after n failures of each source: base × 2ⁿ⁻¹ with full jitter. Base, maximum and jitter come from the coordinator.
CREATE FUNCTION backoff(p_attempts integer, f failure) RETURNS interval
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN least(f.maximum_ms, (f.policy).base_ms * power(2, least((greatest(p_attempts, 1) - 1) / f.sources, 19))) * f.random * interval '1 ms';
END
$$;

-- The state of a task as it is shown: a queued task with a fetch lease is active. That state is not stored (adr/0035).
CREATE FUNCTION shown_state(t tasks) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.state = 'queued' AND (SELECT true FROM leases l WHERE l.task_id = t.id AND l.kind = 'fetch' LIMIT 1) THEN 'active' ELSE t.state END
$$;

-- How many tasks of a group are active.
CREATE FUNCTION active_tasks(p_group bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT count(DISTINCT task_id) FROM leases WHERE group_id = p_group AND kind = 'fetch' $$;

-- When the oldest lease was granted under which a task's data are written now; NULL without one.
CREATE FUNCTION leased_since(p_task bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT min(granted_at) FROM leases WHERE task_id = p_task AND kind IN ('fetch', 'finalize')
$$;
