-- The log of events, its readers and its receivers (adr/0011).
--
-- Lock order here: event_log, subscriptions, deliveries, each by id. Nothing here locks groups, tasks or chunks.

-- Events without a position yet. The transaction that makes an event true writes its row here; the transaction that holds
-- event_log moves it to the log after that has committed (adr/0029).
CREATE TABLE pending_events (
    serial  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- the order in which rows were written
    id      text NOT NULL,                                   -- made of what happened: the same fact has the same id
    type    text NOT NULL,                                   -- dev.muster.….v1
    subject text NOT NULL,                                   -- groups/<name>
    data    jsonb NOT NULL,                                  -- one of the payloads in MusterCore/Events, by the type
    at      timestamptz NOT NULL DEFAULT statement_timestamp()   -- when it became true
);

-- The durable log. Positions are contiguous, and follow the commits of each group (I9): they are given out by the transaction that holds event_log.
CREATE TABLE events (
    position bigint PRIMARY KEY,                             -- its place in the log
    id       text NOT NULL CONSTRAINT events_id_unique UNIQUE,   -- this and the others as in pending_events
    type     text NOT NULL,                                  -- what happened
    subject  text NOT NULL,                                  -- to which group
    data     jsonb NOT NULL,                                 -- the payload
    at       timestamptz NOT NULL                            -- when it became true
);
CREATE INDEX events_by_subject ON events (subject, position);

-- Where the log begins and ends. Events below first_position may still exist because deliveries refer to them; readers don't see them.
CREATE TABLE event_log (
    is_only        boolean PRIMARY KEY DEFAULT true CONSTRAINT event_log_single CHECK (is_only),   -- keeps the table at one row
    first_position bigint NOT NULL DEFAULT 1,                -- of the oldest event that is kept
    last_position  bigint NOT NULL DEFAULT 0,                -- of the newest event
    CONSTRAINT event_log_keeps_the_newest CHECK (first_position <= greatest(1, last_position))
);
INSERT INTO event_log DEFAULT VALUES;

-- Named readers whose place is kept.
CREATE TABLE consumers (
    name            text PRIMARY KEY,                        -- the reader's name
    position        bigint NOT NULL,                         -- everything up to here is acknowledged; only moves forward
    acknowledged_at timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it last moved
    CONSTRAINT consumers_position_not_negative CHECK (position >= 0)
) WITH (fillfactor = 50);

-- The process that deals with the events of a consumer now: one at a time.
CREATE TABLE consumer_holds (
    name   text PRIMARY KEY,                                 -- the consumer's name; it need not have a place yet
    holder text NOT NULL,                                    -- what the process calls itself
    until  timestamptz NOT NULL                              -- when another process may have it, by the database's clock (I11)
) WITH (fillfactor = 50);

-- Receivers to which events are posted.
CREATE TABLE subscriptions (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- deliveries name it
    name            text NOT NULL CONSTRAINT subscriptions_name_unique UNIQUE,   -- what callers know it by
    url             text NOT NULL,                           -- where events are posted
    secret          text NOT NULL,                           -- signs them; deliveries alone read it
    previous_secret text,                                    -- signs as well, until previous_until
    previous_until  timestamptz,                             -- the end of a rotation
    groups          text,                                    -- a pattern with * and ?; NULL: all groups
    expression      text,                                    -- the same as a regular expression
    types           text[] NOT NULL DEFAULT '{}',            -- the event types that are posted; empty: all
    enabled         boolean NOT NULL DEFAULT true,           -- whether anything is posted
    disabled_reason text,                                    -- why not, if Muster has disabled it
    position        bigint NOT NULL,                         -- events up to here have deliveries
    served_at       timestamptz NOT NULL DEFAULT '-infinity',   -- when a delivery of it was last claimed: the oldest is next
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was made
    CONSTRAINT subscriptions_pattern_is_compiled CHECK ((groups IS NULL) = (expression IS NULL)),
    CONSTRAINT subscriptions_rotation_ends CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    CONSTRAINT subscriptions_reason_means_disabled CHECK (disabled_reason IS NULL OR NOT enabled)
) WITH (fillfactor = 50);

CREATE TABLE deliveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- what a replay names
    subscription_id bigint NOT NULL REFERENCES subscriptions ON DELETE CASCADE,   -- to which receiver
    position        bigint NOT NULL REFERENCES events (position),   -- which event; it stays while a delivery names it (I9)
    state           text NOT NULL DEFAULT 'pending',         -- pending, delivered or dead
    attempts        integer NOT NULL DEFAULT 0,              -- how often it was posted since it was made or replayed
    -- When it may be claimed; for a claimed delivery, when it may be claimed again, since the coordinator that claimed it must be dead by then.
    next_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    claimed         boolean NOT NULL DEFAULT false,          -- a coordinator is posting it
    epoch           bigint NOT NULL DEFAULT 0,               -- counts claims and replays: an answer to an older one changes nothing
    tried_at        timestamptz,                             -- when it was last posted
    status          integer,                                 -- of the last answer
    failure         text,                                    -- why the last try did not succeed
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
