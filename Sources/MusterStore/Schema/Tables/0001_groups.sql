-- Groups, their tasks, and the tasks' sources: wide rows that change seldom. The rows that change with every request of a worker are in
-- 0002_leasing.sql.
--
-- Lock order, everywhere: sessions, origins, groups, each by id; then the paths of sinks (`share_paths`, `lock_paths_of`), tasks and chunks. A verb
-- that moves tasks or chunks locks their groups first, so that two verbs on one group never deadlock: only one verb at a time locks what comes after
-- a group in this order, except for paths. Purges belong to no group: a claim takes them before all groups, and skips those that are locked.

-- The identity of this database, independent of its name and its server. Files carry the id in their mark (adr/0014). The first use of the database
-- inserts the row (Verbs/incarnation.sql), so that copies of an unused database do not share an id (adr/0026).
CREATE TABLE installation (
    id          uuid NOT NULL DEFAULT gen_random_uuid(),     -- made with the first use, never changed
    incarnation text,                                        -- its `database_incarnation` at its last use; NULL: not used yet
    log         uuid NOT NULL DEFAULT gen_random_uuid(),     -- names the log of events; new in each incarnation
    event_mark  text NOT NULL DEFAULT '',                    -- suffix of the ids of events of this incarnation; empty in the first one
    is_one      boolean PRIMARY KEY DEFAULT true,            -- always true: keeps the table at one row
    CONSTRAINT installation_has_one_row CHECK (is_one)
);

