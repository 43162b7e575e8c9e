-- What a failure means, and what follows for the chunk. In this order: the URL has expired (row 21, questions.sql); there is too much at once
-- (row 24, limits.sql); the content has changed (rows 6, 29, 30); and the rule of the failure's kind for everything else.
--
-- clock_timestamp() is used for times that are compared with the times of grants: it is read after the locks are taken.

-- Handles failed leases in one transaction, in the order in which they were reported.
CREATE FUNCTION report_failures(p_failures failure[]) RETURNS void
LANGUAGE plpgsql
SET lock_timeout = '1s'
AS $$
DECLARE
    f failure;
BEGIN
    -- Origins come before groups in the order of locks.
    PERFORM o.id FROM origins o
    WHERE o.id IN (
        SELECT l.origin_id FROM leases l JOIN unnest(p_failures) AS u ON has_id(l.chunk_id, u.chunk_id)
        WHERE u.retry_after IS NOT NULL OR u.limit_signal <> 'none' OR u.rule = 'nextSource' AND u.status BETWEEN 400 AND 499 OR u.kind IN ('network', 'timeout'))
    ORDER BY o.id FOR NO KEY UPDATE;
    PERFORM report_progress(array_agg(u.session_id), array_agg(u.chunk_id), array_agg(u.epoch), array_agg(u.durable), array_agg(u.crc), true)
    FROM unnest(p_failures) AS u;
    PERFORM set_config('synchronous_commit', 'on', true);
    FOREACH f IN ARRAY p_failures LOOP
        PERFORM fail_lease(f);
    END LOOP;
END
$$;

-- Handles a lease that failed, and notes the outcome.
CREATE FUNCTION fail_lease(f failure) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    t tasks;
    v_source integer;
    v_outcome text;
BEGIN
    SELECT * INTO l FROM leases WHERE chunk_id = f.chunk_id AND epoch = f.epoch AND session_id = f.session_id;
    IF NOT FOUND THEN RETURN; END IF;
    IF l.kind = 'purge' THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
        UPDATE ready_chunks
        SET status = 'waiting', not_before = statement_timestamp() + interval '10 s',
            remove_failure = CASE WHEN l.remove_group IS NOT NULL THEN f.detail END
        WHERE id = l.chunk_id;
        RETURN;
    END IF;

    SELECT * INTO t FROM tasks WHERE id = l.task_id FOR NO KEY UPDATE;
    IF l.kind = 'trial' THEN
        PERFORM fail_trial(l, t, f);
        RETURN;
    END IF;
    -- A fault of the file as a whole is blamed on the source that taught its version.
    v_source := coalesce(CASE WHEN l.kind = 'finalize' THEN t.source END,
        (SELECT s.ordinal FROM sources s WHERE s.task_id = t.id AND s.ordinal = f.source), l.source);
    IF f.rule = 'returnChunk' OR was_asked_in_the_old_way(l, f.status) THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
        v_outcome := 'returned';
    ELSIF spare_chunk(l, f) THEN
        v_outcome := 'returned';
    ELSE
        UPDATE tasks
        SET failure_kind = f.kind, failure_detail = f.detail, failure_at = statement_timestamp(), failure_status = f.status,
            failure_source = v_source, failure_request = f.request
        WHERE id = t.id RETURNING * INTO t;
        UPDATE sources SET failures = failures + 1, failed = failed + (l.kind = 'finalize')::integer
        WHERE task_id = t.id AND ordinal = v_source AND (l.kind = 'fetch' OR f.kind = 'digestMismatch');
        PERFORM heed_origin(l, f);

        IF l.kind = 'resolve' THEN
            v_outcome := fail_question(l, t, f);
        ELSIF l.kind = 'fetch' AND f.is_expiry THEN
            v_outcome := renew_source(l, t, v_source, f);
        ELSIF l.kind = 'fetch' AND f.rule = 'startOver' AND f.kind <> 'digestMismatch' AND t.source <> v_source THEN
            v_outcome := leave_mirror(l, t, v_source, f.policy);
        ELSIF l.kind = 'fetch' AND f.kind = 'noSpace' AND NOT t.planned AND NOT is_hopeless(l, t, f) THEN
            v_outcome := ask_for_size(l, t, f);
        END IF;
        -- None of the outcomes above counts as a try.
        IF v_outcome IS NULL THEN
            v_outcome := follow_rule(l, t, v_source, going_round(f, l, t));
        END IF;
        -- A Retry-After for one file is not waited for in full, but tested: after 30 s, 90 s, 270 s …
        UPDATE ready_chunks
        SET not_before = greatest(not_before, statement_timestamp()
            + least(3600, f.retry_after, 30 * power(3, least(8, greatest(0, attempts - 1)))) * interval '1 s')
        WHERE id = l.chunk_id AND status = 'waiting' AND source = v_source AND f.retry_after IS NOT NULL;
    END IF;
    PERFORM note_attempt(t.id, CASE WHEN l.kind <> 'finalize' THEN v_source END, l.durable, v_outcome, f);
