-- Moves staged tasks into a group, all or none (adr/0025). `outcome` is 'added', or the reason why nothing was, with the line of the manifest and its
-- first URL. If two lines disagree, the same of the other line is returned; if a live task has the destination, `other` is its group. With any
-- outcome but 'added' the caller rolls back.
--
-- p_staged is how many lines were staged. Fewer are there when the database crashed in between (the table is not logged), when
-- the upload was swept, or when this very call was committed before and its answer got lost: then nothing is added, and the
-- caller sends everything again, which is harmless.
--
-- With p_reopens, a group that is sealed or has finished is opened if any staged task is new to it. The outcome 'cancelling' says that a cancel of
-- the group has to be finished first.
CREATE FUNCTION add_tasks(p_group bigint, p_upload bigint, p_staged bigint, p_first_chunk bigint, p_reopens boolean)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text, added bigint, existing bigint)
LANGUAGE plpgsql
-- Other uploads may have left millions of rows among which few are looked for.
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    g groups;
    v_round integer := 0;
    v_more bigint;
BEGIN
    added := 0;
    existing := 0;
    -- A plan for few lines is not good for millions. An upload that is younger than the statistics looks like a single line: a nested loop over
    -- thousands of lines would take minutes.
    IF p_staged > 100 THEN
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_nestloop', 'off', true);
    END IF;
    PERFORM add_origins(p_upload);
    LOOP
        v_round := v_round + 1;
        -- Four rounds go without the lock of the group, which others wait for. With the lock, the group does not change any more.
        IF v_round > 4 THEN
            PERFORM FROM groups WHERE id = p_group FOR NO KEY UPDATE;
        END IF;
        SELECT * INTO g FROM groups WHERE id = p_group;
        IF NOT FOUND OR is_removing(g) THEN
            outcome := 'removed';
        ELSIF v_round = 1 AND p_staged <> (SELECT count(*) FROM staged_tasks s WHERE s.upload = p_upload) THEN
            outcome := 'incomplete';
        ELSIF v_round = 1 AND EXISTS (SELECT FROM staged_nesting(p_upload)) THEN
            SELECT n.* INTO outcome, line, other_line, subject, url, other FROM staged_nesting(p_upload) AS n;
        ELSIF v_round > 1 OR g.state <> 'open' THEN
            -- Something prevents the addition: `settle_staged` finds out what.
            SELECT r.* INTO outcome, line, other_line, subject, url, other, v_more FROM settle_staged(g, p_upload, p_reopens) AS r;
            existing := existing + v_more;
        END IF;
        IF outcome IS NOT NULL THEN RETURN NEXT; RETURN; END IF;
        IF g.state <> 'open' THEN
            SELECT * INTO g FROM groups WHERE id = p_group;
            -- The group was removed before it could be opened.
            IF NOT FOUND THEN
                outcome := 'removed';
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
        BEGIN
            PERFORM place_staged(g, p_upload, p_first_chunk);
            added := count_staged(g, p_upload);
            outcome := 'added';
            RETURN NEXT;
            RETURN;
        -- A key or a destination exists already (I17), or the group has changed.
        EXCEPTION WHEN unique_violation OR serialization_failure THEN
            IF v_round = 9 THEN RAISE; END IF;
        END;
    END LOOP;
END
$$;

-- Adds the origins of staged lines. They come before groups in the order of locks. A large upload has them added in a transaction of their own: until
-- its commit, a new origin blocks other transactions that add the same one.
CREATE FUNCTION add_origins(p_upload bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO origins (key)
    SELECT n.key FROM (SELECT DISTINCT unnest(s.origins) AS key FROM staged_tasks s WHERE s.upload = p_upload) AS n
    WHERE NOT EXISTS (SELECT 1 FROM origins o WHERE o.key = n.key) ORDER BY n.key
    ON CONFLICT (key) DO NOTHING
$$;

-- Drops the staged lines that change nothing, and opens a group that is not open if it has to be. `existing` is how many keys the group has
-- already; `outcome` says what ends the addition, and is NULL when it goes on.
CREATE FUNCTION settle_staged(g groups, p_upload bigint, p_reopens boolean)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text, existing bigint)
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
BEGIN
    existing := 0;
    -- 1. A key that comes twice is harmless when it means the same, and refused when it does not.
    SELECT k.* INTO outcome, line, other_line, subject, url, other FROM staged_key_conflict(p_upload) AS k;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;
    DELETE FROM staged_tasks s
    USING (
        SELECT t.line, row_number() OVER (PARTITION BY t.key ORDER BY t.line) AS n
        FROM staged_tasks t WHERE t.upload = p_upload
    ) AS d
    WHERE s.upload = p_upload AND s.line = d.line AND d.n > 1;

    -- 2. Keys that exist already change nothing. A line without a key of its own is known by its path and its URLs: with other URLs it is another
    -- file.
    SELECT u.* INTO outcome, line, other_line, subject, url, other FROM staged_with_other_urls(g, p_upload) AS u;
    IF FOUND THEN RETURN NEXT; RETURN; END IF;
    DELETE FROM staged_tasks s USING tasks t WHERE s.upload = p_upload AND t.group_id = g.id AND t.key = s.key;
    GET DIAGNOSTICS existing = ROW_COUNT;
    outcome := CASE WHEN NOT EXISTS (SELECT 1 FROM staged_tasks s WHERE s.upload = p_upload) THEN 'added'
        WHEN overflows(g, p_upload) THEN 'tooLarge' END;
    IF outcome IS NOT NULL THEN RETURN NEXT; RETURN; END IF;
    IF g.state <> 'open' AND NOT p_reopens THEN
        SELECT CASE WHEN g.state = 'sealed' AND NOT is_cancelling(g) THEN 'sealed' ELSE 'finished' END, s.line, s.key
        INTO outcome, line, subject
        FROM staged_tasks s WHERE s.upload = p_upload ORDER BY s.line LIMIT 1;
        RETURN NEXT;
        RETURN;
    END IF;

    -- 3. Two live tasks never have one destination (I17). The unique index stands behind this.
    SELECT p.* INTO outcome, line, other_line, subject, url, other FROM staged_path_conflict(g, p_upload) AS p;
    IF NOT FOUND AND g.state <> 'open' AND NOT reopen_group(g.id) THEN
        outcome := 'cancelling';
    END IF;
    RETURN NEXT;
