-- The data model. Hot tables (ready_chunks, leases, sessions) are narrow and churn; cold tables (tasks, sources, events) are
-- wide and rest. Shipped migrations are never edited.
--
-- Lock order, everywhere: sessions, origins, groups, tasks, chunks, each by id. Every verb that moves tasks or chunks locks
-- their groups first, so that two verbs on one group never wait for each other in a circle.

CREATE SEQUENCE chunk_ids AS bigint;

-- The fencing tokens (I1): a later lease of a chunk always has a greater epoch, whatever becomes of transactions.
CREATE SEQUENCE lease_epochs AS bigint;

CREATE TABLE groups (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL,
    sink            text NOT NULL,
    state           text NOT NULL DEFAULT 'open',
    desired         text NOT NULL DEFAULT 'run',
    generation      integer NOT NULL DEFAULT 1,
    creation_key    text,                                   -- the Idempotency-Key of the request that made it (I10)
    priority        integer NOT NULL DEFAULT 0,
    weight          integer NOT NULL DEFAULT 1,
    max_connections integer,
    metadata        jsonb,
    -- How much service the group has had, in bytes over weight: the group with the least is served next (I15).
    served          bigint NOT NULL DEFAULT 0,
    queued          bigint NOT NULL DEFAULT 0,
    active          bigint NOT NULL DEFAULT 0,
    paused          bigint NOT NULL DEFAULT 0,
    finalizing      bigint NOT NULL DEFAULT 0,
    succeeded       bigint NOT NULL DEFAULT 0,
    failed          bigint NOT NULL DEFAULT 0,
    cancelled       bigint NOT NULL DEFAULT 0,
    remaining       bigint NOT NULL GENERATED ALWAYS AS (queued + active + paused + finalizing) STORED,
    bytes_done      bigint NOT NULL DEFAULT 0,
    bytes_total     bigint NOT NULL DEFAULT 0,
    unknown_tasks   bigint NOT NULL DEFAULT 0,
    -- A counter of bytes that decays with a time constant of 10 s, as of rate_at.
    rate_bytes      double precision NOT NULL DEFAULT 0,
    rate_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    finished_at     timestamptz,
    CONSTRAINT groups_name_unique UNIQUE (name),
    CONSTRAINT groups_name_form CHECK (name ~ '^[A-Za-z0-9._-]{1,200}$'),
    CONSTRAINT groups_state_known CHECK (state IN ('open', 'sealed', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT groups_desired_known CHECK (desired IN ('run', 'pause', 'cancel')),
    CONSTRAINT groups_counts_not_negative CHECK (
        queued >= 0 AND active >= 0 AND paused >= 0 AND finalizing >= 0 AND succeeded >= 0 AND failed >= 0
        AND cancelled >= 0),
    CONSTRAINT groups_finish_is_whole CHECK (                -- I7: terminal only when every task is
        state IN ('open', 'sealed') OR queued + active + paused + finalizing = 0),
    CONSTRAINT groups_finish_is_dated CHECK ((state IN ('open', 'sealed')) = (finished_at IS NULL))
) WITH (fillfactor = 50);

-- What the claim walks: groups that may be served, the most urgent and least served first.
CREATE INDEX groups_by_urgency ON groups (sink, priority DESC, served, id)
    WHERE state IN ('open', 'sealed');

CREATE TABLE origins (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key             text NOT NULL CONSTRAINT origins_key_unique UNIQUE,
    max_connections integer CONSTRAINT origins_cap_positive CHECK (max_connections > 0),   -- NULL: the coordinator's default
    not_before      timestamptz                              -- parked by Retry-After until then
) WITH (fillfactor = 50);

CREATE TABLE tasks (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_id         bigint NOT NULL REFERENCES groups ON DELETE CASCADE,
    key              text NOT NULL,
    sink             text NOT NULL,
    path             text NOT NULL,
    state            text NOT NULL DEFAULT 'queued',
    desired          text NOT NULL DEFAULT 'run',
    priority         integer NOT NULL DEFAULT 0,
    expected_size    bigint,
    expected_digests jsonb,
    metadata         jsonb,
    -- The content version and what is known of it; bytes of two versions never mix.
    version          integer NOT NULL DEFAULT 1,
    restarts         integer NOT NULL DEFAULT 0,             -- how often the content changed in this run
    planned          boolean NOT NULL DEFAULT false,         -- size known, chunks cut
    stream           boolean NOT NULL DEFAULT false,         -- ranges don't work: one chunk, fetched from its start
    fenced           boolean NOT NULL DEFAULT false,         -- a lease on this version was lost: finish on a fresh inode (I8)
    size             bigint,
    etag             text,
    last_modified    text,
    effective_url    text,
    chunks_left      integer NOT NULL DEFAULT 1,
    leases           integer NOT NULL DEFAULT 0,             -- fetch leases held on it now
    bytes_done       bigint NOT NULL DEFAULT 0,              -- bytes of its done chunks
    run              integer NOT NULL DEFAULT 1,             -- counts retries, so that event ids differ
    attempts         integer NOT NULL DEFAULT 0,
    failure_kind     text,
    failure_detail   text,
    failure_at       timestamptz,
    digests          jsonb,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    started_at       timestamptz,
    finished_at      timestamptz,
    CONSTRAINT tasks_key_unique UNIQUE (group_id, key),
    CONSTRAINT tasks_state_known CHECK (
        state IN ('queued', 'active', 'paused', 'finalizing', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT tasks_desired_known CHECK (desired IN ('run', 'pause', 'cancel')),
    CONSTRAINT tasks_chunks_not_negative CHECK (chunks_left >= 0),
    CONSTRAINT tasks_active_means_leased CHECK ((state = 'active') = (leases > 0)),
    CONSTRAINT tasks_size_not_negative CHECK (size >= 0)
) WITH (fillfactor = 80);

CREATE INDEX tasks_by_state ON tasks (group_id, state, id);
-- Two live tasks never write to one destination.
CREATE UNIQUE INDEX tasks_destination_unique ON tasks (sink, path)
    WHERE state IN ('queued', 'active', 'paused', 'finalizing');

CREATE TABLE sources (
    task_id   bigint NOT NULL REFERENCES tasks ON DELETE CASCADE,
    ordinal   integer NOT NULL,
    url       text NOT NULL,
    origin_id bigint NOT NULL REFERENCES origins,
    headers   jsonb,                                         -- may hold secrets: read by leases alone
    dead      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (task_id, ordinal)
);

-- What can be leased, or will be once it is due (waiting) or wanted again (parked).
CREATE TABLE ready_chunks (
    id          bigint PRIMARY KEY DEFAULT nextval('chunk_ids'),
    kind        text NOT NULL DEFAULT 'fetch',
    task_id     bigint NOT NULL,                             -- no foreign key: a purge outlives its task
    group_id    bigint NOT NULL,                             -- 0 for a purge
    origin_id   bigint NOT NULL,                             -- 0 for work that fetches nothing
    source      integer NOT NULL DEFAULT 0,
    sink        text NOT NULL,
    version     integer NOT NULL,
    first       bigint NOT NULL DEFAULT 0,
    last        bigint,                                      -- the byte after its last; NULL for a stream of unknown length
    resume      bigint NOT NULL DEFAULT 0,                   -- the durable offset (I4)
    crc         bigint NOT NULL DEFAULT 0,                   -- CRC32C of [first, resume)
    rank        integer NOT NULL DEFAULT 0,                  -- lower goes first within its group
    status      text NOT NULL DEFAULT 'ready',
    not_before  timestamptz,
    attempts    integer NOT NULL DEFAULT 0,                  -- failures without progress (I12)
    deaths      integer NOT NULL DEFAULT 0,                  -- sessions that died on it without progress (I12)
    remove_path text,                                        -- for a purge: the finished file that shall go too
    remove_size bigint,
    CONSTRAINT ready_chunks_kind_known CHECK (kind IN ('fetch', 'finalize', 'purge')),
    CONSTRAINT ready_chunks_status_known CHECK (status IN ('ready', 'waiting', 'parked')),
    CONSTRAINT ready_chunks_range CHECK (first >= 0 AND (last IS NULL OR last >= first)),
    CONSTRAINT ready_chunks_resume_within CHECK (resume >= first AND (last IS NULL OR resume <= last))
) WITH (fillfactor = 80);

CREATE INDEX ready_chunks_by_rank ON ready_chunks (group_id, origin_id, rank, id) WHERE status = 'ready';
CREATE INDEX ready_chunks_purges ON ready_chunks (sink, id) WHERE kind = 'purge' AND status = 'ready';
CREATE INDEX ready_chunks_due ON ready_chunks (not_before) WHERE status = 'waiting';
CREATE INDEX ready_chunks_by_task ON ready_chunks (task_id);

CREATE TABLE sessions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker      text NOT NULL,
    version     text NOT NULL,
    labels      jsonb NOT NULL DEFAULT '{}',
    slots       integer NOT NULL,
    sinks       text[] NOT NULL,
    parked      text[] NOT NULL DEFAULT '{}',                -- sinks of it that are in trouble now
    sink_status jsonb NOT NULL DEFAULT '[]',
    sequence    bigint NOT NULL DEFAULT 0,                   -- its newest sync; only that one is granted leases
    draining    boolean NOT NULL DEFAULT false,
    rate_bytes  double precision NOT NULL DEFAULT 0,
    rate_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    opened_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at  timestamptz NOT NULL                         -- by the database's clock alone (I11)
) WITH (fillfactor = 50);

CREATE TABLE leases (
    chunk_id    bigint PRIMARY KEY,                          -- I2: a chunk has at most one lease
    epoch       bigint NOT NULL DEFAULT nextval('lease_epochs'),
    session_id  bigint NOT NULL,
    sync        bigint NOT NULL,                             -- the session's sync in whose answer it was granted
    kind        text NOT NULL,
    task_id     bigint NOT NULL,
    group_id    bigint NOT NULL,
    origin_id   bigint NOT NULL,
    source      integer NOT NULL,
    sink        text NOT NULL,
    version     integer NOT NULL,
    first       bigint NOT NULL,
    last        bigint,
    resume      bigint NOT NULL,                             -- where this lease began
    durable     bigint NOT NULL,                             -- how far it is (I4); never indexed, to keep updates HOT
    crc         bigint NOT NULL,
    rank        integer NOT NULL,
    attempts    integer NOT NULL,
    deaths      integer NOT NULL,
    remove_path text,
    remove_size bigint,
    granted_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    progress_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT leases_durable_within CHECK (durable >= resume AND (last IS NULL OR durable <= last))
) WITH (fillfactor = 50);

CREATE INDEX leases_by_session ON leases (session_id);
CREATE INDEX leases_by_task ON leases (task_id);
CREATE INDEX leases_by_group ON leases (group_id);
CREATE INDEX leases_by_origin ON leases (origin_id);

-- What the finalizer checks (I3); gone when the task is.
CREATE TABLE done_chunks (
    task_id bigint NOT NULL,
    version integer NOT NULL,
    first   bigint NOT NULL,
    last    bigint NOT NULL,
    crc     bigint NOT NULL,
    PRIMARY KEY (task_id, version, first, last)             -- a chunk without bytes begins where the next one does
);

-- The durable log. A row is written in the transaction that makes it true; its position is given out after that has
-- committed, by the one who holds event_log, so that positions are contiguous and in commit order (I9).
CREATE TABLE events (
    serial   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id       text NOT NULL CONSTRAINT events_id_unique UNIQUE,
    position bigint CONSTRAINT events_position_unique UNIQUE,
    type     text NOT NULL,
    subject  text NOT NULL,
    data     jsonb NOT NULL,
    at       timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX events_unsequenced ON events (serial) WHERE position IS NULL;
CREATE INDEX events_by_subject ON events (subject, position);

CREATE TABLE event_log (
    is_only       boolean PRIMARY KEY DEFAULT true CONSTRAINT event_log_single CHECK (is_only),
    last_position bigint NOT NULL DEFAULT 0
);
INSERT INTO event_log DEFAULT VALUES;

-- Tasks on their way in. Not logged: after a crash of the database the caller sends them again.
CREATE UNLOGGED TABLE staged_tasks (
    upload    bigint NOT NULL,
    line      bigint NOT NULL,
    key       text NOT NULL,
    path      text NOT NULL,
    priority  integer NOT NULL,
    size      bigint,
    digests   jsonb,
    metadata  jsonb,
    headers   jsonb,
    urls      text[] NOT NULL,
    origins   text[] NOT NULL,
    staged_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX staged_tasks_by_upload ON staged_tasks (upload, key, line);
CREATE SEQUENCE upload_ids AS bigint;
