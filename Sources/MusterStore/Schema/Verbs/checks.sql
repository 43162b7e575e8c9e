-- Checks of the database against the sinks (adr/0048): their begin, their walks through sinks, and their end. What is found is in findings.sql, what
-- is repaired in repairs.sql.

-- Begins a check of these sinks, or of all that are in use if there are none, and forgets all but the last checks. If the same check is under way, returns
-- that; if another one is, NULL.
CREATE FUNCTION begin_check(p_deep boolean, p_repair boolean, p_sinks text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    c checks;
    v_sinks text[] := p_sinks;
    v_check bigint;
BEGIN
    -- Of two calls at once, the later one sees what the first one has begun.
    PERFORM pg_advisory_xact_lock(hashtext('muster.checks'), 0);
    IF cardinality(v_sinks) = 0 THEN v_sinks := known_sinks(true); END IF;
    SELECT * INTO c FROM checks WHERE finished_at IS NULL;
    IF FOUND THEN
        RETURN CASE WHEN c.deep = p_deep AND c.repair = p_repair AND c.sinks = v_sinks THEN c.id END;
    END IF;
    DELETE FROM checks WHERE id IN (SELECT o.id FROM checks o ORDER BY o.id DESC OFFSET 15);
    INSERT INTO checks (deep, repair, sinks) VALUES (p_deep, p_repair, v_sinks) RETURNING id INTO v_check;
    INSERT INTO check_walks (check_id, sink) SELECT DISTINCT v_check, sink FROM unnest(v_sinks) AS u (sink);
    RETURN v_check;
END
$$;

-- Whether the rows of the database are to be looked at now: twice, 5 s apart.
CREATE FUNCTION is_look_due(c checks) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT c.finished_at IS NULL AND c.looks < 2 AND (c.looked_at IS NULL OR c.looked_at < statement_timestamp() - interval '5 s')
$$;

-- The names of all sinks that a group or a live session uses; p_used: only those, otherwise also those that workers reached before.
CREATE FUNCTION known_sinks(p_used boolean) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(u.sink ORDER BY u.sink), '{}') FROM (
        SELECT g.sink FROM groups g
        UNION SELECT unnest(s.sinks) FROM sessions s WHERE s.expires_at > statement_timestamp()
        UNION SELECT k.name FROM sinks k WHERE NOT p_used
    ) AS u (sink)
$$;