END
$$;

-- Whether the sizes of a group's files would add up to more than a bigint holds, with those that are staged.
CREATE FUNCTION overflows(g groups, p_upload bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT g.bytes_total + coalesce(sum(s.size), 0) >= 2 ^ 63 FROM staged_tasks s WHERE s.upload = p_upload
$$;

-- The first staged line whose key an earlier line has with other URLs or another path; no row when there is none.
CREATE FUNCTION staged_key_conflict(p_upload bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE sql STABLE AS $$
    SELECT 'duplicateKey', d.line, d.first_line, d.key, d.urls[1], d.first_urls[1]
    FROM (
        SELECT s.line, s.key, s.urls, s.path, first_value(s.line) OVER w AS first_line, first_value(s.urls) OVER w AS first_urls,
            first_value(s.path) OVER w AS first_path
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (PARTITION BY s.key ORDER BY s.line)
    ) AS d
    WHERE d.line <> d.first_line AND (d.urls <> d.first_urls OR d.path <> d.first_path) ORDER BY d.line LIMIT 1
$$;

-- The first staged line without a key of its own whose path is the key of a task that has none of its URLs; no row when there is none.
CREATE FUNCTION staged_with_other_urls(g groups, p_upload bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE sql STABLE AS $$
    SELECT 'otherURLs', s.line, NULL::bigint, s.key, s.urls[1], o.url
    FROM staged_tasks s JOIN tasks t ON t.group_id = g.id AND t.key = s.key JOIN sources o ON o.task_id = t.id AND o.ordinal = 0
    WHERE s.upload = p_upload AND NOT s.has_own_key
        AND NOT EXISTS (SELECT FROM sources u WHERE u.task_id = t.id AND u.url = ANY (s.urls))
    ORDER BY s.line LIMIT 1
$$;

-- Two staged lines of which one has a file where the other one needs a directory; no row when there are none. The slash sorts before all other
-- characters, so that paths below a path come right behind it.
CREATE FUNCTION staged_nesting(p_upload bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE sql STABLE AS $$
    SELECT 'nestedPath', greatest(d.line, d.next_line), least(d.line, d.next_line), d.path,
        (SELECT s.urls[1] FROM staged_tasks s WHERE s.upload = p_upload AND s.line = greatest(d.line, d.next_line)),
        (SELECT s.urls[1] FROM staged_tasks s WHERE s.upload = p_upload AND s.line = least(d.line, d.next_line))
    FROM (
        SELECT s.line, s.path, lead(s.line) OVER w AS next_line, lead(s.path) OVER w AS next_path
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (ORDER BY translate(s.path, '/', chr(1)) COLLATE "C", s.line DESC)
    ) AS d
    WHERE starts_with(d.next_path, d.path || '/') LIMIT 1
$$;

-- The first staged line whose destination an earlier line or a live task has; no row when there is none.
CREATE FUNCTION staged_path_conflict(g groups, p_upload bigint)
RETURNS TABLE (outcome text, line bigint, other_line bigint, subject text, url text, other text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT 'duplicatePath', d.line, d.first_line, d.path, d.urls[1], d.first_urls[1]
    FROM (
        SELECT s.line, s.path, s.urls, first_value(s.line) OVER w AS first_line, first_value(s.urls) OVER w AS first_urls
        FROM staged_tasks s WHERE s.upload = p_upload WINDOW w AS (PARTITION BY s.path ORDER BY s.line)
    ) AS d
    WHERE d.line <> d.first_line ORDER BY d.line LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    RETURN QUERY
    -- Each path is looked for by its index: the sink may have millions of live tasks. A task that was added to the group meanwhile with the line's
    -- own key is found to exist in the next round.
    SELECT 'destinationTaken', s.line, NULL::bigint, s.path, s.urls[1], o.name
    FROM staged_tasks s CROSS JOIN LATERAL (
        SELECT t.group_id, t.key FROM tasks t
        WHERE t.sink = g.sink AND t.path = s.path AND holds_path(t.state) LIMIT 1
    ) AS t
    JOIN groups o ON o.id = t.group_id
    WHERE s.upload = p_upload AND (t.group_id <> g.id OR t.key <> s.key) ORDER BY s.line LIMIT 1;
END
$$;

-- Makes tasks of staged lines: the tasks, their sources, and the first chunk of each. No other transaction sees them before the commit, so the group
-- need not be locked. They are inserted by key: concurrent additions with common keys meet them in the same order.
CREATE FUNCTION place_staged(g groups, p_upload bigint, p_first_chunk bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tasks (id, group_id, key, sink, path, state, priority, expected_size, expected_digests, metadata, size,
        fetch_options, content_type, time_limit, deadline_at, mirrors, reuse_key)
    SELECT s.task, g.id, s.key, g.sink, s.path, CASE WHEN g.desired = 'pause' THEN 'paused' ELSE 'queued' END, s.priority,
        s.size, s.digests, s.metadata, s.size, s.options, s.content_type, s.deadline_ms * interval '1 ms',
        statement_timestamp() + s.deadline_ms * interval '1 ms', cardinality(s.urls),
        -- Equal for tasks that ask for the same in the same way: reuse.sql.
        reuse_key(g, s.urls[1], s.options)
    FROM staged_tasks s WHERE s.upload = p_upload ORDER BY s.key;

    INSERT INTO sources (task_id, ordinal, url, origin_id, headers)
    SELECT s.task, u.ordinal - 1, u.url, o.id, s.headers
    FROM staged_tasks s
    CROSS JOIN unnest(s.urls, s.origins) WITH ORDINALITY AS u (url, origin, ordinal)
    JOIN origins o ON o.key = u.origin
    WHERE s.upload = p_upload;

    INSERT INTO ready_chunks (task_id, group_id, origin_id, sink, version, last, rank, status, may_move)
    SELECT s.task, g.id, o.id, g.sink, 1, least(s.size, p_first_chunk), chunk_rank('fetch', s.priority, true),
        CASE WHEN g.desired = 'pause' THEN 'parked' ELSE 'ready' END, cardinality(s.origins) > 1
    FROM staged_tasks s JOIN origins o ON o.key = s.origins[1] WHERE s.upload = p_upload ORDER BY s.task;
END
$$;

-- Drops the staged lines and counts them as tasks of the group, which it locks for that last step (I6). Returns how many there are. Fails
-- with serialization_failure if the group takes no tasks like these any more.
CREATE FUNCTION count_staged(g groups, p_upload bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_now groups;
    v_count bigint;
    v_bytes numeric;
    v_unknown bigint;
BEGIN
    WITH dropped AS (
        DELETE FROM staged_tasks s WHERE s.upload = p_upload RETURNING s.size
    )
    SELECT count(*), coalesce(sum(d.size), 0), count(*) FILTER (WHERE d.size IS NULL) INTO v_count, v_bytes, v_unknown FROM dropped d;
    SELECT * INTO v_now FROM groups WHERE id = g.id FOR NO KEY UPDATE;
    IF v_now.state IS DISTINCT FROM 'open' OR v_now.desired <> g.desired OR v_now.bytes_total + v_bytes >= 2 ^ 63 THEN
        RAISE serialization_failure USING MESSAGE = 'the group has changed';
    END IF;
    UPDATE groups
    SET queued = queued + CASE WHEN g.desired = 'pause' THEN 0 ELSE v_count END,
        paused = paused + CASE WHEN g.desired = 'pause' THEN v_count ELSE 0 END,
        bytes_total = bytes_total + v_bytes, unknown_tasks = unknown_tasks + v_unknown
    WHERE id = g.id;
    RETURN v_count;
END
$$;

-- Opens a group for more tasks. A group that had finished begins its next generation, with a new deadline; a group whose time was over
-- gets a new deadline too. Returns false when a cancel of it has to be finished first.
CREATE FUNCTION reopen_group(p_group bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    g groups;
BEGIN
    SELECT * INTO g FROM groups WHERE id = p_group FOR NO KEY UPDATE;
    IF is_cancelling(g) THEN RETURN false; END IF;
    IF g.state = 'sealed' THEN
        -- A task that is added to a group whose time was over does not fail with the rest.
        UPDATE groups
        SET state = 'open', overdue = false,
            deadline_at = CASE WHEN overdue THEN statement_timestamp() + time_limit ELSE deadline_at END
        WHERE id = p_group;
    ELSIF g.state <> 'open' THEN
        UPDATE groups
        SET state = 'open', generation = generation + 1, desired = 'run', finished_at = NULL, overdue = false,
            deadline_at = statement_timestamp() + time_limit
        WHERE id = p_group AND NOT is_removing(groups);
    END IF;
    RETURN true;
END
$$;
