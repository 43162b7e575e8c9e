-- Makes deliveries of the events that subscriptions have not seen yet. Returns how many subscriptions were behind.
CREATE FUNCTION fan_out_events(p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_count bigint;
BEGIN
    -- Positions up to this one are committed; the next statement's snapshot sees all of them.
    SELECT last_position INTO v_last FROM event_log;
    WITH behind AS MATERIALIZED (
        SELECT s.id, s.position, least(v_last, s.position + p_limit) AS until, s.expression, s.types
        FROM subscriptions s
        WHERE s.enabled AND s.position < v_last
        ORDER BY s.id LIMIT 100 FOR UPDATE SKIP LOCKED
    ), made AS (
        INSERT INTO deliveries (subscription_id, position)
        SELECT b.id, e.position
        FROM behind b JOIN events e ON e.position > b.position AND e.position <= b.until
        WHERE (b.expression IS NULL OR substr(e.subject, length('groups/') + 1) ~ b.expression)
            AND (b.types = '{}' OR e.type = ANY (b.types))
        ORDER BY e.position, b.id
        ON CONFLICT (subscription_id, position) DO NOTHING
    ), moved AS (
        UPDATE subscriptions s SET position = b.until FROM behind b WHERE s.id = b.id RETURNING 1
    )
    SELECT count(*) INTO v_count FROM moved;
    RETURN v_count;
END
$$;

-- Claims deliveries that are due, at most p_each of one subscription at once in the whole fleet, the least served first.
CREATE FUNCTION claim_deliveries(p_limit integer, p_each integer, p_hold interval)
RETURNS TABLE (
    id bigint, epoch bigint, attempts integer, subscription text, url text, secret text, previous_secret text, moment timestamptz,
    event_position bigint, event_id text, event_type text, event_subject text, event_at timestamptz, event_data text
) LANGUAGE plpgsql AS $$
DECLARE
    v_subscriptions bigint[];
BEGIN
    -- 1. Locked first, counted second: a statement that did both would count by a snapshot from before the lock.
    SELECT array_agg(l.id) INTO v_subscriptions
    FROM (
        SELECT s.id FROM subscriptions s
        WHERE s.enabled AND EXISTS (
            SELECT 1 FROM deliveries d
            WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.next_at <= statement_timestamp())
        ORDER BY s.served_at, s.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) AS l;
    IF v_subscriptions IS NULL THEN
        RETURN;
    END IF;
    -- 2. Picks due deliveries that fit; every subscription gets a first one before any gets a second one.
    RETURN QUERY
    WITH room AS (
        SELECT s.id, greatest(0, p_each - (
            SELECT count(*) FROM deliveries d
            WHERE d.subscription_id = s.id AND d.claimed AND d.next_at > statement_timestamp()))::integer AS free
        FROM unnest(v_subscriptions) AS s (id)
    ), due AS MATERIALIZED (
        SELECT d.id, d.n
        FROM room r CROSS JOIN LATERAL (
            SELECT w.id, row_number() OVER (ORDER BY w.next_at, w.id) AS n
            FROM deliveries w
            WHERE w.subscription_id = r.id AND w.state = 'pending' AND w.next_at <= statement_timestamp()
            ORDER BY w.next_at, w.id LIMIT r.free
        ) AS d
        ORDER BY d.n, d.id LIMIT p_limit
    ), taken AS (
        UPDATE deliveries d
        SET claimed = true, epoch = d.epoch + 1, next_at = statement_timestamp() + p_hold
        FROM due
        -- The coordinator that had claimed it may have settled it meanwhile, late.
        WHERE d.id = due.id AND d.state = 'pending' AND d.next_at <= statement_timestamp()
        RETURNING d.id, d.epoch, d.attempts, d.subscription_id, d.position
    ), served AS (
        UPDATE subscriptions s SET served_at = statement_timestamp()
        WHERE s.id IN (SELECT t.subscription_id FROM taken t)
    )
    SELECT t.id, t.epoch, t.attempts, s.name, s.url, s.secret,
        CASE WHEN s.previous_until > statement_timestamp() THEN s.previous_secret END, statement_timestamp(),
        e.position, e.id, e.type, e.subject, e.at, e.data::text
    FROM taken t JOIN subscriptions s ON s.id = t.subscription_id JOIN events e ON e.position = t.position
    ORDER BY t.id;
END
$$;

-- Records the result of a try. Returns whether it still counted: under an older epoch it does not.
--
-- p_result is delivered; failed, with the wait before the next try, or NULL when that was the last one; gone, when the receiver
-- wants nothing any more; released, when nothing was sent. p_until is when the receiver wants to be asked again.
CREATE FUNCTION settle_delivery(
    p_id bigint, p_epoch bigint, p_result text, p_status integer, p_failure text, p_wait interval, p_until timestamptz,
    p_most interval, p_url text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_subscription bigint;
BEGIN
    IF p_result = 'gone' THEN
        SELECT d.subscription_id INTO v_subscription FROM deliveries d
        WHERE d.id = p_id AND d.epoch = p_epoch AND d.claimed;
        -- If the subscription has another URL by now, the receiver that is gone was the old one.
        UPDATE subscriptions s SET enabled = false, disabled_reason = p_failure
        WHERE s.id = v_subscription AND s.enabled AND s.url = p_url;
    END IF;
    UPDATE deliveries d SET
        claimed = false,
        state = CASE
            WHEN p_result = 'delivered' THEN 'delivered'
            WHEN p_result = 'failed' AND p_wait IS NULL THEN 'dead'
            ELSE 'pending' END,
        settled_at = CASE
            WHEN p_result = 'delivered' OR p_result = 'failed' AND p_wait IS NULL THEN statement_timestamp() END,
        attempts = d.attempts + CASE WHEN p_result IN ('delivered', 'failed') THEN 1 ELSE 0 END,
        next_at = CASE
            WHEN p_result = 'failed' AND p_wait IS NOT NULL THEN greatest(
                statement_timestamp() + p_wait,
                -- The condition is needed: least() of NULL and a day is a day.
                CASE WHEN p_until IS NOT NULL THEN least(p_until, statement_timestamp() + p_most) END)
            ELSE statement_timestamp() END,
        tried_at = CASE WHEN p_result = 'released' THEN d.tried_at ELSE statement_timestamp() END,
        status = CASE WHEN p_result = 'released' THEN d.status ELSE p_status END,
        failure = CASE WHEN p_result = 'released' THEN d.failure ELSE p_failure END
    WHERE d.id = p_id AND d.epoch = p_epoch AND d.claimed;
    RETURN FOUND;
END
$$;

-- Enables or disables a subscription. Events that were dropped from the log while it was disabled are skipped.
CREATE FUNCTION enable_subscription(p_name text, p_enabled boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
BEGIN
    -- Nothing is dropped from the log until this is committed.
    SELECT first_position INTO v_first FROM event_log FOR UPDATE;
    UPDATE subscriptions s
    SET enabled = p_enabled, disabled_reason = NULL, position = greatest(s.position, v_first - 1)
    WHERE s.name = p_name;
END
$$;