-- Whether a session can look at a sink now.
CREATE FUNCTION can_check(s sessions, p_sink text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p_sink = ANY (s.sinks) AND p_sink <> ALL (s.parked) AND NOT s.draining AND s.expires_at > statement_timestamp()
$$;

-- Takes what a session reports of its walk, and returns what it looks at next: a page; `goOn` for a page that it says is under way; NULL if there is
-- nothing for it. The session keeps the walk that it holds, or takes one that no session holds which can go on with it. A report that comes again, or
-- under an earlier epoch, changes nothing. A loss of this commit means that a page is looked at again.
CREATE FUNCTION check_step(p_session bigint, p_report jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    w check_walks;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT k.* INTO w FROM check_walks k JOIN checks c ON c.id = k.check_id
    WHERE k.sink = p_report ->> 'sink' AND k.epoch = (p_report ->> 'epoch')::bigint AND k.session_id = p_session
        AND k.phase <> 'done' AND c.finished_at IS NULL FOR NO KEY UPDATE OF k;
    IF FOUND AND w.step = (p_report ->> 'step')::bigint THEN
        IF (p_report ->> 'isUnderWay')::boolean IS TRUE THEN
            RETURN jsonb_build_object('sink', w.sink, 'epoch', w.epoch, 'step', w.step, 'kind', 'goOn', 'isDeep', false);
        END IF;
        PERFORM take_check_report(w, p_report);
    END IF;
    SELECT k.* INTO w FROM check_walks k JOIN checks c ON c.id = k.check_id AND c.finished_at IS NULL
    JOIN sessions s ON s.id = p_session AND can_check(s, k.sink)
    WHERE k.phase <> 'done' AND (k.session_id IS NOT DISTINCT FROM p_session OR NOT EXISTS (
        SELECT 1 FROM sessions h WHERE h.id = k.session_id AND can_check(h, k.sink)))
    ORDER BY k.session_id IS DISTINCT FROM p_session, k.sink LIMIT 1 FOR NO KEY UPDATE OF k SKIP LOCKED;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF w.session_id IS DISTINCT FROM p_session THEN
        UPDATE check_walks SET session_id = p_session, epoch = nextval('lease_epochs') WHERE check_id = w.check_id AND sink = w.sink RETURNING * INTO w;
    END IF;
    RETURN check_order(w);
END
$$;

-- The page that the holder of a walk is to look at. A page that was given out before has the same end, so that nothing between two pages is left out.
-- A walk without another page of files goes on with parts, and after these with the names below .muster. NULL when it is done.
CREATE FUNCTION check_order(w check_walks) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_deep boolean;
    v_page jsonb;
BEGIN
    SELECT c.deep INTO v_deep FROM checks c WHERE c.id = w.check_id;
    IF w.phase = 'files' THEN
        SELECT f.page, f.last_path, f.last_task INTO v_page, w.upto_path, w.upto_task FROM files_to_check(w, v_deep) AS f;
        IF w.upto_task IS NULL THEN
            w.phase := 'parts';
            w.after_path := '';
            w.after_task := 0;
        END IF;
    END IF;
    IF w.phase = 'parts' THEN
        SELECT p.page, p.last_task INTO v_page, w.upto_task FROM parts_to_check(w) AS p;
        IF w.upto_task IS NULL THEN w.phase := 'names'; END IF;
    END IF;
    IF w.phase = 'names' THEN
        v_page := CASE WHEN w.suspects IS NULL THEN jsonb_build_object('kind', 'names', 'after', w.after_path)
            ELSE jsonb_build_object('kind', 'suspects') || w.suspects END;
    END IF;
    UPDATE check_walks SET phase = w.phase, after_path = w.after_path, after_task = w.after_task, upto_path = w.upto_path, upto_task = w.upto_task
    WHERE check_id = w.check_id AND sink = w.sink;
    RETURN jsonb_build_object('sink', w.sink, 'epoch', w.epoch, 'step', w.step, 'isDeep', v_deep) || v_page;
END
$$;

-- The next finished files of a sink by their paths, so that a worker goes through directory after directory: 256 at the most, and for a deep check of
-- 1 GiB together, or one. Of the tasks that had a path only the last one says what stands there. `last_task` is NULL when none is left.
CREATE FUNCTION files_to_check(w check_walks, p_deep boolean, OUT page jsonb, OUT last_path text, OUT last_task bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    WITH near AS MATERIALIZED (
        SELECT t, t.path AS place, t.id AS task FROM tasks t
        WHERE t.sink = w.sink AND is_placed(t.state) AND (t.path, t.id) > (w.after_path, w.after_task)
            AND (w.upto_task IS NULL OR (t.path, t.id) <= (w.upto_path, w.upto_task))
        ORDER BY t.path, t.id LIMIT 256
    ), summed AS MATERIALIZED (
        SELECT n.*, sum((n.t).size) OVER (ORDER BY n.place, n.task) - (n.t).size AS ahead FROM near n
    ), chosen AS MATERIALIZED (
        SELECT s.*, had_path_last(s.t) AS is_last FROM summed s WHERE NOT p_deep OR s.ahead < 1::bigint << 30
    )
    SELECT jsonb_build_object('kind', 'files', 'files', coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'task', c.task, 'version', (c.t).version, 'run', (c.t).run, 'path', c.place, 'size', (c.t).size,
                'crc', CASE WHEN p_deep THEN (c.t).content_crc END,
                'digests', CASE WHEN p_deep AND (c.t).content_crc IS NULL THEN (c.t).digests END))
            ORDER BY c.place, c.task) FILTER (WHERE c.is_last), '[]')),
        (array_agg(c.place ORDER BY c.place DESC, c.task DESC))[1], (array_agg(c.task ORDER BY c.place DESC, c.task DESC))[1]
    INTO page, last_path, last_task FROM chosen c;
    IF w.upto_task IS NOT NULL THEN
        last_path := w.upto_path;
        last_task := w.upto_task;
    END IF;
END
$$;