END
$$;

-- Whether a lease was refused for options that its group no longer has, such as a token: the next lease has the new ones. A 408 or 429 says nothing
-- of the options.
CREATE FUNCTION was_asked_in_the_old_way(l leases, p_status integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT l.kind IN ('fetch', 'resolve') AND p_status IN (400, 401, 403, 404, 407)
            AND EXISTS (SELECT 1 FROM groups g WHERE g.id = l.group_id AND g.asked_anew_at > l.granted_at));
END
$$;

-- The source that a chunk is fetched from after a failure that says nothing of the file; NULL if none is left. Unmixed chunks stay with the source
-- that taught their version for some tries, unless their bytes are lost anyhow. After that the task starts over at another source, since nothing
-- would tell the bytes of the two apart (I8); but not for ever (I12).
CREATE FUNCTION following_source(l leases, t tasks, f failure, p_attempts integer, p_keeps boolean) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    -- A source that is out is no reason to leave one that serves others.
    IF f.rule = 'retry' AND l.kind = 'fetch' AND t.mirrors > 1 AND NOT t.planned AND l.durable = l.resume THEN
        PERFORM ask_once_more(l, l.source);
    END IF;
    v_next := next_source(t, l.source,
        p_keeps AND NOT t.mixes AND (p_attempts < 3 AND goes_on(t) OR t.restarts + 1 >= (f.policy).max_restarts));
    IF v_next <= l.source AND p_attempts >= 3 AND t.restarts + 1 < (f.policy).max_restarts THEN
        -- After the others have had their turns: a source that was skipped, since its content is not this version's, may be the better one.
        SELECT coalesce(min(s.ordinal), v_next) INTO v_next FROM sources s
        WHERE s.task_id = t.id AND NOT s.dead AND s.ordinal <> l.source AND s.differs_in = t.version;
    END IF;
    RETURN v_next;
END
$$;

-- Applies the rule of a failure's kind: moves the chunk on, or fails the task. The failure counts as a try unless it is a sign of too much at once.
-- Returns the outcome.
CREATE FUNCTION follow_rule(l leases, t tasks, p_source integer, f failure) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_counts boolean := heed_limit(l, t, f);
    v_rule text := CASE WHEN v_counts IS NOT NULL THEN 'retry' WHEN is_hopeless(l, t, f) THEN 'nextSource' ELSE f.rule END;
    -- Progress resets the tries (I12), but not if its bytes are lost, and not if hardly anything came before a silence.
    v_brought boolean := l.durable >= l.resume + little(l, t) AND goes_on(t);
    v_before integer := CASE WHEN v_brought THEN 0 ELSE l.attempts END;
    v_attempts integer := v_before + coalesce(v_counts, true)::integer;
    v_most integer := most_attempts(l, v_attempts, f);
    v_next integer;
    v_wait interval;
    v_keeps boolean := t.planned AND (l.first > 0 OR NOT has_little(l.chunk_id, 1));   -- a response of which no byte came may have planned the version
