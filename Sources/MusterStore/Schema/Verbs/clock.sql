-- The database's clock may step back: an administrator sets it, or a standby whose clock is behind takes over (F11). What waits for a moment would
-- wait for as much longer.

-- A moment as it would be if the clock had always been behind by p_step. Moments that have come stay, and those of the next two seconds: a session may
-- be heard of after this statement began.
CREATE FUNCTION set_back_by(p_moment timestamptz, p_step interval) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_moment > statement_timestamp() + interval '2 s' AND p_moment < 'infinity' THEN p_moment - p_step ELSE p_moment END
$$;

-- How far the clock has stepped back, if by more than two seconds: a session has been heard of in what is the future now. NULL otherwise.
CREATE FUNCTION clock_step() RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT max(s.seen_at) - statement_timestamp() FROM sessions s WHERE s.seen_at > statement_timestamp() + interval '2 s'
$$;

-- Moves what was stored before the clock stepped back, so that sessions end, chunks and deliveries are due, and origins are asked as if it had not.
-- Deadlines, and pauses by an operator, are moments that a user has named: they stay. A wait that began after the step may end sooner. Returns the
-- step; NULL if there was none, or another coordinator is at it.
CREATE FUNCTION follow_clock() RETURNS interval
LANGUAGE plpgsql AS $$
DECLARE
    v_step interval := clock_step();
BEGIN
    IF v_step IS NULL OR NOT pg_try_advisory_xact_lock(hashtextextended('clock', 0)) THEN RETURN NULL; END IF;
    PERFORM s.id FROM sessions s ORDER BY s.id FOR NO KEY UPDATE;
    PERFORM o.id FROM origins o ORDER BY o.id FOR NO KEY UPDATE;
    PERFORM g.id FROM groups g ORDER BY g.id FOR NO KEY UPDATE;
    -- Another coordinator may have been first.
    v_step := clock_step();
    IF v_step IS NULL THEN RETURN NULL; END IF;
    UPDATE sessions s SET expires_at = s.expires_at - v_step, seen_at = s.seen_at - v_step, opened_at = set_back_by(s.opened_at, v_step)
    WHERE s.seen_at > statement_timestamp() + interval '2 s';
    UPDATE sessions s SET rate_at = set_back_by(s.rate_at, v_step) WHERE s.rate_at > statement_timestamp();
    UPDATE origins o
    SET not_before = CASE WHEN o.try_at IS NULL THEN o.not_before ELSE set_back_by(o.not_before, v_step) END, try_at = set_back_by(o.try_at, v_step),
        alone_until = set_back_by(o.alone_until, v_step), refused_since = set_back_by(o.refused_since, v_step),
        cut_at = set_back_by(o.cut_at, v_step), learned_at = set_back_by(o.learned_at, v_step), limited_at = set_back_by(o.limited_at, v_step),
        doubted_at = set_back_by(o.doubted_at, v_step), out_since = set_back_by(o.out_since, v_step),
        compared_at = set_back_by(o.compared_at, v_step), rate_at = set_back_by(o.rate_at, v_step), refused_at = set_back_by(o.refused_at, v_step);
    UPDATE origin_flow f SET at = set_back_by(f.at, v_step), granted_at = set_back_by(f.granted_at, v_step) WHERE f.at > statement_timestamp();
    UPDATE groups g SET rate_at = set_back_by(g.rate_at, v_step) WHERE g.rate_at > statement_timestamp();
    UPDATE budget_shares b SET used_at = set_back_by(b.used_at, v_step) WHERE b.used_at > statement_timestamp();
    UPDATE leases l
    SET granted_at = set_back_by(l.granted_at, v_step), progress_at = set_back_by(l.progress_at, v_step),
        shrink_asked_at = set_back_by(l.shrink_asked_at, v_step)
    WHERE l.progress_at > statement_timestamp() OR l.granted_at > statement_timestamp();
    UPDATE ready_chunks c SET not_before = set_back_by(c.not_before, v_step) WHERE c.not_before > statement_timestamp();
    UPDATE deliveries d SET next_at = set_back_by(d.next_at, v_step) WHERE d.next_at > statement_timestamp();
    UPDATE subscriptions u SET served_at = set_back_by(u.served_at, v_step) WHERE u.served_at > statement_timestamp();
    UPDATE consumer_holds h SET until = set_back_by(h.until, v_step) WHERE h.until > statement_timestamp();
    RETURN v_step;
END
$$;
