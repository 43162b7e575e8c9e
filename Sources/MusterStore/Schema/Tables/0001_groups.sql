-- Groups, the tasks in them, and where these come from: wide rows that change seldom. The rows that change with every request of a
-- worker stand in 0002_leasing.sql.
--
-- Lock order, everywhere: sessions, origins, groups, each by id; then the paths of sinks (`share_paths`, `lock_paths_of`), tasks and chunks. A verb
-- that moves tasks or chunks locks their groups first, so that two verbs on one group never wait for each other in a circle: what is
-- locked after a group is locked by one verb at a time, but for paths. Purges belong to no group: a claim takes them before all groups, and
-- passes by those that are locked.

-- Which database this is, whatever becomes of its name and its server. Files carry this id in their mark (adr/0014). There is no row before the
-- database is used for the first time (Verbs/incarnation.sql), so that copies of one that was never used have no id in common (adr/0026).
CREATE TABLE installation (
    id          uuid NOT NULL DEFAULT gen_random_uuid(),     -- made with the first use, never changed
    incarnation text,                                        -- as what it is used; NULL: not used yet
    log         uuid NOT NULL DEFAULT gen_random_uuid(),     -- names the log of events: another one in each incarnation
    event_mark  text NOT NULL DEFAULT '',                    -- ends the ids of events that are new in an incarnation; empty in the first one
    is_one      boolean PRIMARY KEY DEFAULT true,            -- always true: keeps the table at one row
    CONSTRAINT installation_has_one_row CHECK (is_one)
);