BEGIN
    -- A try during an outage, or while a limit may pass, is not counted when it would be the last one.
    IF v_most > f.max_attempts OR v_attempts >= v_most AND v_counts IS NOT NULL AND may_pass(l, f) THEN v_attempts := v_before; END IF;
    UPDATE tasks SET attempts = greatest(attempts, v_attempts) WHERE id = t.id AND v_attempts > v_before;
    IF v_rule = 'startOver' AND f.kind = 'digestMismatch' THEN
        RETURN fetch_again(l, t, p_source, f);
    ELSIF v_rule = 'startOver' THEN
        RETURN accept_change(l, t, p_source, f);
    END IF;
    -- A source that is not reached is given up after fewer tries than others get, which go on.
    v_rule := CASE WHEN v_rule = 'retry' AND l.kind = 'fetch' AND f.kind <> 'noPermission' AND v_most < f.max_attempts
        AND v_attempts >= v_most AND v_attempts > v_before AND has_another_source(t.id, p_source) THEN 'nextSource' ELSE v_rule END;
    -- Another source does not help work that fetches nothing: its tries are bounded whatever the rule (I12).
    IF v_rule = 'giveUp'
        OR (v_rule IN ('retry', 'setBack') OR l.kind <> 'fetch') AND v_attempts >= v_most AND v_attempts > v_before
    THEN
        PERFORM fail_task(t.id, f.kind, f.detail, l.chunk_id);
        RETURN 'failed';
    ELSIF v_rule = 'setBack' THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
        PERFORM move_chunks(t.id, l.source, coalesce(next_source(t, l.source, t.planned), l.source));
        PERFORM set_back(t.id, v_attempts, backoff(v_attempts, f));
        RETURN 'retry';
    ELSIF l.kind <> 'fetch' THEN
        PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
        UPDATE ready_chunks SET attempts = v_attempts, status = 'waiting', not_before = statement_timestamp() + interval '1 s'
        WHERE id = l.chunk_id;
        RETURN 'retry';
    END IF;

    -- A lease of the last source may have been granted while there were others: its holder was not told that it may look.
    IF v_rule = 'nextSource' AND t.mirrors > 1 AND v_before = 0 AND may_look(l, t) THEN
        v_rule := 'retry';
    ELSIF v_rule = 'nextSource' THEN
        v_attempts := give_up_source(l, p_source, f, v_attempts);
        IF v_attempts IS NULL THEN
            PERFORM fail_task(t.id, f.kind, f.detail, l.chunk_id);
            RETURN 'failed';
        END IF;
    END IF;
    v_next := following_source(l, t, f, v_attempts, v_keeps);
    IF v_next IS NULL OR v_next <> l.source AND (t.planned AND NOT t.mixes OR differs(t, v_next)) THEN
        UPDATE tasks SET restarts = restarts + 1 WHERE id = t.id AND v_rule = 'retry' AND v_keeps;
        PERFORM start_over(t.id, (f.policy).first_chunk, coalesce(v_next, l.source), v_attempts, l.deaths, l.chunk_id);
        -- All sources have had their turn.
        UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + backoff(v_attempts, f)
        WHERE task_id = t.id AND kind = 'fetch' AND status = 'ready' AND v_rule = 'retry' AND v_next < l.source;
        RETURN 'nextSource';
    END IF;
    PERFORM return_leases(ARRAY[l.chunk_id], ARRAY[l.epoch], false, f.policy);
    IF v_rule = 'nextSource' THEN
        PERFORM move_chunks(t.id, p_source, v_next);
    END IF;
    -- A limit that may pass pauses its origin (`leave_alone`), not each file. A name that may be wrong is reported soon. A body that was cut is
    -- resumed at once.
    v_wait := CASE WHEN v_rule <> 'retry' OR v_next > l.source OR v_counts IS NULL AND v_brought AND f.kind IN ('network', 'tooSlow') THEN interval '0'
        WHEN v_most > f.max_attempts AND f.status >= 500 OR v_counts IS NOT NULL AND may_pass(l, f) THEN least(backoff(v_attempts, f), interval '5 s')
        ELSE backoff(v_attempts, f) / CASE WHEN v_most < f.max_attempts THEN 4 ELSE 1 END END;
    UPDATE ready_chunks c
    SET attempts = v_attempts, source = s.ordinal, origin_id = coalesce(s.fresh_origin_id, s.origin_id),
        status = CASE WHEN v_wait > interval '0' THEN 'waiting' ELSE 'ready' END,
        not_before = CASE WHEN v_wait > interval '0' THEN statement_timestamp() + v_wait END
    FROM sources s
    WHERE c.task_id = t.id AND c.kind = 'fetch' AND (c.id = l.chunk_id OR t.rung = 'whole') AND s.task_id = t.id AND s.ordinal = v_next;
    RETURN CASE WHEN v_next = l.source THEN 'retry' ELSE 'nextSource' END;
