-- Takes in the first response to a task: its size, its validators and what else it stated, and the rung on which its source may be asked for the
-- rest; plans the chunks of the rest. A lease that asked for all of the file brings it, unless it is divided (once.sql). Returns whether the lease
-- still exists.
CREATE FUNCTION report_answer(a content, p_name text, p_rung text, p_asked_for_all boolean, p_chunk_size bigint) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    l leases;
    t tasks;
    v_more bigint := 0;
    v_charge bigint := 0;
    v_tile bigint;
BEGIN
    PERFORM lock_groups_of(ARRAY[a.chunk_id]);
    SELECT * INTO l FROM leases WHERE chunk_id = a.chunk_id AND epoch = a.epoch AND session_id = a.session_id AND kind = 'fetch';
    IF NOT FOUND THEN RETURN false; END IF;
    SELECT * INTO t FROM tasks WHERE id = l.task_id FOR NO KEY UPDATE;
    IF t.planned THEN RETURN true; END IF;
    -- A request to shrink from before the first byte is void.
    IF l.shrink_to IS NOT NULL THEN UPDATE leases SET shrink_to = NULL WHERE chunk_id = a.chunk_id; END IF;

    -- It may be divided even if it is no larger than a chunk: where a connection is slow, chunks are smaller (`at_most()`).
    IF p_rung = 'chunks' AND t.rung = 'chunks' AND a.size > least(l.last, 1048576)
        AND (p_asked_for_all OR a.size <= l.last AND l.first = 0 AND (SELECT o.serves_again FROM origins o WHERE o.id = l.origin_id))
    THEN
        v_tile := p_chunk_size;
    END IF;
    IF p_rung = 'chunks' AND t.rung = 'chunks' AND a.size > l.last AND v_tile IS NULL THEN
        -- The chunks tile [0, size): this one, and the rest from its end on (I3). The rest is fetched from the origin of the source's URL as it is
        -- now, which a resolver may have changed since the lease was granted.
        INSERT INTO ready_chunks (task_id, group_id, origin_id, source, sink, version, first, last, resume, rank)
        SELECT t.id, t.group_id, coalesce(s.fresh_origin_id, s.origin_id), l.source, t.sink, t.version, start,
            least(start + p_chunk_size, a.size), start, chunk_rank('fetch', t.priority, false)
        FROM sources s, generate_series(l.last, a.size - 1, p_chunk_size) AS start
        WHERE s.task_id = t.id AND s.ordinal = l.source;
        GET DIAGNOSTICS v_more = ROW_COUNT;
    ELSE
        v_charge := coalesce(byte_charge(a.size - l.resume) - l.charged, 0);
        UPDATE leases SET last = a.size, charged = charged + v_charge, tile = v_tile WHERE chunk_id = a.chunk_id;
    END IF;
    UPDATE tasks
    SET planned = true, rung = greatest(rung, p_rung), size = a.size, etag = a.etag, last_modified = a.last_modified,
        date_strong = a.date_strong, stated_digests = a.stated, effective_url = a.url, source = l.source,
        -- Bytes of several sources are one content only where their size and a strong tag or a digest say so (I8, row 30).
        mixes = mirrors > 1 AND NOT clean AND rung = 'chunks' AND p_rung = 'chunks' AND a.size IS NOT NULL
            AND (expected_digests IS NOT NULL OR a.stated IS NOT NULL OR coalesce(a.etag LIKE '"%"', false)),
        chunks_left = 1 + v_more
    WHERE id = t.id;
    UPDATE sources SET rung = greatest(t.rung, p_rung)
    WHERE task_id = t.id AND ordinal = l.source AND rung < greatest(t.rung, p_rung);
    UPDATE groups
    SET bytes_total = bytes_total + coalesce(a.size, 0) - coalesce(t.size, 0),
        unknown_tasks = unknown_tasks - (t.size IS NULL AND a.size IS NOT NULL)::integer
            + (t.size IS NOT NULL AND a.size IS NULL)::integer,
        served = served + v_charge / weight
    WHERE id = t.group_id;
    IF p_name IS NOT NULL THEN
        PERFORM name_task(t.id, p_name);
    END IF;
    IF v_tile IS NOT NULL THEN
        PERFORM try_origin(l, t, a.size);
    END IF;
    RETURN true;
END
$$;

-- Ends a task's path in the name that its origin suggests (row 34), unless that would be too long. No other live task of the sink and no
-- other file of the group has the resulting path: `name (2).ext`, `name (3).ext` … are tried.
CREATE FUNCTION name_task(p_task bigint, p_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t tasks;
    v_folder text;
    v_stem text := p_name;
    v_extension text := '';
    v_suffix text := '';
    v_path text;
BEGIN
    SELECT * INTO t FROM tasks WHERE id = p_task;
    v_folder := left(t.path, length(t.path) - length(split_part(t.path, '/', -1)));
    -- An extension is what follows the last dot, if anything comes before it and it is short.
    IF p_name ~ '^.+\.[^.]{1,16}$' THEN
        v_extension := '.' || split_part(p_name, '.', -1);
        v_stem := left(p_name, length(p_name) - length(v_extension));
    END IF;
    FOR n IN 2..1000 LOOP
        WHILE octet_length(v_stem || v_suffix || v_extension) > 255 AND v_stem <> '' LOOP
            v_stem := left(v_stem, -1);
        END LOOP;
        v_path := v_folder || v_stem || v_suffix || v_extension;
        IF v_stem = '' OR octet_length(v_path) > 1024 THEN RETURN; END IF;
        IF NOT EXISTS (
            SELECT 1 FROM tasks o
            WHERE o.group_id = t.group_id AND o.path = v_path AND o.named AND o.state = 'succeeded' AND o.id <> p_task)
        THEN
            BEGIN
                UPDATE tasks SET path = v_path, named = true WHERE id = p_task;
                RETURN;
            EXCEPTION WHEN unique_violation THEN
                -- A live task of this or another group has it.
                NULL;
            END;
        END IF;
        v_suffix := ' (' || n || ')';
    END LOOP;
END
$$;
