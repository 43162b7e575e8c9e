-- What checks find (adr/0048). A worker looks at a sink while everything goes on, so what it saw counts only if the database says the same before and
-- after the look: the functions here are the second look at the database.

-- What is done about a finding: nothing more is repaired once its check has ended.
CREATE FUNCTION outcome_of(f check_findings, c checks) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN f.outcome = 'pending' AND c.finished_at IS NOT NULL THEN 'found' ELSE f.outcome END
$$;

-- Whether a check may note more findings: the first 10,000 are kept.
CREATE FUNCTION has_room_for_findings(p_check bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM check_findings f WHERE f.check_id = p_check AND f.outcome <> 'seen') < 10000;
END
$$;

-- What became of finished files: `{task, version, run, kind, detail, isOwn}` each. It counts if the task has the same file as before the look, and no
-- other task has had the path since, or may have put a file there. A file is fetched again if it is gone, or if it may be replaced: no other program
-- has written to it (`isOwn`), or the group replaces files. A file that another program wrote to is that program's.
CREATE FUNCTION note_files(w check_walks, p_report jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO check_findings (check_id, kind, sink, subject, task_id, version, run, group_name, key, detail, outcome)
    SELECT w.check_id, f.kind, w.sink, t.path, t.id, t.version, t.run, g.name, t.key, f.detail,
        CASE WHEN c.repair AND (f.kind = 'fileMissing' OR f.kind = 'fileChanged' AND (f."isOwn" OR g.policy ->> 'ifExists' = 'replace'))
            THEN 'pending' ELSE 'found' END
    FROM jsonb_to_recordset(p_report -> 'files') AS f (task bigint, version integer, run integer, kind text, detail text, "isOwn" boolean)
    CROSS JOIN task_of(f.task) AS t JOIN groups g ON g.id = t.group_id JOIN checks c ON c.id = w.check_id
    WHERE f.kind IN ('fileMissing', 'fileChanged', 'fileUnreadable', 'fileWritten', 'fileForeign')
        AND t.sink = w.sink AND t.state = 'succeeded' AND t.version = f.version AND t.run = f.run AND had_path_last(t)
        AND NOT EXISTS (SELECT 1 FROM tasks o WHERE o.sink = t.sink AND o.path = t.path AND holds_path(o.state))
        AND has_room_for_findings(w.check_id)
    ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
$$;

-- How many bytes the part of a content version has at least; NULL if the task need not have that part. A part is among the shared ones while a chunk of
-- it is ready: no job puts it in place before the last chunk is done.
CREATE FUNCTION durable_part(p_sink text, p_task bigint, p_version integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT greatest(
            (SELECT max(d.last) FROM done_chunks d WHERE d.task_id = t.id AND d.version = t.version AND d.last > d.first),
            (SELECT max(c.resume) FROM ready_chunks c WHERE c.task_id = t.id AND c.version = t.version AND c.resume > c.first))
        FROM task_of(p_task) AS t
        WHERE t.version = p_version AND t.sink = p_sink AND t.state IN ('queued', 'paused', 'failed')
            AND (EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = t.id AND c.kind = 'fetch')
                OR EXISTS (SELECT 1 FROM leases l WHERE l.task_id = t.id AND l.kind = 'fetch')));
END
$$;