CREATE TABLE groups (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- part of its events' ids
    name             text NOT NULL,                          -- what callers know it by
    sink             text NOT NULL,                          -- where its files go
    state            text NOT NULL DEFAULT 'open',           -- open, sealed, succeeded, failed or cancelled
    -- What the caller wants of the whole group. A verb writes this first and then moves the tasks (adr/0015). remove_files is a removal that also
    -- deletes finished files. No other verb follows a removal.
    desired          text NOT NULL DEFAULT 'run',
    generation       integer NOT NULL DEFAULT 1,             -- how often it was completed and reopened, from 1 (I7)
    priority         integer NOT NULL DEFAULT 0,             -- higher goes first, strictly
    weight           integer NOT NULL DEFAULT 1,             -- its share among groups of its priority, relative to their weights
    max_connections  integer,                                -- most lanes to origins at once (I5); NULL: no cap
    bytes_per_second bigint CONSTRAINT groups_rate_positive CHECK (bytes_per_second > 0),   -- its byte budget; NULL: none (adr/0009)
    -- The hours in which it may run, in local time: across midnight if from > to, all day if both are equal. NULL: always.
    window_from      time,                                   -- the first moment of the window
    window_to        time,                                   -- the first moment after the window
    window_zone      text,                                   -- the time zone of both
    -- [{from, to, timeZone?, bytesPerSecond}]: the first entry whose window is open sets the rate in place of bytes_per_second.
    timetable        jsonb,
    time_limit       interval,                               -- how long a generation may take; NULL: any time
    deadline_at      timestamptz,                            -- when the time limit ends, by the database's clock (I11)
    deadline_action  text NOT NULL DEFAULT 'fail',           -- what follows then: fail unfinished tasks, or continue and write an event
    overdue          boolean NOT NULL DEFAULT false,         -- its deadline has passed
    held             boolean NOT NULL DEFAULT false,         -- it waits for other groups: group_prerequisites
    reuses           boolean NOT NULL DEFAULT true,          -- its tasks may use files that the sink has, and give theirs (adr/0013)
    metadata         jsonb,                                  -- the caller's own data; given back, never read
    fetch_options    jsonb,                                  -- how sources are asked; may hold secrets: leases alone read it
    asked_anew_at    timestamptz,                            -- when fetch_options or the resolver were changed; older leases have the old ones
    policy           jsonb,                                  -- what is done where the range contract leaves a choice
    resolver         jsonb,                                  -- gives fresh URLs; its headers may hold secrets
    -- Number of its tasks in each state (I6); adr/0003. Queued tasks that are leased are shown as active (adr/0035).
    queued           bigint NOT NULL DEFAULT 0,              -- tasks
    paused           bigint NOT NULL DEFAULT 0,              -- tasks
    finalizing       bigint NOT NULL DEFAULT 0,              -- tasks
    succeeded        bigint NOT NULL DEFAULT 0,              -- tasks
    failed           bigint NOT NULL DEFAULT 0,              -- tasks
    cancelled        bigint NOT NULL DEFAULT 0,              -- tasks
    remaining        bigint NOT NULL GENERATED ALWAYS AS (queued + paused + finalizing) STORED,   -- 0 completes it (I7)
    bytes_done       bigint NOT NULL DEFAULT 0,              -- durable bytes of its tasks
    bytes_total      bigint NOT NULL DEFAULT 0,              -- the sum of the sizes that are known
    unknown_tasks    bigint NOT NULL DEFAULT 0,              -- tasks of unknown size, except failed ones
    -- A counter of bytes that decays with a time constant of 10 s: `decayed`.
    rate_bytes       double precision NOT NULL DEFAULT 0,    -- its value as of rate_at
    rate_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when that counter was last updated
    -- Sharing with other groups (adr/0008).
    served           bigint NOT NULL DEFAULT 0,              -- bytes charged, divided by the weight: the group with the least is next (I15)
    shares_at        integer,                                -- the priority at which `served` is comparable; NULL: to be levelled
    -- The speed of one connection of the group, from its recent leases.
    lease_bytes      bigint NOT NULL DEFAULT 0,              -- bytes; each `report_done` scales the old value down
    lease_ms         bigint NOT NULL DEFAULT 0,              -- milliseconds for these bytes, scaled down with them
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was made
    finished_at      timestamptz,                            -- when this generation ended; NULL while it has not
    CONSTRAINT groups_name_unique UNIQUE (name),
    CONSTRAINT groups_name_form CHECK (name ~ '^[A-Za-z0-9._-]{1,200}$'),
    CONSTRAINT groups_state_known CHECK (state IN ('open', 'sealed', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT groups_desired_known CHECK (desired IN ('run', 'pause', 'cancel', 'remove', 'remove_files')),
    CONSTRAINT groups_window_whole CHECK (num_nulls(window_from, window_to, window_zone) IN (0, 3)),
    CONSTRAINT groups_timetable_listed CHECK (jsonb_typeof(timetable) = 'array'),
    CONSTRAINT groups_deadline_action_known CHECK (deadline_action IN ('fail', 'continue')),
    CONSTRAINT groups_overdue_had_deadline CHECK (NOT overdue OR deadline_at IS NOT NULL),
    CONSTRAINT groups_counts_not_negative CHECK (
        queued >= 0 AND paused >= 0 AND finalizing >= 0 AND succeeded >= 0 AND failed >= 0
        AND cancelled >= 0),
    CONSTRAINT groups_finish_is_whole CHECK (                -- I7: terminal only when every task is
        state IN ('open', 'sealed') OR queued + paused + finalizing = 0),
    CONSTRAINT groups_finish_is_dated CHECK ((state IN ('open', 'sealed')) = (finished_at IS NULL))
) WITH (fillfactor = 50);

-- Verbs on groups that another transaction kept locked: the sweep writes them into `desired` when the groups are free (adr/0015). No foreign key: its
-- check would wait for that lock.
CREATE TABLE wishes (
    group_id  bigint PRIMARY KEY,                            -- the group that was locked
    verb      text NOT NULL,                                 -- the verb on the whole group
    wished_at timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was asked for
    CONSTRAINT wishes_verb_known CHECK (verb IN ('pause', 'resume', 'cancel', 'remove', 'remove_files'))
);

-- The claim walks the groups of a sink, the most urgent and then the least served first.
CREATE INDEX groups_by_urgency ON groups (sink, priority DESC, served, id)
    WHERE state IN ('open', 'sealed');
-- Sweeps look for few groups among many.
CREATE INDEX groups_by_deadline ON groups (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('open', 'sealed') AND (NOT overdue OR deadline_action = 'fail');
CREATE INDEX groups_held ON groups (id) WHERE held;
CREATE INDEX groups_with_window ON groups (id) WHERE window_from IS NOT NULL AND state IN ('open', 'sealed');
CREATE INDEX groups_with_rate ON groups (id)
    WHERE (bytes_per_second IS NOT NULL OR timetable IS NOT NULL) AND state IN ('open', 'sealed');
-- No column of this index changes when tasks move.
CREATE INDEX groups_with_wishes ON groups (id)
    WHERE desired <> 'run' AND (state IN ('open', 'sealed') OR desired IN ('remove', 'remove_files'));

-- The groups that a group waits for. A satisfied row stays satisfied, even if the other group changes later.
CREATE TABLE group_prerequisites (
    group_id        bigint NOT NULL REFERENCES groups ON DELETE CASCADE,   -- the group that waits
    prerequisite_id bigint NOT NULL,                         -- the group that it waits for
    condition       text NOT NULL,                           -- how the prerequisite has to end
    satisfied_at    timestamptz,                             -- when it ended so; NULL until then
    PRIMARY KEY (group_id, prerequisite_id),
    -- A group that others still wait for is not removed.
    CONSTRAINT group_prerequisites_in_use FOREIGN KEY (prerequisite_id) REFERENCES groups,
    CONSTRAINT group_prerequisites_condition_known CHECK (condition IN ('succeeded', 'finished')),
    CONSTRAINT group_prerequisites_not_itself CHECK (group_id <> prerequisite_id)
);
CREATE INDEX group_prerequisites_by_prerequisite ON group_prerequisites (prerequisite_id);

CREATE TABLE origins (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- chunks and leases name it
    key              text NOT NULL CONSTRAINT origins_key_unique UNIQUE,   -- scheme, host and port
    max_connections  integer CONSTRAINT origins_cap_positive CHECK (max_connections > 0),   -- NULL: the coordinator's default (I5)
    bytes_per_second bigint CONSTRAINT origins_rate_positive CHECK (bytes_per_second > 0),   -- its byte budget; NULL: none
    not_before       timestamptz,                            -- parked until then: by Retry-After, an operator (row 25) or a limit over some seconds (row 24)
    -- When one lane may try the origin before not_before, since its Retry-After may have meant one file; NULL if the origin did not ask for the pause
    -- itself.
    try_at           timestamptz,
    refused_group    bigint,                                 -- the group whose request last brought a Retry-After: others try the origin first
    refused_since    timestamptz,                            -- since when no file of that group was served
    alone_group      bigint,                                 -- the group that its Retry-After means alone (`is_meant_alone`); NULL: none
    alone_until      timestamptz,                            -- until when the last Retry-After for that group holds
    looked_up_to     bigint NOT NULL DEFAULT 0,              -- the last chunk that was checked for another source while the origin rests
    cut_at           timestamptz,                            -- when it last cut a body late: soon after that, an early cut is no sign of a limit
    -- Number of lanes that it may have after it refused because of too many (`heed_limit`). More are allowed with the time since
    -- (`learned_connections`). NULL: no limit is known.
    learned          integer CONSTRAINT origins_learned_positive CHECK (learned > 0),
    learned_at       timestamptz,                            -- from when learned counts
    limited_at       timestamptz,                            -- when it last refused; shown only
    limited_with     integer,                                -- the status of that refusal; NULL for a reset
    -- The newest fencing token when it last refused. Only a lease with a greater token can halve `learned` again, so that a burst of refusals halves
    -- it once, whatever a clock says (I11).
    limited_epoch    bigint,
    doubted_at       timestamptz,                            -- since when it refuses all requests and serves nothing (`is_out`, `refused_all`)
    silent_at        timestamptz,                            -- when a request there last ended without an answer, or was given up for that (`is_unresponsive`)
    out_since        timestamptz,                            -- since when it refuses connections and serves nothing; NULL: it serves
    serves_again     boolean NOT NULL DEFAULT false,         -- it has served two requests for one file (row 22, adr/0027)
    compared_at      timestamptz,                            -- when a plain GET was last made beside a slow part, to compare them (`try_slow_origins`)
    rate_bytes       double precision NOT NULL DEFAULT 0,    -- a decaying counter of bytes, as of rate_at
    answers          double precision NOT NULL DEFAULT 0,    -- a decaying counter of leases that it fulfilled, as of rate_at
    rate_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when both counters were last updated
    refusals         double precision NOT NULL DEFAULT 0,    -- a decaying counter of refusals that may be limits, as of refused_at
    refused_at       timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when that counter was last updated
    refused_epoch    bigint,                                 -- the newest fencing token at refused_at: older leases were requested beside others
    limits_with      integer[] NOT NULL DEFAULT '{}',        -- statuses (200 for a page, 400, 403, 404) of refused files that were served before or later
    refuses_with     integer[] NOT NULL DEFAULT '{}',        -- the statuses with which it refused files for good, each at most three times
    CONSTRAINT origins_learned_is_dated CHECK ((learned IS NULL) = (learned_at IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX origins_with_rate ON origins (id) WHERE bytes_per_second IS NOT NULL;
CREATE INDEX origins_paused ON origins (not_before) WHERE not_before IS NOT NULL;

CREATE SEQUENCE task_ids AS bigint;

-- Tasks and sources have no foreign keys, whose checks took three quarters of an addition's time (adr/0025).
CREATE TABLE tasks (
    id               bigint NOT NULL DEFAULT nextval('task_ids'),   -- part of its events' ids and its parts' names
    group_id         bigint NOT NULL,                        -- its group
    key              text NOT NULL,                          -- the caller's name for it, unique in the group (I10)
    sink             text NOT NULL,                          -- its group's, here for the index of destinations
    path             text NOT NULL,                          -- where its file goes
    named            boolean NOT NULL DEFAULT false,         -- its path ends in a name that an origin suggested (row 34)
    state            text NOT NULL DEFAULT 'queued',         -- its state; a leased task is shown as active (`shown_state`)
    desired          text NOT NULL DEFAULT 'run',            -- what its caller wants, kept until it can be done (adr/0010)
    priority         integer NOT NULL DEFAULT 0,             -- higher goes first within its group
    metadata         jsonb,                                  -- the caller's own data; given back, never read
    expected_size    bigint,                                 -- in bytes, as the caller says; NULL: any
    expected_digests jsonb,                                  -- {algorithm: hexadecimal}, as the caller says
    content_type     text,                                   -- the media type that the caller expects (row 27)
    fetch_options    jsonb,                                  -- overrides the group's; may hold secrets: leases alone read it
    mirrors          integer NOT NULL DEFAULT 1,             -- how many sources it has
    time_limit       interval,                               -- how long it may take from when it is added or retried (row 33)
    deadline_at      timestamptz,                            -- when the time limit ends, by the database's clock (I11)
    -- The content version and what is known of it; bytes of two versions never mix.
    version          integer NOT NULL DEFAULT 1,             -- the content version, from 1
    restarts         integer NOT NULL DEFAULT 0,             -- how often the content changed in this run
    planned          boolean NOT NULL DEFAULT false,         -- a response has described the content, and its chunks exist
    -- How this version is fetched. chunks: in ranges; stream: one chunk, in one request that a later one can resume; whole: one plain GET, which is
    -- resumed only where `goes_on` says so. Alphabetical order is the order of the ladder.
    rung             text NOT NULL DEFAULT 'chunks',
    fenced           boolean NOT NULL DEFAULT false,         -- a lease on this version was lost: finish on a fresh inode (I8)
    size             bigint,                                 -- of this version in bytes; NULL: not known
    etag             text,                                   -- as its origin sent it
    last_modified    text,                                   -- as its origin sent it
    date_strong      boolean NOT NULL DEFAULT false,         -- last_modified may stand in If-Range (row 9)
    stated_digests   jsonb,                                  -- {algorithm: hexadecimal}, as its origin says (row 35)
    effective_url    text,                                   -- where the content came from, after redirects
    source           integer,                                -- the ordinal of the source that taught this version
    mixes            boolean NOT NULL DEFAULT false,         -- other sources may serve chunks of this version (row 30)
    clean            boolean NOT NULL DEFAULT false,         -- a digest was wrong: sources are not mixed any more (row 29)
    earlier          jsonb,                                  -- what a source showed of a version that was given up (EarlierVersion; row 27)
    -- Its work.
    chunks_left      integer NOT NULL DEFAULT 1,             -- chunks of this version that are not done (I3)
    bytes_done       bigint NOT NULL DEFAULT 0,              -- bytes of its done chunks
    run              integer NOT NULL DEFAULT 1,             -- counts retries from 1, so that event ids differ
    attempts         integer NOT NULL DEFAULT 0,             -- the most failed tries of any of its chunks; shown only
    -- The last failure, kept until it succeeds.
    failure_kind     text,                                   -- one of MusterCore's FailureKind
    failure_detail   text,                                   -- what was seen
    failure_at       timestamptz,                            -- when
    failure_status   integer,                                -- of the answer, if there was one
    failure_source   integer,                                -- the ordinal of the source
    failure_request  text,                                   -- the origin's own name for the request
    -- Its file, once it has succeeded.
    digests          jsonb,                                  -- {algorithm: hexadecimal}, as computed
    content_crc      bigint,                                 -- CRC32C of the whole file
    reused_from      text,                                   -- the path of the file that it was made of; NULL: it was fetched
    -- Equal for tasks of one sink that request the same content in the same way; NULL where that is unknown or not wanted. A succeeded task keeps it
    -- if its file can be reused: its CRC and its validators are known.
    reuse_key        bigint,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was added
    -- When it was first leased: something of it may be on disk since. Written when a lease on it ends (adr/0035).
    started_at       timestamptz,
    finished_at      timestamptz,                            -- when it ended
    CONSTRAINT tasks_key_unique UNIQUE (group_id, key),
    CONSTRAINT tasks_state_known CHECK (
        state IN ('queued', 'paused', 'finalizing', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT tasks_desired_known CHECK (desired IN ('run', 'pause', 'cancel')),
    CONSTRAINT tasks_rung_known CHECK (rung IN ('chunks', 'stream', 'whole')),
    CONSTRAINT tasks_chunks_not_negative CHECK (chunks_left >= 0),
    CONSTRAINT tasks_size_not_negative CHECK (size >= 0),
    CONSTRAINT tasks_reuse_is_checked CHECK (state <> 'succeeded' OR reuse_key IS NULL OR content_crc IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX tasks_by_state ON tasks (group_id, state, id);
-- For finding the tasks of a group that are in trouble.
CREATE INDEX tasks_by_failure ON tasks (group_id, failure_at)
    WHERE failure_at IS NOT NULL AND state IN ('queued', 'finalizing');
-- Two live tasks never have one destination (I17). The condition is that of `holds_path` (conditions.sql).
CREATE UNIQUE INDEX tasks_destination_unique ON tasks (sink, path)
    WHERE coalesce(state IN ('queued', 'paused', 'finalizing'), false);
-- Finds the task that put a file at a path last (`had_path_last`).
CREATE INDEX tasks_placed ON tasks (sink, path) WHERE coalesce(state = 'succeeded', false);
-- Two files of a group never get one name from their origins.
CREATE INDEX tasks_named ON tasks (group_id, path) WHERE named;
-- A claim moves chunks of these from one source to another.
CREATE INDEX tasks_mixing ON tasks (group_id, id) WHERE mixes AND state = 'queued';
CREATE INDEX tasks_by_deadline ON tasks (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('queued', 'paused', 'finalizing');
-- Files that can be given to other tasks, the newest last.
CREATE INDEX tasks_reusable ON tasks (reuse_key, id) WHERE state = 'succeeded' AND reuse_key IS NOT NULL;
-- Tasks between two leases, or whose file is put in place, for which other tasks may wait. Those that are leased: `leases_under_way`.
CREATE INDEX tasks_under_way ON tasks (reuse_key)
    WHERE state IN ('queued', 'finalizing') AND started_at IS NOT NULL AND reuse_key IS NOT NULL;
-- `drop_failed` goes through these in batches.
CREATE INDEX tasks_failed_begun ON tasks (group_id, id) WHERE state = 'failed' AND started_at IS NOT NULL;
-- Created last: of indexes that cost the same, as on an empty table, PostgreSQL takes the newest. Otherwise it may take `tasks_by_state`, which has
-- the id too, and read all of it.
ALTER TABLE tasks ADD PRIMARY KEY (id);

CREATE TABLE sources (
    task_id         bigint NOT NULL,                         -- its task
    ordinal         integer NOT NULL,                        -- its place among the task's sources, from 0
    url             text NOT NULL,                           -- as the caller gave it
    origin_id       bigint NOT NULL,                         -- of that URL
    headers         jsonb,                                   -- the caller's; may hold secrets: leases alone read it
    dead            boolean NOT NULL DEFAULT false,          -- given up until a retry
    refused_with    integer,                                 -- the 4xx for which it was given up first
    asked_again     boolean NOT NULL DEFAULT false,          -- whether it was asked once more since (`ask_once_more`)
    rung            text NOT NULL DEFAULT 'chunks',          -- how it is requested, as in tasks; it contradicted the rungs above
    failures        integer NOT NULL DEFAULT 0,              -- failures that say something about the source itself
    failed          integer NOT NULL DEFAULT 0,              -- all its failures, as noted in attempts; shown only
    mismatches      integer NOT NULL DEFAULT 0,              -- how often its content had another digest (row 29)
    differs_in      integer,                                 -- the content version that it does not have (row 30)
    -- The resolver's last answer; it overrides url, headers and origin_id (row 21).
    fresh_url       text,                                    -- NULL: the resolver was not asked
    fresh_headers   jsonb,                                   -- may hold secrets: leases alone read it
    fresh_origin_id bigint,                                  -- of fresh_url
    resolved_at     timestamptz,                             -- when it answered; shown only
    -- The newest fencing token when the URL was taken for expired: refusals of leases up to it are late echoes. A clock could not tell them apart as
    -- surely (I11).
    stale_epoch     bigint,
    refreshes       integer NOT NULL DEFAULT 0,              -- fresh URLs without progress in between (I12)
    refreshed_bytes bigint,                                  -- bytes that had come at the last refresh
    -- Kept only for tasks with several sources.
    bytes           bigint NOT NULL DEFAULT 0,               -- bytes that came from it
    busy_ms         bigint NOT NULL DEFAULT 0,               -- total time of leases on it, in milliseconds
    PRIMARY KEY (task_id, ordinal),
    CONSTRAINT sources_rung_known CHECK (rung IN ('chunks', 'stream', 'whole'))
);

-- Failed attempts: the newest 50 of each task, for its explanation.
CREATE TABLE attempts (
    task_id    bigint NOT NULL REFERENCES tasks ON DELETE CASCADE,   -- its task
    serial     bigint GENERATED ALWAYS AS IDENTITY,          -- the order
    at         timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was reported
    worker     text,                                         -- the worker's name; NULL: its session is gone
    source     integer,                                      -- the source's ordinal
    kind       text NOT NULL,                                -- one of MusterCore's FailureKind
    status     integer,                                      -- of the answer, if there was one
    detail     text NOT NULL,                                -- what was seen
    request_id text,                                         -- the origin's own name for the request
    address    text,                                         -- of the peer, numeric
    byte       bigint NOT NULL,                              -- the first byte that was asked for
    outcome    text NOT NULL,                                -- what followed
    PRIMARY KEY (task_id, serial),
    CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('retry', 'nextSource', 'startOver', 'resolve', 'returned', 'failed'))
);

-- Responses that may be a page in the place of the file: whether they are shows later, or never (`TaskRecord.isDoubtful`).
CREATE INDEX attempts_with_pages ON attempts (task_id) WHERE coalesce(kind = 'httpStatus(200)', false);

-- Tasks of uploads whose lines are not all validated yet. Not logged: after a crash of the database the caller sends them again.
CREATE UNLOGGED TABLE staged_tasks (
    upload       bigint NOT NULL,                            -- of upload_ids
    line         bigint NOT NULL,                            -- of the manifest, from 1
    task         bigint NOT NULL DEFAULT nextval('task_ids'),   -- the id that it will have
    key          text NOT NULL,                              -- as in tasks
    has_own_key  boolean NOT NULL,                           -- whether the caller gave the key
    path         text NOT NULL,                              -- as in tasks
    priority     integer NOT NULL,                           -- as in tasks
    size         bigint,                                     -- tasks.expected_size
    digests      jsonb,                                      -- tasks.expected_digests
    metadata     jsonb,                                      -- as in tasks
    headers      jsonb,                                      -- of every source; may hold secrets
    urls         text[] NOT NULL,                            -- of the sources, in order
    origins      text[] NOT NULL,                            -- their origins' keys
    options      jsonb,                                      -- tasks.fetch_options; may hold secrets
    content_type text,                                       -- as in tasks
    deadline_ms  bigint,                                     -- tasks.time_limit, in milliseconds
    staged_at    timestamptz NOT NULL DEFAULT statement_timestamp()   -- old ones are swept
);
CREATE INDEX staged_tasks_by_upload ON staged_tasks (upload);
CREATE SEQUENCE upload_ids AS bigint CACHE 100;
