-- Several sources for one content, what is learned of origins, resolvers, options, and the record of what was tried.
-- Columns, constraints and indexes alone; what is done with them stands in the migrations after this one.

ALTER TABLE groups
    ADD COLUMN fetch_options jsonb,                          -- how sources are asked; may hold secrets: read by leases alone
    ADD COLUMN policy        jsonb,                          -- what is done where there is a choice
    ADD COLUMN resolver      jsonb;                          -- who knows fresh URLs; its headers may hold secrets

ALTER TABLE origins
    -- How many leases the origin bore when it last refused because of too many: half of what was allowed. One more is allowed
    -- with every minute since; see allowed_connections. NULL: it never refused.
    ADD COLUMN learned    integer CONSTRAINT origins_learned_positive CHECK (learned > 0),
    ADD COLUMN learned_at timestamptz,
    -- When it last refused. Only a lease that was granted later can halve again: one burst of refusals halves once.
    ADD COLUMN limited_at timestamptz,
    -- The newest fencing token at that moment: tells which leases were granted later, whatever becomes of the clock (I11).
    ADD COLUMN limited_epoch bigint,
    -- A counter of bytes that decays with a time constant of 10 s, as of rate_at.
    ADD COLUMN rate_bytes double precision NOT NULL DEFAULT 0,
    ADD COLUMN rate_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    ADD CONSTRAINT origins_learned_is_dated CHECK ((learned IS NULL) = (learned_at IS NULL));

ALTER TABLE tasks
    ADD COLUMN fetch_options   jsonb,                        -- over the group's; may hold secrets: read by leases alone
    ADD COLUMN content_type    text,                         -- what the content must be (http.md row 27)
    ADD COLUMN time_limit      interval,                     -- how long it may take from when it is added or retried (row 33)
    ADD COLUMN deadline_at     timestamptz,                  -- when that is over, by the database's clock (I11)
    ADD COLUMN mirrors         integer NOT NULL DEFAULT 1,   -- how many sources it has
    -- Of the content version: which source taught it, what that one stated besides the validators, and whether other sources
    -- may serve chunks of it (row 30).
    ADD COLUMN source          integer,
    ADD COLUMN mixes           boolean NOT NULL DEFAULT false,
    ADD COLUMN stated_digests  jsonb,                        -- row 35
    ADD COLUMN date_strong     boolean NOT NULL DEFAULT false,   -- Last-Modified may stand in If-Range (row 9)
    ADD COLUMN clean           boolean NOT NULL DEFAULT false,   -- a digest was wrong: sources are not mixed any more (row 29)
    ADD COLUMN named           boolean NOT NULL DEFAULT false,   -- its path ends in a name that an origin suggested (row 34)
    ADD COLUMN failure_status  integer,
    ADD COLUMN failure_source  integer,
    ADD COLUMN failure_request text;                         -- the origin's own name for the request

-- Where a claim may pull chunks from one source to another.
CREATE INDEX tasks_mixing ON tasks (group_id, id) WHERE mixes AND state IN ('queued', 'active');
CREATE INDEX tasks_by_deadline ON tasks (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('queued', 'active', 'paused', 'finalizing');
-- Two files of a group never get one name from their origins.
CREATE INDEX tasks_named ON tasks (group_id, path) WHERE named;

UPDATE tasks t SET mirrors = n.count
FROM (SELECT task_id, count(*)::integer AS count FROM sources GROUP BY 1 HAVING count(*) > 1) AS n
WHERE t.id = n.task_id;

ALTER TABLE sources
    ADD COLUMN failures        integer NOT NULL DEFAULT 0,
    ADD COLUMN mismatches      integer NOT NULL DEFAULT 0,   -- how often its content had another digest (row 29)
    ADD COLUMN differs_in      integer,                      -- the content version that its own content is not (row 30)
    -- What the resolver said last; used in place of url, headers and origin_id (row 21).
    ADD COLUMN fresh_url       text,
    ADD COLUMN fresh_headers   jsonb,                        -- may hold secrets: read by leases alone
    ADD COLUMN fresh_origin_id bigint REFERENCES origins,
    ADD COLUMN resolved_at     timestamptz,
    -- The last lease with the URL that was taken for expired: refusals of it and of those before it are echoes. No clock could
    -- tell them as surely as fencing tokens.
    ADD COLUMN stale_epoch     bigint,
    ADD COLUMN refreshes       integer NOT NULL DEFAULT 0,   -- how often that was without progress in between (I12)
    ADD COLUMN refreshed_bytes bigint,                       -- how many bytes there were then
    -- Kept for tasks with several sources alone: bytes that came from it, and how long leases on it took, in milliseconds.
    ADD COLUMN bytes           bigint NOT NULL DEFAULT 0,
    ADD COLUMN busy_ms         bigint NOT NULL DEFAULT 0;

ALTER TABLE ready_chunks
    -- How often it was taken from a source that was much slower than its peers (row 32).
    ADD COLUMN moves smallint NOT NULL DEFAULT 0,
    DROP CONSTRAINT ready_chunks_kind_known,
    ADD CONSTRAINT ready_chunks_kind_known CHECK (kind IN ('fetch', 'finalize', 'purge', 'resolve'));
ALTER TABLE leases ADD COLUMN moves smallint NOT NULL DEFAULT 0;

-- One question at a time per task, whatever the number of workers (row 21).
CREATE UNIQUE INDEX ready_chunks_one_question ON ready_chunks (task_id) WHERE kind = 'resolve';
CREATE UNIQUE INDEX leases_one_question ON leases (task_id) WHERE kind = 'resolve';

-- What was tried and did not succeed: the newest ones of each task, for its explanation.
CREATE TABLE attempts (
    task_id    bigint NOT NULL REFERENCES tasks ON DELETE CASCADE,
    serial     bigint GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    worker     text,
    source     integer,                                      -- its ordinal
    kind       text NOT NULL,
    status     integer,                                      -- of the answer, if there was one
    detail     text NOT NULL,
    request_id text,                                         -- the origin's own name for the request
    address    text,                                         -- of the peer
    byte       bigint NOT NULL,                              -- the first one that was asked for
    outcome    text NOT NULL,
    PRIMARY KEY (task_id, serial),
    CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('retry', 'nextSource', 'startOver', 'resolve', 'returned', 'failed'))
);

ALTER TABLE staged_tasks
    ADD COLUMN options      jsonb,
    ADD COLUMN content_type text,
    ADD COLUMN deadline_ms  bigint;