-- The name of a part in a sink.
CREATE FUNCTION part_name(p_task bigint, p_version integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT format('%s.%s.part', p_task, p_version) $$;

-- Parts that are missing (without a size) or end before the last byte that was durable before the look: `{task, version, size}` each.
CREATE FUNCTION note_parts(w check_walks, p_report jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO check_findings (check_id, kind, sink, subject, task_id, version, run, group_name, key, detail, outcome)
    SELECT w.check_id, CASE WHEN p.size IS NULL THEN 'partMissing' ELSE 'partShort' END, w.sink, t.path, t.id, t.version, t.run, g.name, t.key,
        format('%s %s, and was stored up to byte %s', part_name(t.id, t.version),
            CASE WHEN p.size IS NULL THEN 'is not there' ELSE 'ends at byte ' || p.size END, durable_part(w.sink, t.id, p.version)),
        CASE WHEN c.repair THEN 'pending' ELSE 'found' END
    FROM jsonb_to_recordset(p_report -> 'parts') AS p (task bigint, version integer, size bigint)
    CROSS JOIN task_of(p.task) AS t JOIN groups g ON g.id = t.group_id JOIN checks c ON c.id = w.check_id
    WHERE durable_part(w.sink, t.id, p.version) > coalesce(p.size, 0) AND has_room_for_findings(w.check_id)
    ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
$$;

-- Whether no row explains a part: no unfinished task is at this version or an earlier one, no deletion is on its way, and no session may be writing it.
-- A task that is finished has moved its part away before it was reported.
CREATE FUNCTION is_unknown_part(p_task bigint, p_version integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT 1 FROM task_of(p_task) AS t WHERE t.version <= p_version AND t.state NOT IN ('succeeded', 'cancelled'))
        AND NOT EXISTS (SELECT 1 FROM ready_chunks c WHERE c.task_id = p_task AND c.kind = 'purge')
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.task_id = p_task)
        AND NOT EXISTS (SELECT 1 FROM holdouts h WHERE h.task_id = p_task);
END
$$;

-- Whether no row explains a session's directory in a sink: the session is over, and is not to be revoked there.
CREATE FUNCTION is_unknown_session(p_sink text, p_session bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p_session)
        AND NOT EXISTS (SELECT 1 FROM revocations r WHERE r.sink = p_sink AND r.session_id = p_session);
END
$$;

-- Of the names that a worker has listed, those that no row explains; NULL if there are none. They may have been removed between the list and this look,
-- so the worker looks at them once more.
CREATE FUNCTION suspects_of(p_sink text, p_report jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_parts jsonb;
    v_sessions jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object('task', p.task, 'version', p.version)) INTO v_parts
    FROM jsonb_to_recordset(p_report -> 'parts') AS p (task bigint, version integer) WHERE is_unknown_part(p.task, p.version);
    SELECT jsonb_agg(s.id::bigint) INTO v_sessions
    FROM jsonb_array_elements_text(p_report -> 'sessions') AS s (id) WHERE is_unknown_session(p_sink, s.id::bigint);
    IF v_parts IS NULL AND v_sessions IS NULL THEN RETURN NULL; END IF;
    RETURN jsonb_build_object('parts', coalesce(v_parts, '[]'), 'sessions', coalesce(v_sessions, '[]'));
END
$$;

-- Suspects that are there at the worker's second look, and that no row explains still.
CREATE FUNCTION note_remains(w check_walks, p_report jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO check_findings (check_id, kind, sink, subject, task_id, version, detail, outcome)
    SELECT w.check_id, r.kind, w.sink, r.subject, r.task, r.version, r.detail, CASE WHEN c.repair THEN 'pending' ELSE 'found' END
    FROM (
        SELECT 'partUnknown' AS kind, 'parts/' || part_name(p.task, p.version) AS subject, p.task, p.version,
            format('%s bytes that no unfinished task needs', coalesce(p.size, 0)) AS detail
        FROM jsonb_to_recordset(p_report -> 'parts') AS p (task bigint, version integer, size bigint)
        WHERE is_unknown_part(p.task, p.version)
        UNION ALL
        SELECT 'sessionUnknown', s.id, s.id::bigint, NULL, 'the directory of a session that is over'
        FROM jsonb_array_elements_text(p_report -> 'sessions') AS s (id) WHERE is_unknown_session(w.sink, s.id::bigint)
    ) AS r JOIN checks c ON c.id = w.check_id
    WHERE has_room_for_findings(w.check_id)
    ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
$$;

-- Other installations that use the sink: their directories are never touched (I18).
CREATE FUNCTION note_strangers(w check_walks, p_report jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO check_findings (check_id, kind, sink, subject, detail, outcome)
    SELECT w.check_id, 'installationForeign', w.sink, u.name, 'another installation uses the sink', 'found'
    FROM jsonb_array_elements_text(p_report -> 'installations') AS u (name)
    WHERE has_room_for_findings(w.check_id)
    ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
$$;
