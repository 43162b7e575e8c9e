-- Refusals of an origin because of too much at once (row 24), and refusals that only look like that.

-- Whether another lane leads to the origin of a lease: leases that wait in the same lane were not requested yet.
CREATE FUNCTION shares_origin(l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND (h.session_id, h.lane) <> (l.session_id, l.lane));
END
$$;

-- Whether another session is being served a file of the same directory. It may have all connections that the directory allows; a session that was
-- served nothing of it lately can't see such a limit.
CREATE FUNCTION is_served_elsewhere(l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM leases h
        JOIN sources s ON s.task_id = h.task_id AND s.ordinal = h.source
        JOIN sources own ON own.task_id = l.task_id AND own.ordinal = l.source
        WHERE h.origin_id = l.origin_id AND h.session_id <> l.session_id AND h.durable > h.resume
            AND substring(s.url FROM '^[^?#]*/') = substring(own.url FROM '^[^?#]*/'));
END
$$;

-- Whether an origin that serves a session nothing may do so because of a limit: it has served something lately, since the session began; another
-- session has leases there as well; or the status was a limit before.
CREATE FUNCTION may_serve_others(l leases, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN has_served(l.origin_id, least(f.limit_seconds * interval '1 s', (
            SELECT statement_timestamp() - s.opened_at FROM sessions s WHERE s.id = l.session_id)))
        OR EXISTS (SELECT 1 FROM leases h WHERE h.origin_id = l.origin_id AND h.session_id <> l.session_id)
        OR EXISTS (SELECT 1 FROM origins o WHERE o.id = l.origin_id AND f.status = ANY (o.limits_with));
END
$$;

-- Whether other chunks of the same file come from the same source at this moment: then the file is there, whatever the origin answers to one more
-- request.
CREATE FUNCTION is_file_served_beside(l leases) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM leases h
        WHERE h.task_id = l.task_id AND h.source = l.source AND h.chunk_id <> l.chunk_id AND h.kind = 'fetch' AND h.durable > h.resume);
END
$$;

-- The limit signal of a failure, corrected by what its holder could not know: a file whose other chunks are coming is there, and an origin that
-- serves no session has no limit.
CREATE FUNCTION limit_signal_of(l leases, t tasks, f failure) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF f.limit_signal = 'none' AND f.rule = 'nextSource' AND t.planned AND f.status BETWEEN 400 AND 499 AND is_file_served_beside(l) THEN
        RETURN 'possible';
    ELSIF f.limit_signal = 'unserved' THEN
        RETURN CASE WHEN may_serve_others(l, f) THEN 'possible' ELSE 'none' END;
    END IF;
    RETURN f.limit_signal;
END
$$;

-- Restores the allowance of an origin that was reduced for refusals with a status that is not known as a limit there.
CREATE FUNCTION give_back(p_origin bigint, p_status integer) RETURNS void
LANGUAGE sql AS $$
    UPDATE origins SET learned = NULL, learned_at = NULL
    WHERE id = p_origin AND limited_with = p_status AND p_status <> ALL (limits_with) AND learned IS NOT NULL
$$;

-- An origin refused because of too much at once, or may have (row 24). Its allowance is halved, though not below the lanes that bring bytes beside
-- the refused one, and at most once for a burst: only by a lease that was granted after the last halving. Returns NULL if it is no such refusal;
-- otherwise whether it counts as a try of the chunk: it does not if this refusal, or another one of the same burst, has reduced the allowance (I12).
-- A response that differs from a version which may be a page is no refusal, even with a status that is a limit there: it is the file. A refusal
-- reduces nothing if refusals are far rarer than one lane too many would make them and the status is not a known limit there, or if the file was
-- refused before while others are served. Connections that are refused while nothing is served are an outage; for the first two seconds, while that
-- is not certain, they reduce nothing and are no tries. The caller has locked the origin.
CREATE FUNCTION heed_limit(l leases, t tasks, f failure) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    o origins;
    v_is_shared boolean;
    v_is_echo boolean;
    v_is_known boolean;
