-- The requests of callers that change something, by the names that the callers gave them (Idempotency-Key): what has been answered is not done again, neither for
-- a repetition nor for a request that was on its way for long (I10, fault F7; docs/adr/0040-a-request-is-done-once.md).
CREATE TABLE requests (
    key     text PRIMARY KEY,                                -- the name
    about   text NOT NULL,                                   -- a digest of what was asked for: a name is for one request
    effect  jsonb,                                           -- what a transaction did that is not done again for it
    status  integer,                                         -- of the answer; NULL as long as it is not known
    answer  text,                                            -- its body; may hold a secret that was made for the caller
    at      timestamptz NOT NULL DEFAULT statement_timestamp(),  -- when it came first
    CONSTRAINT requests_answered_whole CHECK ((status IS NULL) = (answer IS NULL))
);
CREATE INDEX requests_by_age ON requests (at);