END
$$;

-- The task starts over with the next content version, and an event says why.
CREATE FUNCTION start_over_because(
    t tasks, p_source integer, p_deaths integer, p_first_chunk bigint, p_kind text, p_detail text, p_reported bigint DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_group_name text;
BEGIN
    SELECT name INTO v_group_name FROM groups WHERE id = t.group_id;
    PERFORM start_over(t.id, p_first_chunk, p_source, 0, p_deaths, p_reported);
    PERFORM write_event('tsk-' || t.id || '-' || t.version || '-changed', 'dev.muster.task.changed.v1', v_group_name,
        jsonb_build_object('group', v_group_name, 'key', t.key, 'path', t.path, 'contentVersion', t.version + 1,
            'reason', jsonb_build_object('kind', p_kind, 'detail', p_detail)));
END
$$;

-- The representation has changed. After `max_restarts` versions the task fails, without the bytes of any version. The fourth version is fetched by a
-- plain GET, and so is the last one if fewer are allowed: content that changes faster than its chunks come is then taken as it is. The fifth and
-- later ones wait (2 s, 4 s, 8 s): servers that are updated one by one change often.
CREATE FUNCTION accept_change(l leases, t tasks, p_source integer, f failure) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks SET restarts = restarts + 1 WHERE id = t.id;
    UPDATE sources SET rung = 'whole' WHERE task_id = t.id AND ordinal = p_source AND t.restarts + 2 >= least(4, (f.policy).max_restarts);
    PERFORM start_over_because(t, p_source, l.deaths, (f.policy).first_chunk, f.kind, f.detail, l.chunk_id);
    IF t.restarts + 1 < (f.policy).max_restarts THEN
        UPDATE ready_chunks SET status = 'waiting', not_before = statement_timestamp() + least(8, power(2, t.restarts - 2)) * interval '1 s'
        WHERE task_id = t.id AND kind = 'fetch' AND status = 'ready' AND t.restarts >= 3;
        RETURN 'startOver';
    END IF;
    PERFORM fail_task(t.id, f.kind, f.detail);
    RETURN 'failed';
END
$$;

-- The content is complete, but its digest is not the expected one (row 29): it is fetched once more from the same source, by a plain GET, past caches
-- and without mixing sources; after that every other source is tried once. The wrong bytes are dropped each time.
CREATE FUNCTION fetch_again(l leases, t tasks, p_source integer, f failure) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    UPDATE sources SET mismatches = mismatches + 1, dead = dead OR t.clean, rung = 'whole' WHERE task_id = t.id AND ordinal = p_source;
    UPDATE tasks SET clean = true WHERE id = t.id;
    SELECT s.ordinal INTO v_next FROM sources s
    WHERE s.task_id = t.id AND NOT s.dead ORDER BY s.ordinal <> p_source, s.ordinal < p_source, s.ordinal LIMIT 1;
    PERFORM start_over_because(t, coalesce(v_next, p_source), l.deaths, (f.policy).first_chunk, f.kind, f.detail, l.chunk_id);
    IF v_next IS NULL THEN
        PERFORM fail_task(t.id, f.kind, f.detail);
        RETURN 'failed';
    END IF;
    RETURN CASE WHEN v_next = p_source THEN 'startOver' ELSE 'nextSource' END;
END
$$;

-- Adds to the record of what was tried, and counts it. The newest 50 are kept (Limits.attemptsKept).
CREATE FUNCTION note_attempt(p_task bigint, p_source integer, p_byte bigint, p_outcome text, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempts (task_id, worker, source, kind, status, detail, request_id, address, byte, outcome)
    VALUES (p_task, (SELECT s.worker FROM sessions s WHERE s.id = f.session_id), p_source, f.kind, f.status, f.detail, f.request,
        f.address, p_byte, p_outcome);
    UPDATE sources SET failed = failed + 1 WHERE task_id = p_task AND ordinal = p_source;
    DELETE FROM attempts a WHERE a.task_id = p_task AND a.serial <= (
        SELECT o.serial FROM attempts o WHERE o.task_id = p_task ORDER BY o.serial DESC OFFSET 50 LIMIT 1);
END
$$;