BEGIN
    f.limit_signal := limit_signal_of(l, t, f);
    SELECT * INTO o FROM origins WHERE id = l.origin_id;
    IF NOT FOUND OR f.retry_after IS NOT NULL AND is_meant_alone(o, l.group_id)
        OR f.limit_signal = 'none' AND (coalesce(f.status <> ALL (o.limits_with), true) OR f.kind = 'changed' AND may_be_page(t))
    THEN RETURN NULL; END IF;
    IF f.limit_signal = 'refuted' THEN
        IF coalesce(f.status <> ALL (o.limits_with), true) OR NOT is_served_elsewhere(l) THEN
            PERFORM give_back(o.id, f.status);
            RETURN NULL;
        END IF;
        f.limit_signal := 'possible';
    END IF;
    IF f.limit_signal = 'certain' AND f.status NOT IN (429, 503) AND f.status <> ALL (o.limits_with) THEN
        UPDATE origins SET limits_with = limits_with || f.status WHERE id = o.id RETURNING * INTO o;
    END IF;
    v_is_echo := coalesce(l.epoch <= o.limited_epoch, false);
    v_is_shared := v_is_echo OR shares_origin(l) OR coalesce(l.epoch <= o.refused_epoch, false);
    -- A connection that fails after a redirect says something of another origin.
    IF (f.unreached_attempts IS NOT NULL OR f.is_unanswered) AND f.status IS NULL AND f.kind = 'network' AND l.durable = l.resume AND NOT v_is_echo THEN
        o := doubt(o, v_is_shared);
        IF o.out_since IS NOT NULL OR is_out(o, l) THEN
            UPDATE origins SET out_since = coalesce(out_since, rate_at) WHERE id = o.id;
            RETURN NULL;
        END IF;
        IF o.doubted_at > statement_timestamp() - interval '2 s' THEN RETURN false; END IF;
    END IF;
    v_is_known := coalesce(f.status = ANY (o.limits_with), false);
    IF v_is_known AND f.retry_after IS NULL AND NOT may_pass(l, f)
        AND (NOT v_is_shared OR served_at(o.id) < statement_timestamp() - f.limit_seconds * interval '1 s')
    THEN
        PERFORM believe_limit_is_over(o.id, f);
        RETURN NULL;
    END IF;
    -- The leases that shared the origin may be gone by now: then a file that worked before is tried once more before the refusal is believed, and
    -- some more times if the origin is known to have limits, since it may count connections that have ended already.
    IF f.limit_signal = 'possible' THEN
        IF NOT may_be_limit(o, l, t, f, v_is_shared) THEN RETURN NULL; END IF;
        IF NOT (v_is_shared OR v_is_known) THEN
            RETURN CASE WHEN f.kind <> 'network' AND (l.attempts < (
                    CASE WHEN NOT t.planned THEN CASE WHEN has_worked(t, l.source) THEN 3 ELSE 5 END WHEN o.learned IS NULL THEN 1 ELSE 4 END)
                OR t.planned AND may_pass(l, f)) THEN true END;
        END IF;
    END IF;
    UPDATE origins
    SET refusals = decayed(refusals, refused_at, 1), refused_at = statement_timestamp(),
        refused_epoch = (SELECT last_value FROM lease_epochs),
        doubted_at = CASE WHEN NOT is_anything_served(o, l) THEN CASE WHEN doubted_at > rate_at THEN doubted_at ELSE statement_timestamp() END END
    WHERE id = o.id;
    IF v_is_echo THEN RETURN false; END IF;
    IF NOT v_is_shared THEN
        IF lanes_for_others(o, l, f) = 0 THEN PERFORM leave_alone(o.id, f); END IF;
        RETURN true;
    END IF;
    IF recent_answers(o) >= 1 AND coalesce(f.status <> ALL (o.limits_with), true)
        AND (is_rarely_refused(o) OR f.limit_signal = 'certain' AND (
            SELECT a.serial FROM attempts a WHERE a.task_id = t.id AND a.status = t.failure_status LIMIT 1) IS NOT NULL)
    THEN
        RETURN CASE WHEN f.kind <> 'network' THEN true END;
    END IF;
    RETURN NOT reduce_allowance(o, l, f);