-- The next tasks, 256 at the most, of which finished or begun chunks are in a part, and how many bytes that part has at least.
CREATE FUNCTION parts_to_check(w check_walks, OUT page jsonb, OUT last_task bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    WITH near AS MATERIALIZED (
        SELECT u.task_id, u.version FROM (
            (SELECT d.task_id, d.version FROM done_chunks d
            WHERE d.task_id > w.after_task AND (w.upto_task IS NULL OR d.task_id <= w.upto_task)
            GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 256)
            UNION
            (SELECT c.task_id, c.version FROM ready_chunks c
            WHERE c.resume > c.first AND c.task_id > w.after_task AND (w.upto_task IS NULL OR c.task_id <= w.upto_task)
            GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 256)
        ) AS u ORDER BY 1, 2 LIMIT 256
    )
    SELECT jsonb_build_object('kind', 'parts', 'parts', coalesce(jsonb_agg(jsonb_build_object(
                'task', n.task_id, 'version', n.version, 'bytes', b.bytes, 'path', b.path)
            ORDER BY n.task_id) FILTER (WHERE b.bytes IS NOT NULL), '[]')), max(n.task_id)
    INTO page, last_task
    FROM near n LEFT JOIN LATERAL (SELECT durable_part(w.sink, t.id, n.version), t.path FROM task_of(n.task_id) AS t) AS b (bytes, path) ON true;
    last_task := coalesce(w.upto_task, last_task);
END
$$;

-- Takes the report on the page of a walk, and goes on to the next page.
CREATE FUNCTION take_check_report(w check_walks, p_report jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- A check does not end before this report is stored, and a report after its end changes nothing.
    PERFORM c.id FROM checks c WHERE c.id = w.check_id AND c.finished_at IS NULL FOR SHARE;
    IF NOT FOUND THEN RETURN; END IF;
    -- No page was given out: no worker sends this.
    IF w.phase <> 'names' AND w.upto_task IS NULL THEN RETURN; END IF;
    IF w.phase = 'files' THEN
        PERFORM note_files(w, p_report);
        w.after_path := w.upto_path;
        w.after_task := w.upto_task;
    ELSIF w.phase = 'parts' THEN
        PERFORM note_parts(w, p_report);
        w.after_task := w.upto_task;
    ELSIF w.suspects IS NULL THEN
        PERFORM note_strangers(w, p_report);
        w.suspects := suspects_of(w.sink, p_report);
        w.after_path := coalesce(p_report ->> 'last', w.after_path);
        w.is_last := p_report ->> 'last' IS NULL;
    ELSE
        PERFORM note_remains(w, p_report);
        w.suspects := NULL;
    END IF;
    IF w.phase = 'names' AND w.is_last AND w.suspects IS NULL THEN
        w.phase := 'done';
        w.session_id := NULL;
    END IF;
    UPDATE check_walks
    SET phase = w.phase, session_id = w.session_id, step = w.step + 1, after_path = w.after_path, after_task = w.after_task, upto_path = NULL,
        upto_task = NULL, suspects = w.suspects, is_last = w.is_last, is_cut = w.is_cut OR (p_report ->> 'isCut')::boolean IS TRUE,
        files = w.files + CASE WHEN w.upto_path IS NOT NULL THEN (p_report ->> 'looked')::bigint ELSE 0 END,
        parts = w.parts + CASE WHEN w.upto_path IS NULL THEN (p_report ->> 'looked')::bigint ELSE 0 END,
        bytes = w.bytes + (p_report ->> 'bytes')::bigint, unproven = w.unproven + (p_report ->> 'unproven')::bigint
    WHERE check_id = w.check_id AND sink = w.sink;
END
$$;

-- Ends the check that is under way if nothing of it is left to do.
CREATE FUNCTION end_check() RETURNS void
LANGUAGE sql AS $$
    UPDATE checks c SET finished_at = statement_timestamp()
    WHERE c.finished_at IS NULL AND c.looks = 2 AND NOT EXISTS (SELECT 1 FROM check_walks k WHERE k.check_id = c.id AND k.phase <> 'done')
        AND NOT EXISTS (SELECT 1 FROM check_findings f WHERE f.check_id = c.id AND f.outcome = 'pending')
$$;