CREATE TABLE groups (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- part of its events' ids
    name             text NOT NULL,                          -- what callers know it by
    sink             text NOT NULL,                          -- where its files go
    state            text NOT NULL DEFAULT 'open',           -- open, sealed, or one of the three ends
    -- What its caller wants of the group as a whole. A verb writes this first and moves the tasks after that (adr/0015).
    -- remove_files is a removal that deletes finished files too; nothing follows a removal but the end of it.
    desired          text NOT NULL DEFAULT 'run',
    generation       integer NOT NULL DEFAULT 1,             -- how often it was completed and reopened, from 1 (I7)
    priority         integer NOT NULL DEFAULT 0,             -- higher goes first, strictly
    weight           integer NOT NULL DEFAULT 1,             -- its part of what its priority is served, against the others' weights
    max_connections  integer,                                -- most lanes to origins at once (I5); NULL: no cap
    bytes_per_second bigint CONSTRAINT groups_rate_positive CHECK (bytes_per_second > 0),   -- its byte budget; NULL: none (adr/0009)
    -- When it may run, by local time: over midnight where from > to, always where both are the same. NULL: always.
    window_from      time,                                   -- the first moment of the window
    window_to        time,                                   -- the moment after the last one
    window_zone      text,                                   -- the time zone of both
    -- [{from, to, timeZone?, bytesPerSecond}]: the first entry whose window is open sets the rate in place of bytes_per_second.
    timetable        jsonb,
    time_limit       interval,                               -- how long a generation may take; NULL: any time
    deadline_at      timestamptz,                            -- when that is over, by the database's clock (I11)
    deadline_action  text NOT NULL DEFAULT 'fail',           -- what follows then: fail what is left, or continue and say so
    overdue          boolean NOT NULL DEFAULT false,         -- its deadline has passed
    held             boolean NOT NULL DEFAULT false,         -- it waits for other groups: group_prerequisites
    reuses           boolean NOT NULL DEFAULT true,          -- its tasks may use files that the sink has, and give theirs (adr/0013)
    metadata         jsonb,                                  -- the caller's own; given back, never read
    fetch_options    jsonb,                                  -- how sources are asked; may hold secrets: leases alone read it
    asked_anew_at    timestamptz,                            -- when fetch_options or the resolver were changed; older leases have the old ones
    policy           jsonb,                                  -- what is done where the range contract leaves a choice
    resolver         jsonb,                                  -- gives fresh URLs; its headers may hold secrets
    -- How many of its tasks are in each state (I6); adr/0003. Those of the queued ones that are leased are shown as active (adr/0035).
    queued           bigint NOT NULL DEFAULT 0,              -- tasks
    paused           bigint NOT NULL DEFAULT 0,              -- tasks
    finalizing       bigint NOT NULL DEFAULT 0,              -- tasks
    succeeded        bigint NOT NULL DEFAULT 0,              -- tasks
    failed           bigint NOT NULL DEFAULT 0,              -- tasks
    cancelled        bigint NOT NULL DEFAULT 0,              -- tasks
    remaining        bigint NOT NULL GENERATED ALWAYS AS (queued + paused + finalizing) STORED,   -- 0 completes it (I7)
    bytes_done       bigint NOT NULL DEFAULT 0,              -- durable bytes of its tasks
    bytes_total      bigint NOT NULL DEFAULT 0,              -- the sum of the sizes that are known
    unknown_tasks    bigint NOT NULL DEFAULT 0,              -- tasks whose size is not known, but those that failed
    -- A counter of bytes that decays with a time constant of 10 s: `decayed`.
    rate_bytes       double precision NOT NULL DEFAULT 0,    -- its value as of rate_at
    rate_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was last counted on
    -- Sharing with other groups (adr/0008).
    served           bigint NOT NULL DEFAULT 0,              -- bytes charged over weight: the group with the least is next (I15)
    shares_at        integer,                                -- the priority at which `served` is comparable; NULL: to be levelled
    -- How fast one connection of the group is: what leases brought lately.
    lease_bytes      bigint NOT NULL DEFAULT 0,              -- bytes, halved from time to time
    lease_ms         bigint NOT NULL DEFAULT 0,              -- milliseconds for these, halved with them
    doubled_bytes    bigint NOT NULL DEFAULT 0,              -- bytes that doubles may have fetched twice, over all generations (I16)
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

-- What is wished of groups that another transaction has kept locked: the sweep writes it into `desired` when they are free (adr/0015). No
-- foreign key: its check would wait for that lock.
CREATE TABLE wishes (
    group_id  bigint PRIMARY KEY,                            -- the group that was locked
    verb      text NOT NULL,                                 -- what is done to all of the group
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

-- Which groups a group waits for. A row that was satisfied once stays so, whatever becomes of the other group.
CREATE TABLE group_prerequisites (
    group_id        bigint NOT NULL REFERENCES groups ON DELETE CASCADE,   -- the group that waits
    prerequisite_id bigint NOT NULL,                         -- the group that it waits for
    condition       text NOT NULL,                           -- how that one must have ended
    satisfied_at    timestamptz,                             -- when it had; NULL while it has not
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
    not_before       timestamptz,                            -- parked until then, by Retry-After, by an operator (row 25) or by a limit for so many seconds (row 24)
    -- When one lane may try it all the same, since it may have meant one file; NULL where it has not asked to be left alone itself.
    try_at           timestamptz,
    looked_up_to     bigint NOT NULL DEFAULT 0,              -- the last chunk that was looked at for another source while it rests
    cut_at           timestamptz,                            -- when it last cut a body that had come a long way: what it cuts early is no limit
    -- How many lanes it may have after it refused because of too many: `heed_limit`. More are allowed with the time since:
    -- `learned_connections`. NULL: it never refused.
    learned          integer CONSTRAINT origins_learned_positive CHECK (learned > 0),
    learned_at       timestamptz,                            -- from when they count
    limited_at       timestamptz,                            -- when it last refused; shown only
    limited_with     integer,                                -- the status with which it did; NULL for a reset; shown only
    -- The newest fencing token when it last refused. Only a lease with a greater one can halve again, so that a burst of refusals
    -- halves once, whatever becomes of the clock (I11).
    limited_epoch    bigint,
    doubted_at       timestamptz,                            -- since when it refuses what it is asked for, and serves nothing: `is_out`, `refused_all`
    out_since        timestamptz,                            -- since when it refuses connections and serves nothing; NULL: it serves
    serves_again     boolean NOT NULL DEFAULT false,         -- it has served two requests for one file (row 22, adr/0027)
    compared_at      timestamptz,                            -- when a plain GET was last made beside a slow part, to compare them: `try_slow_origins`
    rate_bytes       double precision NOT NULL DEFAULT 0,    -- a decaying counter of bytes, as of rate_at
    answers          double precision NOT NULL DEFAULT 0,    -- a decaying counter of leases that it fulfilled, as of rate_at
    rate_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when they were last counted on
    refusals         double precision NOT NULL DEFAULT 0,    -- a decaying counter of refusals that may be limits, as of refused_at
    refused_at       timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was last counted on
    refused_epoch    bigint,                                 -- the newest fencing token then: what was leased before was asked for beside others
    limits_with      integer[] NOT NULL DEFAULT '{}',        -- the statuses, of 200 (a page), 400, 403 and 404, with which it refused files that it served later, or had served
    refuses_with     integer[] NOT NULL DEFAULT '{}',        -- those with which it refused files for good, at most three times each
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
    state            text NOT NULL DEFAULT 'queued',         -- where it is; one that is leased is `shown_state` active
    desired          text NOT NULL DEFAULT 'run',            -- what its caller wants; kept where it can't be done at once (adr/0010)
    priority         integer NOT NULL DEFAULT 0,             -- higher goes first within its group
    metadata         jsonb,                                  -- the caller's own; given back, never read
    expected_size    bigint,                                 -- in bytes, as the caller says; NULL: any
    expected_digests jsonb,                                  -- {algorithm: hexadecimal}, as the caller says
    content_type     text,                                   -- the media type that the caller expects (row 27)
    fetch_options    jsonb,                                  -- before the group's; may hold secrets: leases alone read it
    mirrors          integer NOT NULL DEFAULT 1,             -- how many sources it has
    time_limit       interval,                               -- how long it may take from when it is added or retried (row 33)
    deadline_at      timestamptz,                            -- when that is over, by the database's clock (I11)
    -- The content version and what is known of it; bytes of two versions never mix.
    version          integer NOT NULL DEFAULT 1,             -- the content version, from 1
    restarts         integer NOT NULL DEFAULT 0,             -- how often the content changed in this run
    planned          boolean NOT NULL DEFAULT false,         -- an answer said what there is, and chunks are cut
    -- How this version is fetched: chunks; stream: one chunk, in one request that a later one can go on from; whole: one plain GET, which
    -- is gone on with where `goes_on` says so. The order of the ladder is that of the alphabet.
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
    earlier          jsonb,                                  -- what a source has shown of a version that was given up since (EarlierVersion; row 27)
    -- Its work.
    chunks_left      integer NOT NULL DEFAULT 1,             -- chunks of this version that are not done (I3)
    bytes_done       bigint NOT NULL DEFAULT 0,              -- bytes of its done chunks
    run              integer NOT NULL DEFAULT 1,             -- counts retries from 1, so that event ids differ
    attempts         integer NOT NULL DEFAULT 0,             -- the most tries in vain of one of its chunks; shown only
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
    -- Equal for tasks of one sink that ask for the same in the same way; NULL where that is not known or not wanted. A task that
    -- succeeded keeps it if its file can be given to others: its CRC and its validators are known.
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
-- Those among which the tasks in trouble of a group are looked for.
CREATE INDEX tasks_by_failure ON tasks (group_id, failure_at)
    WHERE failure_at IS NOT NULL AND state IN ('queued', 'finalizing');
-- Two live tasks never have one destination (I17). The condition is that of `holds_path` (conditions.sql).
CREATE UNIQUE INDEX tasks_destination_unique ON tasks (sink, path)
    WHERE coalesce(state IN ('queued', 'paused', 'finalizing'), false);
-- Which task has put a file at a path last: `had_path_last`.
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
-- `drop_failed` looks for these, step by step.
CREATE INDEX tasks_failed_begun ON tasks (group_id, id) WHERE state = 'failed' AND started_at IS NOT NULL;
-- Made last: of indexes that cost the same, as those of an empty table do, PostgreSQL takes the newest. `tasks_by_state` has the id too, and is read
-- whole for it.
ALTER TABLE tasks ADD PRIMARY KEY (id);

CREATE TABLE sources (
    task_id         bigint NOT NULL,                         -- its task
    ordinal         integer NOT NULL,                        -- its place among the task's sources, from 0
    url             text NOT NULL,                           -- as the caller gave it
    origin_id       bigint NOT NULL,                         -- of that URL
    headers         jsonb,                                   -- the caller's; may hold secrets: leases alone read it
    dead            boolean NOT NULL DEFAULT false,          -- given up until a retry
    rung            text NOT NULL DEFAULT 'chunks',          -- how it is asked, as in tasks: it contradicted the rungs above
    failures        integer NOT NULL DEFAULT 0,              -- how often it failed in a way that says something of it
    failed          integer NOT NULL DEFAULT 0,              -- how often it failed at all, as noted in attempts; shown only
    mismatches      integer NOT NULL DEFAULT 0,              -- how often its content had another digest (row 29)
    differs_in      integer,                                 -- the content version that its own content is not (row 30)
    -- What the resolver said last; goes before url, headers and origin_id (row 21).
    fresh_url       text,                                    -- NULL: the resolver was not asked
    fresh_headers   jsonb,                                   -- may hold secrets: leases alone read it
    fresh_origin_id bigint,                                  -- of fresh_url
    resolved_at     timestamptz,                             -- when that was; shown only
    -- The newest fencing token when the URL was taken for expired: refusals of leases up to it are echoes. No clock tells them apart
    -- as surely (I11).
    stale_epoch     bigint,
    refreshes       integer NOT NULL DEFAULT 0,              -- fresh URLs without progress in between (I12)
    refreshed_bytes bigint,                                  -- how many bytes there were at the last one
    -- Kept for tasks with several sources alone.
    bytes           bigint NOT NULL DEFAULT 0,               -- bytes that came from it
    busy_ms         bigint NOT NULL DEFAULT 0,               -- how long leases on it took together, in milliseconds
    PRIMARY KEY (task_id, ordinal),
    CONSTRAINT sources_rung_known CHECK (rung IN ('chunks', 'stream', 'whole'))
);

-- What was tried and did not succeed: the newest 50 of each task, for its explanation.
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

-- What may be a page in the place of a file: whether it was one shows later, or never (`TaskRecord.isDoubtful`).
CREATE INDEX attempts_with_pages ON attempts (task_id) WHERE coalesce(kind = 'httpStatus(200)', false);

-- Tasks on their way in, until all lines of an upload are valid. Not logged: after a crash of the database the caller sends them again.
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