END
$$;

-- Whether a body was cut after much of it had come. No limit does that; an origin or a line that does it also cuts bodies early by chance.
CREATE FUNCTION is_late_cut(l leases, f failure) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT f.kind = 'network' AND coalesce(f.status BETWEEN 200 AND 299, false) AND l.durable >= l.resume + hardly_anything()
$$;

-- Records what a failure says of its origin, independent of what follows for the chunk. The caller has locked the origin.
CREATE FUNCTION heed_origin(l leases, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM heed_retry_after(l, f);
    IF f.kind = 'timeout' AND l.durable = l.resume THEN
        UPDATE origins SET silent_at = statement_timestamp() WHERE id = l.origin_id;
    END IF;
    IF is_late_cut(l, f) THEN
        UPDATE origins SET cut_at = statement_timestamp()
        WHERE id = l.origin_id AND coalesce(cut_at < statement_timestamp() - interval '5 s', true);
    END IF;
END
$$;

-- Whether a limit may be one over some seconds, which passes: its origin has served within the time that such a limit lasts. The wait is bounded by
-- 32 failures, since it may be the file's own refusal, which no worker could tell apart. There is no wait if the user wants few tries.
CREATE FUNCTION may_pass(l leases, f failure) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN f.status IS NOT NULL AND f.retry_after IS NULL AND NOT wants_few_tries(f) AND has_served_within_limit(l.origin_id, f)
        AND (SELECT s.failures FROM sources s WHERE s.task_id = l.task_id AND s.ordinal = l.source) <= 32;
END
$$;

-- Whether an origin has served something so lately that a limit signalled by this failure may still last.
CREATE FUNCTION has_served_within_limit(p_origin bigint, f failure) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT has_served(p_origin, f.limit_seconds * interval '1 s')
$$;

-- Pauses an origin that refuses because of too much though nothing else is requested there: it has a limit over some seconds, and may count refused
-- requests too. The pause is a third of the time since the first refusal after which it has served nothing, between 0.2 s and ten seconds, and ends no
-- later than the time from which the refusal can be no limit any more. The caller has locked the origin.
CREATE FUNCTION leave_alone(p_origin bigint, f failure) RETURNS void
LANGUAGE sql AS $$
    UPDATE origins o SET not_before = u.until, try_at = u.until
    FROM (
        SELECT statement_timestamp() + least(
            greatest((statement_timestamp() - greatest(w.at, d.doubted_at)) / 3, interval '0.2 s'), interval '10 s',
            greatest(w.at + f.limit_seconds * interval '1 s' - statement_timestamp(), interval '0.2 s')) AS until
        FROM served_at(p_origin) AS w (at) JOIN origins d ON d.id = p_origin
        WHERE w.at > statement_timestamp() - f.limit_seconds * interval '1 s'
    ) AS u
    WHERE o.id = p_origin AND NOT is_resting(o) AND f.retry_after IS NULL
$$;

-- An origin has refused a file with a status that was a limit there, and has served nothing for longer than a limit lasts: the status is no limit any
-- more, for example since tokens have expired. Chunks that wait because of it are tried again.
CREATE FUNCTION believe_limit_is_over(p_origin bigint, f failure) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF has_served_within_limit(p_origin, f) THEN RETURN; END IF;
    UPDATE origins
    SET limits_with = array_remove(limits_with, f.status), refuses_with = array_remove(refuses_with, f.status) || array_fill(f.status, ARRAY[3]),
        learned = CASE WHEN limited_with IS DISTINCT FROM f.status THEN learned END,
        learned_at = CASE WHEN limited_with IS DISTINCT FROM f.status THEN learned_at END
    WHERE id = p_origin;
    PERFORM try_again(ARRAY[p_origin], f.status);
END
$$;

-- Whether an origin is known to refuse for good with this status: it has done so three times, and never for a file that it served later.
CREATE FUNCTION is_believed(o origins, p_status integer) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN cardinality(array_positions(o.refuses_with, p_status)) >= 3 AND p_status <> ALL (o.limits_with);
END
$$;

-- Whether a refusal that may have another reason may be a limit. A connection that ends before it has brought much may be one. If it ends in a body,
-- it is not taken for a limit for ever: the file itself may end there, and if the origin serves no other lane, it is no limit from the third time on.
-- The refusal of a file that worked before may be a limit. So may that of a file of which nothing has come, if the status is a known limit of the
-- origin, or if that is unknown and no other source may have the file. It is then tried again beside others, with fewer of those each time as far as
-- the allowance goes, and once more when all others have just gone. Three files that are refused for good are believed, and so are later ones with
-- the same status. The caller has locked the origin.
CREATE FUNCTION may_be_limit(o origins, l leases, t tasks, f failure, p_is_shared boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    -- v_is_new bounds the failures of a source, whichever of them count as tries: the allowance can be halved that often, after two seconds in which
    -- it is not. The bound is higher if other files are served: the origin may still count requests that have just ended.
    v_serves boolean := recent_answers(o) > 0.2;
    v_is_new boolean := (
        SELECT s.failures < CASE WHEN v_serves THEN 16 WHEN f.kind = 'network' AND served_beside(l) = 0 THEN 3 ELSE 9 END
        FROM sources s WHERE s.task_id = t.id AND s.ordinal = l.source);
BEGIN
    IF f.kind = 'network' THEN
        RETURN l.durable < l.resume + hardly_anything()
            AND (f.status IS NULL OR v_is_new AND coalesce(o.cut_at < statement_timestamp() - interval '1 min', true));
    END IF;
    IF f.status = ANY (o.limits_with) THEN RETURN true; END IF;
    IF t.planned THEN RETURN has_worked(t, l.source); END IF;
    IF is_believed(o, f.status) OR has_another_source(t.id, l.source) AND NOT is_asked_again(t.id, l.source) THEN RETURN false; END IF;
    IF has_worked(t, l.source) THEN RETURN true; END IF;
    IF v_is_new AND l.attempts <= (CASE WHEN v_serves THEN 2 WHEN p_is_shared THEN 1 ELSE -1 END) THEN RETURN true; END IF;
    -- A file that was refused alone from the beginning says nothing about other files, unless these have been kept waiting because of such refusals.
    IF l.attempts > 0 OR o.learned IS NOT NULL THEN PERFORM believe_refusals(o.id, f.status); END IF;
    RETURN false;
END
$$;

-- Notes that a file was refused with this status for good. After three such files, of which none was served later, the status is no limit there, and
-- the allowance that was reduced for such refusals is restored.
CREATE FUNCTION believe_refusals(p_origin bigint, p_status integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE origins SET refuses_with = refuses_with || p_status
    WHERE id = p_origin AND cardinality(array_positions(refuses_with, p_status)) < 3 AND p_status <> ALL (limits_with);
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE origins SET learned = NULL, learned_at = NULL
    WHERE id = p_origin AND cardinality(array_positions(refuses_with, p_status)) = 3;
END
$$;

-- How many other lanes to the origin of a lease bring bytes: the origin serves at least that many. Bytes that are reported together with the refusal
-- may have come before another refusal, so they count from 64 KiB on.
CREATE FUNCTION served_beside(l leases) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(DISTINCT (h.session_id, h.lane))::integer FROM leases h
        WHERE h.origin_id = l.origin_id AND (h.session_id, h.lane) <> (l.session_id, l.lane)
            AND h.durable > h.resume AND (h.progress_at < statement_timestamp() OR h.durable >= h.resume + hardly_anything()));
END
$$;

-- Whether an origin, with this refusal counted, refuses far more rarely than if one of its lanes were too many. That lane would be refused each time:
-- one request of as many as there are lanes. Half of that counts as far more rarely.
CREATE FUNCTION is_rarely_refused(o origins) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT recent_answers(o) > 2 * (decayed(o.refusals, o.refused_at, 0) + 1) * (SELECT count(*) FROM lanes_to(o.id)));
END
$$;
