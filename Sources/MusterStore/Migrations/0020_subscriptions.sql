-- Who is told of events: readers whose place is kept, subscribers to whom events are posted, and how long events are kept.
--
-- Lock order here: event_log, subscriptions, deliveries, each by id. Nothing here locks groups, tasks or chunks.

-- Where the kept part of the log begins. Events below it may still stand for the sake of deliveries; readers don't see them.
ALTER TABLE event_log ADD COLUMN first_position bigint NOT NULL DEFAULT 1;
ALTER TABLE event_log ADD CONSTRAINT event_log_keeps_the_newest CHECK (first_position <= greatest(1, last_position));

CREATE TABLE consumers (
    name            text PRIMARY KEY,
    position        bigint NOT NULL,                         -- everything up to here is acknowledged; only moves forward
    acknowledged_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT consumers_position_not_negative CHECK (position >= 0)
) WITH (fillfactor = 50);

CREATE TABLE subscriptions (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL CONSTRAINT subscriptions_name_unique UNIQUE,
    url             text NOT NULL,
    secret          text NOT NULL,                           -- read by deliveries alone
    creation_key    text,                                    -- of the request that the secret was made for (I10), while that one signs
    previous_secret text,                                    -- signs besides until previous_until
    previous_until  timestamptz,
    groups          text,                                    -- a pattern with * and ?; NULL: all groups
    expression      text,                                    -- the same as a regular expression
    types           text[] NOT NULL DEFAULT '{}',            -- empty: all types
    enabled         boolean NOT NULL DEFAULT true,
    disabled_reason text,
    position        bigint NOT NULL,                         -- up to here events have been made deliveries of
    served_at       timestamptz NOT NULL DEFAULT '-infinity',
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT subscriptions_pattern_is_compiled CHECK ((groups IS NULL) = (expression IS NULL)),
    CONSTRAINT subscriptions_rotation_ends CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    CONSTRAINT subscriptions_reason_means_disabled CHECK (disabled_reason IS NULL OR NOT enabled)
) WITH (fillfactor = 50);

CREATE TABLE deliveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
    -- While there is a delivery, there is its event (I9).
    position        bigint NOT NULL REFERENCES events (position),
    state           text NOT NULL DEFAULT 'pending',
    attempts        integer NOT NULL DEFAULT 0,
    -- When it may be claimed; for a claimed one, when it may be claimed again, since whoever claimed it must be dead by then.
    next_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    claimed         boolean NOT NULL DEFAULT false,
    epoch           bigint NOT NULL DEFAULT 0,               -- counts claims and replays: an answer to an older one changes nothing
    tried_at        timestamptz,
    status          integer,                                 -- of the last answer
    failure         text,
    settled_at      timestamptz,                             -- when it was delivered or given up
    CONSTRAINT deliveries_once UNIQUE (subscription_id, position),
    CONSTRAINT deliveries_state_known CHECK (state IN ('pending', 'delivered', 'dead')),
    CONSTRAINT deliveries_settled_is_dated CHECK ((state = 'pending') = (settled_at IS NULL)),
    CONSTRAINT deliveries_settled_is_free CHECK (state = 'pending' OR NOT claimed)
) WITH (fillfactor = 80);

