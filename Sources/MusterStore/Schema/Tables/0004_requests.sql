-- Requests of callers that change something, by their Idempotency-Key: an answered request is not done again, neither for a repetition nor for a copy
-- that arrives late (I10, fault F7; docs/adr/0040-a-request-is-done-once.md).
CREATE TABLE requests (
    key     text PRIMARY KEY,                                -- the Idempotency-Key
    about   text NOT NULL,                                   -- a digest of what was asked for: a key is for one request
    effect  jsonb,                                           -- what a transaction of it did, and a repetition must not do again
    status  integer,                                         -- of the answer; NULL as long as it is not known
    answer  text,                                            -- its body; may hold a secret that was made for the caller
    at      timestamptz NOT NULL DEFAULT statement_timestamp(),  -- when it came first
    CONSTRAINT requests_answered_whole CHECK ((status IS NULL) = (answer IS NULL))
);
CREATE INDEX requests_by_age ON requests (at);
