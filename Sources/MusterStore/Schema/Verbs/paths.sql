-- Which session may put a file at a path, and which may delete it (I17, adr/0017).

-- Whether a deletion is pending at a path, or a live session may still put a file there, or delete one, under a lease that it lost. Until that is over,
-- nothing is leased that may put a file there, for the same task neither: the session would put its file there after the success was told (I8).
CREATE FUNCTION is_path_disputed(p_sink text, p_path text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM ready_chunks c WHERE c.sink = p_sink AND c.remove_path = p_path)
        OR EXISTS (SELECT 1 FROM leases l WHERE l.sink = p_sink AND l.remove_path = p_path)
        OR EXISTS (SELECT 1 FROM holdouts h WHERE h.sink = p_sink AND h.path = p_path)
$$;

-- Whether work on a chunk may put its task's file in place. A chunk of several puts nothing there.
CREATE FUNCTION may_place(p_kind text, p_first bigint, p_last bigint, t tasks) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_kind = 'finalize' OR p_kind = 'fetch' AND (NOT t.planned OR p_first = 0 AND p_last IS NOT DISTINCT FROM t.size)
$$;

-- Of chunks that the caller has locked and is about to lease, returns those that are to be leased now. The others may put a file at a disputed path,
-- and wait for 250 ms. Costs three probes of indexes where nothing is disputed.
CREATE FUNCTION without_disputed(p_chunks bigint[]) RETURNS bigint[]
LANGUAGE plpgsql STRICT AS $$
DECLARE
    v_later bigint[];
BEGIN
    IF NOT EXISTS (SELECT 1 FROM holdouts) AND NOT EXISTS (SELECT 1 FROM ready_chunks WHERE remove_path IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM leases WHERE remove_path IS NOT NULL)
    THEN
        RETURN p_chunks;
    END IF;
    WITH held AS (
        UPDATE ready_chunks c SET status = 'waiting', not_before = statement_timestamp() + interval '250 ms'
        FROM tasks t
        WHERE c.id = ANY (p_chunks) AND t.id = c.task_id
            AND may_place(c.kind, c.first, c.last, t) AND is_path_disputed(t.sink, t.path)
        RETURNING c.id
    )
    SELECT array_agg(id) INTO v_later FROM held;
    IF v_later IS NULL THEN RETURN p_chunks; END IF;
    RETURN (SELECT array_agg(id ORDER BY n) FROM unnest(p_chunks) WITH ORDINALITY AS u (id, n) WHERE id <> ALL (v_later));
END
$$;

-- Whether a task was the last one to have its path. Otherwise the file there may belong to another task, which has succeeded there since or holds
-- leases now. The caller has locked the path.
CREATE FUNCTION had_path_last(t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT 1 FROM tasks o
        WHERE o.sink = t.sink AND o.path = t.path AND is_placed(o.state) AND o.id <> t.id AND (o.finished_at, o.id) > (t.finished_at, t.id)
    ) AND NOT EXISTS (
        SELECT 1 FROM tasks o
        WHERE o.sink = t.sink AND o.path = t.path AND holds_path(o.state) AND o.id <> t.id
            AND EXISTS (SELECT 1 FROM leases l WHERE l.task_id = o.id)
    );
END
$$;

-- Whether the file of a task that has succeeded is deleted with the task: it is not if another task has the same content at the same path, whichever
-- of the two put it there. The caller has locked the path.
CREATE FUNCTION takes_file_along(t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN had_path_last(t) AND NOT EXISTS (
        SELECT 1 FROM tasks o
        WHERE o.sink = t.sink AND o.path = t.path AND is_placed(o.state) AND o.id <> t.id
            AND o.size = t.size AND o.content_crc IS NOT DISTINCT FROM t.content_crc);
END
$$;

-- Locks all paths of the sinks of tasks that have ended, for a verb that has their files deleted. Leases of earlier claims are visible from here on,
-- and a later claim sees what is to be deleted. A live task needs no lock: it keeps others from its path anyhow.
CREATE FUNCTION lock_paths_of(p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(path_lock(), hashtext(s.sink)) FROM (
        SELECT DISTINCT sink FROM tasks WHERE id = ANY (p_tasks) AND started_at IS NOT NULL AND state IN ('succeeded', 'failed', 'cancelled')
        ORDER BY sink
    ) AS s;
END
$$;

-- The same for a claim, which shares the paths of a sink with other claims.
CREATE FUNCTION share_paths(p_sink text) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock_shared(path_lock(), hashtext(p_sink))
$$;

-- The class of these locks.
CREATE FUNCTION path_lock() RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT hashtext('muster.paths') $$;
