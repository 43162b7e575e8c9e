-- What a source will never do, and how it is asked then (range contract, "The ladder").

-- Whether a failure is what the source will always come to, at the third time: a body that breaks off at the same byte each time, which its detail
-- has to tell.
CREATE FUNCTION is_hopeless(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN f.kind = 'network' AND l.kind = 'fetch' AND l.attempts >= 2 AND t.failure_status BETWEEN 200 AND 299
        AND (l.durable = l.resume OR t.rung = 'whole') AND f.detail ~ '[0-9] bytes' AND (
            SELECT count(*) FILTER (WHERE a.detail = f.detail AND a.byte = l.durable AND a.status = t.failure_status) = 2
            FROM (SELECT detail, byte, status FROM attempts WHERE task_id = t.id ORDER BY serial DESC LIMIT 2) AS a);
END
$$;

-- Whether a source is known not to have the content of the task's version.
CREATE FUNCTION differs(t tasks, p_source integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT s.differs_in IS NOT DISTINCT FROM t.version FROM sources s WHERE s.task_id = t.id AND s.ordinal = p_source);
END
$$;

-- Whether a source may be asked plainly, to see whether that is served before the bytes of the version are given up: it is the only one that is
-- left, whichever taught the version.
CREATE FUNCTION may_look(l leases, t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN l.kind = 'fetch' AND t.rung <> 'whole' AND (t.mirrors = 1
        OR NOT EXISTS (SELECT 1 FROM sources s WHERE s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source));
END
$$;

-- Whether a silence ends with another source that has not been tried for the chunk: less patience is due then.
CREATE FUNCTION may_move_on(l leases, t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN l.kind = 'fetch' AND l.attempts < t.mirrors - 1 AND (t.mixes OR NOT t.planned) AND EXISTS (
        SELECT 1 FROM sources s
        WHERE s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source AND s.differs_in IS DISTINCT FROM t.version);
END
$$;

-- Whether it is time to look if a plain GET goes further than parts do, whose bodies have ended early within the chunk: at the second ending, the
-- fourth, the eighth and so on. A line on which every body breaks off brings the file on, and is not asked for more each time. Another source is the
-- better way out, unless its parts have ended early too.
CREATE FUNCTION looks_at_endings(l leases, t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_before bigint;
BEGIN
    IF t.failure_kind IS NULL OR l.kind <> 'fetch' OR t.rung = 'whole' OR EXISTS (
        SELECT 1 FROM sources s WHERE t.mirrors > 1 AND s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source AND NOT EXISTS (
            SELECT 1 FROM attempts a
            WHERE a.task_id = t.id AND a.source = s.ordinal AND a.kind IN ('network', 'tooSlow') AND a.status BETWEEN 200 AND 299))
    THEN
        RETURN false;
    END IF;
    SELECT count(*) INTO v_before FROM attempts a
    WHERE a.task_id = t.id AND a.kind IN ('network', 'tooSlow') AND a.status BETWEEN 200 AND 299
        AND a.byte >= l.first AND (l.last IS NULL OR a.byte < l.last);
    RETURN v_before > 0 AND (v_before & (v_before + 1)) = 0;
END
$$;

-- Whether a chunk has failed, and a plain GET is to be looked at before all tries are over: answers of the origin have ended early twice, which
-- is given up soon (`is_hopeless`); or hardly anything has come of the chunk, and nothing else but the beginning of its file: there is little to
-- give up.
CREATE FUNCTION looks_early(l leases, t tasks) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN l.attempts >= 2 AND t.failure_kind = 'network' AND t.failure_status BETWEEN 200 AND 299
        OR l.attempts > 0 AND l.durable < l.first + little(t)
        AND NOT EXISTS (SELECT 1 FROM done_chunks d WHERE d.task_id = l.task_id AND d.first > 0)
        AND NOT EXISTS (SELECT 1 FROM ready_chunks c
            WHERE c.task_id = l.task_id AND c.kind = 'fetch' AND c.first > 0 AND c.resume >= c.first + little(t))
        AND NOT EXISTS (SELECT 1 FROM leases h
            WHERE h.task_id = l.task_id AND h.kind = 'fetch' AND h.first > 0 AND h.durable >= h.first + little(t));
END
$$;

-- Fewer bytes than these are as good as none where the origin stopped after them.
CREATE FUNCTION little(t tasks) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN t.failure_kind = 'tooSlow' THEN 65536 ELSE 1 END
$$;

-- A source contradicts the way in which it was asked: the task starts over on a lower rung, which is no try. If there is none it is
-- one. A mirror of the source that taught the version is only left alone for it.
CREATE FUNCTION report_restart(
    p_session bigint, p_chunk bigint, p_epoch bigint, p_rung text, p_detail text, p_first_chunk bigint, p_max_attempts integer
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    f failure;
    v_tries integer;
    v_outcome text;
BEGIN
    f.session_id := p_session;
    f.kind := 'badRange';
    f.detail := p_detail;
    PERFORM lock_groups_of(ARRAY[p_chunk]);
    SELECT * INTO l FROM leases WHERE chunk_id = p_chunk AND epoch = p_epoch AND session_id = p_session AND kind = 'fetch';
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE tasks SET failure_kind = f.kind, failure_detail = f.detail, failure_at = statement_timestamp(),
        failure_status = NULL, failure_source = l.source, failure_request = NULL
    WHERE id = l.task_id RETURNING * INTO t;
    UPDATE sources SET failures = failures + 1 WHERE task_id = t.id AND ordinal = l.source;
    IF t.source <> l.source THEN
        v_outcome := leave_mirror(l, t, l.source, p_first_chunk, 2147483647);
    END IF;
    IF v_outcome IS NULL THEN
        v_tries := (p_rung <= t.rung)::integer;
        UPDATE tasks SET attempts = attempts + v_tries WHERE id = t.id;
        UPDATE sources SET rung = greatest(rung, p_rung)
        WHERE task_id = t.id AND ordinal = l.source;
        IF v_tries = 1 AND l.attempts + 1 >= p_max_attempts THEN
            PERFORM fail_task(t.id, f.kind, f.detail, l.chunk_id);
            v_outcome := 'failed';
        ELSE
            PERFORM start_over(t.id, p_first_chunk, l.source, l.attempts + v_tries, l.deaths);
            v_outcome := 'startOver';
        END IF;
    END IF;
    PERFORM note_attempt(t.id, l.source, l.durable, v_outcome, f);
END
$$;