CREATE INDEX deliveries_due ON deliveries (subscription_id, next_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_under_way ON deliveries (subscription_id) WHERE claimed;
CREATE INDEX deliveries_by_state ON deliveries (state, id);
CREATE INDEX deliveries_by_subscription ON deliveries (subscription_id, state, id);
CREATE INDEX deliveries_by_position ON deliveries (position);

-- Moves a consumer's place, forward only; a name that is new begins no earlier than the log does. No row: beyond the log's end. A row
-- without a place: there are p_limit consumers already.
CREATE FUNCTION acknowledge_events(p_name text, p_position bigint, p_limit bigint)
RETURNS TABLE (stands bigint, last bigint, at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
BEGIN
    SELECT first_position, last_position INTO v_first, v_last FROM event_log;
    IF p_position > v_last THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM consumers c WHERE c.name = p_name) THEN
        -- Locked first, counted second: of several new names at once no more come in than there is room for.
        PERFORM pg_advisory_xact_lock(hashtext('muster.consumers'));
        IF (SELECT count(*) FROM consumers c WHERE c.name <> p_name) >= p_limit THEN
            RETURN QUERY SELECT NULL::bigint, v_last, NULL::timestamptz;
            RETURN;
        END IF;
    END IF;
    INSERT INTO consumers (name, position) VALUES (p_name, greatest(p_position, v_first - 1))
    ON CONFLICT (name) DO UPDATE
        SET position = excluded.position, acknowledged_at = statement_timestamp()
        WHERE consumers.position < excluded.position AND excluded.position = p_position;
    RETURN QUERY SELECT c.position, v_last, c.acknowledged_at FROM consumers c WHERE c.name = p_name;
END
$$;

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
    -- 2. What is due and fits; everybody gets a first one before anybody gets a second one.
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
        -- Whoever settled it meanwhile was late, but not too late.
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

-- Writes down what became of a try. Returns whether it still counted: under an older epoch it does not.
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
        -- A receiver that has moved meanwhile is not the one that is gone.
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
                -- Without the condition, the least of nothing and a day would be a day.
                CASE WHEN p_until IS NOT NULL THEN least(p_until, statement_timestamp() + p_most) END)
            ELSE statement_timestamp() END,
        tried_at = CASE WHEN p_result = 'released' THEN d.tried_at ELSE statement_timestamp() END,
        status = CASE WHEN p_result = 'released' THEN d.status ELSE p_status END,
        failure = CASE WHEN p_result = 'released' THEN d.failure ELSE p_failure END
    WHERE d.id = p_id AND d.epoch = p_epoch AND d.claimed;
    RETURN FOUND;
END
$$;

-- Lets a subscription post again, or not. What was dropped from the log while it was disabled is passed over.
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

-- Drops events older than p_age, in the order of the log, at most p_limit at once and never the newest one. Returns by how much
-- the log has become shorter.
CREATE FUNCTION drop_old_events(p_age interval, p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_first bigint;
    v_last bigint;
    v_end bigint;
    v_cut bigint;
BEGIN
    SELECT first_position, last_position INTO v_first, v_last FROM event_log FOR UPDATE;
    -- 1. How far: not what a subscription has yet to be told of, and not beyond the first event that is young enough.
    SELECT least(v_last - 1, v_first + p_limit - 1, min(s.position)) INTO v_end FROM subscriptions s WHERE s.enabled;
    SELECT coalesce(min(e.position), v_end + 1) INTO v_cut
    FROM events e
    WHERE e.position BETWEEN v_first AND v_end AND e.at >= statement_timestamp() - p_age;
    v_cut := greatest(v_cut, v_first);
    IF v_cut > v_first THEN
        UPDATE event_log SET first_position = v_cut;
    END IF;
    -- 2. A delivery that waits for its subscription to be enabled does not wait for longer than the log does.
    UPDATE deliveries d
    SET state = 'dead', settled_at = statement_timestamp(), claimed = false,
        failure = 'the subscription was disabled for longer than events are kept'
    FROM subscriptions s
    WHERE s.id = d.subscription_id AND NOT s.enabled AND d.state = 'pending' AND d.position < v_cut;
    -- 3. Deliveries go with their events; one that was given up can be replayed for as long as events are kept. What is still
    -- to be delivered stays, and its event with it.
    DELETE FROM deliveries d
    WHERE d.position < v_cut
        AND (d.state = 'delivered' OR d.state = 'dead' AND d.settled_at < statement_timestamp() - p_age);
    DELETE FROM events e
    WHERE e.position < v_cut AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.position = e.position);
    RETURN v_cut - v_first;
END
$$;
