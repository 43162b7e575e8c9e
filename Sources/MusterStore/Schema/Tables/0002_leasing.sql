-- Chunks and leases: narrow rows that come and go with every chunk.

-- Chunks keep their id as they move between ready_chunks and leases.
CREATE SEQUENCE chunk_ids AS bigint;
-- The lanes of leases (adr/0024).
CREATE SEQUENCE lane_ids AS bigint;
-- The fencing tokens (I1): a later lease of a chunk has a greater epoch, even if transactions roll back.
CREATE SEQUENCE lease_epochs AS bigint;

-- The directory of each sink (adr/0034). A row stays for good; its mark is replaced only if no group uses the sink, or an operator asks for it.
CREATE TABLE sinks (
    name text PRIMARY KEY,                                   -- as groups and workers call it
    mark text NOT NULL                                       -- the mark that the directory carries
);

-- One row for each incarnation of a worker.
CREATE TABLE sessions (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- leases name it
    worker           text NOT NULL,                          -- the worker's name; a restarted worker is a new session
    version          text NOT NULL,                          -- the worker's program; shown only
    labels           jsonb NOT NULL DEFAULT '{}',            -- the worker's own labels; shown only
    slots            integer NOT NULL,                       -- transfers that it runs at once
    sinks            text[] NOT NULL,                        -- the sinks that it reaches
    parked           text[] NOT NULL DEFAULT '{}',           -- its sinks that are in trouble now
    full_sinks       text[] NOT NULL DEFAULT '{}',           -- parked sinks that are full: files can still be deleted there
    sink_status      jsonb NOT NULL DEFAULT '[]',            -- the state of its sinks, as the worker reports it
    bytes_per_second bigint CONSTRAINT sessions_rate_positive CHECK (bytes_per_second > 0),   -- its own cap, which the worker enforces; shown only
    sequence         bigint NOT NULL DEFAULT 0,              -- its newest sync; only that one is granted leases
    draining         boolean NOT NULL DEFAULT false,         -- it gets no more leases, and is to end
    killed           boolean NOT NULL DEFAULT false,         -- it was killed with all of its installation
    rate_bytes       double precision NOT NULL DEFAULT 0,    -- a decaying counter of bytes received, as of rate_at
    rate_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when that counter was last updated
    opened_at        timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it began
    seen_at          timestamptz NOT NULL DEFAULT statement_timestamp(),   -- its last sync, of any number
    expires_at       timestamptz NOT NULL                    -- by the database's clock alone (I11)
) WITH (fillfactor = 50);

-- Sessions that ended without closing, and may still put a file in place or delete one (adr/0017). Every lease in the sink names them, and its holder
-- revokes them first. A row is deleted when a worker reports that it has revoked the session.
CREATE TABLE revocations (
    sink       text NOT NULL,                                -- a sink that the session reached
    session_id bigint NOT NULL,                              -- no foreign key: the session is gone
    PRIMARY KEY (sink, session_id)
);

-- Draining sessions that ended without closing: a worker that wakes up and opens another session is still to leave (I10). A row is deleted after 30
-- days.
CREATE TABLE drained_sessions (
    session_id bigint PRIMARY KEY,                           -- no foreign key: the session is gone
    ended_at   timestamptz NOT NULL DEFAULT statement_timestamp()   -- when it ended
);

-- Chunks that can be leased: now (ready), at a due time or when another task's file is there (waiting), or not before a verb or a sweep releases them
-- (parked).
CREATE TABLE ready_chunks (
    id          bigint PRIMARY KEY DEFAULT nextval('chunk_ids'),   -- the chunk
    -- fetch: bytes; finalize: verify the file and put it in place; purge: delete leftovers; resolve: ask for a fresh URL;
    -- trial: ask whether the origin serves another request for the file.
    kind        text NOT NULL DEFAULT 'fetch',
    task_id     bigint NOT NULL,                             -- no foreign key: a purge outlives its task
    group_id    bigint NOT NULL,                             -- 0 for a purge
    origin_id   bigint NOT NULL,                             -- 0 for work that fetches nothing
    source      integer NOT NULL DEFAULT 0,                  -- the ordinal of the source to fetch from, or to resolve
    sink        text NOT NULL,                               -- only workers that reach it get the lease
    version     integer NOT NULL,                            -- the content version
    first       bigint NOT NULL DEFAULT 0,                   -- its first byte
    last        bigint,                                      -- the byte after its last; NULL for a stream of unknown length
    resume      bigint NOT NULL DEFAULT 0,                   -- the durable offset (I4)
    crc         bigint NOT NULL DEFAULT 0,                   -- CRC32C of [first, resume)
    rank        integer NOT NULL DEFAULT 0,                  -- lower goes first within its group: `chunk_rank`
    status      text NOT NULL DEFAULT 'ready',               -- ready, waiting or parked
    not_before  timestamptz,                                 -- when a waiting chunk is due
    awaits      bigint,                                      -- the task whose file a waiting chunk waits for instead (adr/0013)
    attempts    integer NOT NULL DEFAULT 0,                  -- failures without progress (I12)
    deaths      integer NOT NULL DEFAULT 0,                  -- sessions that died on it without progress (I12)
    moves       smallint NOT NULL DEFAULT 0,                 -- how often it was taken from a slow or silent holder (row 32)
    shrink_asks smallint NOT NULL DEFAULT 0,                 -- how often it was given back to make room, since no byte had come (adr/0024)
    plain       boolean NOT NULL DEFAULT false,              -- it is requested in the ordinary way, even beside a running request (adr/0037)
    may_move    boolean NOT NULL DEFAULT false,              -- its file has several sources, and none has answered (`leave_resting_origins`)
    remove_path text,                                        -- for a purge: the path of a file to delete as well
    remove_size bigint,                                      -- for a purge: the size that this file must have; NULL: any
    remove_group text,                                       -- for a purge of a finished file: the group that was removed with it
    remove_failure text,                                     -- why the last try to delete that file failed
    CONSTRAINT ready_chunks_kind_known CHECK (kind IN ('fetch', 'finalize', 'purge', 'resolve', 'trial')),
    CONSTRAINT ready_chunks_status_known CHECK (status IN ('ready', 'waiting', 'parked')),
    CONSTRAINT ready_chunks_range CHECK (first >= 0 AND (last IS NULL OR last >= first)),
    CONSTRAINT ready_chunks_resume_within CHECK (resume >= first AND (last IS NULL OR resume <= last))
) WITH (fillfactor = 80);

CREATE INDEX ready_chunks_by_rank ON ready_chunks (group_id, origin_id, rank, id) WHERE status = 'ready';
CREATE INDEX ready_chunks_movable ON ready_chunks (origin_id, id) WHERE may_move AND status = 'ready';
CREATE INDEX ready_chunks_purges ON ready_chunks (sink, id) WHERE kind = 'purge' AND status = 'ready';
-- No file is put in place at a path where a deletion is pending (`is_path_disputed`).
CREATE INDEX ready_chunks_deletions ON ready_chunks (sink, remove_path) WHERE remove_path IS NOT NULL;
CREATE INDEX ready_chunks_held_purges ON ready_chunks (id) WHERE kind = 'purge' AND status = 'parked';
CREATE INDEX ready_chunks_removals ON ready_chunks (remove_group) WHERE remove_group IS NOT NULL;
CREATE INDEX ready_chunks_due ON ready_chunks (not_before) WHERE coalesce(status = 'waiting', false);
CREATE INDEX ready_chunks_awaiting ON ready_chunks (id) WHERE coalesce(status = 'waiting' AND awaits IS NOT NULL, false);
-- The explanation of a group looks for these.
CREATE INDEX ready_chunks_put_off ON ready_chunks (group_id, not_before) WHERE coalesce(status = 'waiting', false);
CREATE INDEX ready_chunks_by_task ON ready_chunks (task_id);
-- Checks look for the parts of these.
CREATE INDEX ready_chunks_begun ON ready_chunks (task_id, version) WHERE resume > first;
-- One question at a time per task, whatever the number of workers (rows 21 and 22).
CREATE UNIQUE INDEX ready_chunks_one_question ON ready_chunks (task_id) WHERE kind IN ('resolve', 'trial');

-- Results of deleting the files of removed groups, or of removed tasks of a group (`count_removed`): kept for as long as events are.
CREATE TABLE removed_files (
    group_name text PRIMARY KEY,                             -- the group's name
    deleted    bigint NOT NULL DEFAULT 0,                    -- how many were deleted
    changed    bigint NOT NULL DEFAULT 0,                    -- how many stay, since another file is at the path by now
    missing    bigint NOT NULL DEFAULT 0,                    -- how many were gone already
    at         timestamptz NOT NULL DEFAULT statement_timestamp()   -- when a worker last reported one
) WITH (fillfactor = 50);

-- What is leased now.
CREATE TABLE leases (
    chunk_id        bigint PRIMARY KEY,                      -- I2: a chunk has at most one lease
    epoch           bigint NOT NULL DEFAULT nextval('lease_epochs'),   -- the fencing token (I1)
    session_id      bigint NOT NULL,                         -- the holder
    lane            bigint NOT NULL DEFAULT 0,               -- the connection that it uses, after earlier leases there; 0: none
    sync            bigint NOT NULL,                         -- the session's sync in whose answer it was granted
    kind            text NOT NULL,                           -- as in ready_chunks
    task_id         bigint NOT NULL,                         -- as in ready_chunks
    group_id        bigint NOT NULL,                         -- as in ready_chunks
    origin_id       bigint NOT NULL,                         -- as in ready_chunks
    source          integer NOT NULL,                        -- as in ready_chunks
    sink            text NOT NULL,                           -- as in ready_chunks
    version         integer NOT NULL,                        -- as in ready_chunks
    first           bigint NOT NULL,                         -- as in ready_chunks
    last            bigint,                                  -- as in ready_chunks
    resume          bigint NOT NULL,                         -- where this lease began
    durable         bigint NOT NULL,                         -- the durable offset (I4); never indexed, which keeps updates HOT
    crc             bigint NOT NULL,                         -- CRC32C of [first, durable)
    rank            integer NOT NULL,                        -- as in ready_chunks
    attempts        integer NOT NULL,                        -- as in ready_chunks
    deaths          integer NOT NULL,                        -- as in ready_chunks
    moves           smallint NOT NULL DEFAULT 0,             -- as in ready_chunks
    remove_path     text,                                    -- as in ready_chunks
    remove_size     bigint,                                  -- as in ready_chunks
    remove_group    text,                                    -- as in ready_chunks
    remove_failure  text,                                    -- as in ready_chunks
    charged         bigint NOT NULL DEFAULT 0,               -- what its group was charged for it, in bytes; set right when it ends
    granted_at      timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was granted
    progress_at     timestamptz NOT NULL DEFAULT statement_timestamp(),   -- its last report of progress
    rate_bytes      double precision NOT NULL DEFAULT 0,     -- a decaying counter of its bytes, as of progress_at
    -- The offset at which its holder is asked to end it. If equal to `last`, a part was given back to the chunk: the holder may go on to there
    -- (adr/0037). NULL: not asked, or answered.
    shrink_to       bigint,
    shrink_asked_at timestamptz,                             -- when the holder was last asked; infinity: it is asked no more (adr/0037)
    shrink_asks     smallint NOT NULL DEFAULT 0,             -- how often
    -- For a lease that brings all of a file, since its origin may serve no other request: the size of the chunks that the rest is cut into when the
    -- lease is shrunk (adr/0027).
    tile            bigint CONSTRAINT leases_tile_positive CHECK (tile > 0),
    stated_speed    bigint CONSTRAINT leases_speed_positive CHECK (stated_speed >= 0),   -- bytes per second of its request, as its holder said when it was cut
    reach           bigint,                                  -- where its first request ends, if that may go beyond last (adr/0037)
    pace            bigint,                                  -- the least bytes per second for it beside a running request; NULL: none runs beside it
    reuse_key       bigint,                                  -- its task's, if the lease has the first bytes of the file
    CONSTRAINT leases_durable_within CHECK (durable >= resume AND (last IS NULL OR durable <= last)),
    CONSTRAINT leases_shrink_within CHECK (shrink_to IS NULL OR shrink_to >= first AND shrink_to <= last)
) WITH (fillfactor = 50);

CREATE INDEX leases_deletions ON leases (sink, remove_path) WHERE remove_path IS NOT NULL;
-- Includes the chunk, so that either index alone finds a lease, whichever a plan takes.
CREATE INDEX leases_by_session ON leases (session_id, chunk_id);
CREATE INDEX leases_by_task ON leases (task_id);
CREATE INDEX leases_by_group ON leases (group_id);
CREATE INDEX leases_by_origin ON leases (origin_id, lane);
CREATE INDEX leases_under_way ON leases (reuse_key) WHERE reuse_key IS NOT NULL;
CREATE UNIQUE INDEX leases_one_question ON leases (task_id) WHERE kind IN ('resolve', 'trial');
-- Empty most of the time: it leaves updates of offsets HOT.
CREATE INDEX leases_shrinking ON leases (session_id) WHERE shrink_to IS NOT NULL;

-- Finished chunks, which the finalizer checks (I3); deleted when the task is done.
CREATE TABLE done_chunks (
    task_id bigint NOT NULL,                                 -- its task
    version integer NOT NULL,                                -- the content version
    first   bigint NOT NULL,                                 -- its first byte
    last    bigint NOT NULL,                                 -- the byte after its last
    crc     bigint NOT NULL,                                 -- CRC32C of [first, last)
    PRIMARY KEY (task_id, version, first, last)              -- an empty chunk begins where the next one does
);

-- Leases that were taken from sessions which may still be writing under them (I13). A row is deleted when a sync of the session says that all writes
-- for the lease have stopped, or with the session. While a task has a row here, nothing of it is deleted, and no other task's file is put at its path
-- (I17).
CREATE TABLE holdouts (
    epoch      bigint PRIMARY KEY,                           -- of the lease
    session_id bigint NOT NULL,                              -- the session that held it
    sync       bigint NOT NULL,                              -- the session's sync in whose answer it was granted
    lane       bigint NOT NULL,                              -- the connection that may still be used
    origin_id  bigint NOT NULL,                              -- the origin of that connection; 0: none
    group_id   bigint NOT NULL,                              -- of the lease
    task_id    bigint NOT NULL,                              -- no foreign key: a purge outlives its task
    sink       text NOT NULL,                                -- of the task
    path       text NOT NULL                                 -- where a file may still be put or deleted; empty: nowhere
);
CREATE INDEX holdouts_by_path ON holdouts (sink, path);
CREATE INDEX holdouts_by_session ON holdouts (session_id);
CREATE INDEX holdouts_by_task ON holdouts (task_id);
CREATE INDEX holdouts_by_origin ON holdouts (origin_id);
CREATE INDEX holdouts_by_group ON holdouts (group_id);

-- Each session's share of each byte budget (adr/0009, Verbs/budgets.sql). Not logged: after a crash of the database every session reports the rate
-- that it keeps to, and gets it again as far as the budget allows.
CREATE UNLOGGED TABLE budget_shares (
    budget      text NOT NULL,                               -- group:<name>, origin:<key> or fleet
    session_id  bigint NOT NULL,                             -- the session
    slots       integer NOT NULL,                            -- the session's: sessions that use all they get share in proportion to these
    share       bigint NOT NULL,                             -- what counts against the budget, in bytes per second; 0: it waits for a share
    offer       bigint NOT NULL,                             -- what the session is told; below its share until the session confirms it
    sync        bigint NOT NULL DEFAULT 0,                   -- its newest sync that was taken into account
    used        double precision NOT NULL,                   -- bytes per second that it used lately
    is_short    boolean NOT NULL DEFAULT true,               -- whether it would have used more
    used_at     timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when both were measured
    counted     bigint NOT NULL DEFAULT 0,                   -- bytes that it reported since then
    had_to_wait boolean NOT NULL DEFAULT false,              -- whether one of its transfers has waited for the budget since then
    PRIMARY KEY (budget, session_id),
    CONSTRAINT budget_shares_offer_within CHECK (offer >= 0 AND offer <= share)
) WITH (fillfactor = 50);
CREATE INDEX budget_shares_by_session ON budget_shares (session_id);

-- Bytes received from origins, a row per report, so that a report waits for no lock. A sweep adds them up in the origins' rows. Not logged: after a
-- crash, speeds are unknown for some seconds.
CREATE UNLOGGED TABLE origin_flow (
    origin_id bigint NOT NULL,                               -- the origin
    bytes     bigint NOT NULL,                               -- received from it
    answers   bigint NOT NULL DEFAULT 0,                     -- leases that it fulfilled
    forgave   integer,                                       -- the status with which it had refused one of these files before; NULL: none
    group_id  bigint,                                        -- of the answers; NULL: none
    granted_at timestamptz,                                  -- when the last of their leases was granted
    at        timestamptz NOT NULL DEFAULT statement_timestamp()   -- when they came: rows of a transfer that ended a while ago may still be here
);

-- A claim in progress, as the functions of Verbs/claim.sql pass it to each other. Never stored.
CREATE TYPE claim AS (
    sink        text,                                        -- the sink that is granted for now
    origin_cap  integer,                                     -- connections to an origin that has no cap of its own
    fleet_rate  bigint,                                      -- the fleet's byte budget, in bytes per second; NULL: none
    origins     bigint[],                                    -- the origins whose locks are held: no lease on another origin is granted
    free        integer[],                                   -- how many more lanes each of them may have
    slots       bigint[],                                    -- a session for every lease that may still be granted; sessions take turns
    openings    bigint[],                                    -- a session for every lane that it may still open
    granted     bigint[],                                    -- the chunks that are leased by this claim
    limited     bigint[],                                    -- those of them that a byte budget bounds
    -- The group whose turn it is.
    group_id    bigint,                                      -- the group
    group_name  text,                                        -- its name
    group_rate  bigint,                                      -- its byte budget, in bytes per second; NULL: none
    group_cap   integer,                                     -- lanes that it may have; NULL: any number
    mean        bigint,                                      -- the mean size of its files, where sizes are unknown: `mean_size`
    mixes       boolean,                                     -- whether some of its tasks may be fetched from any of their sources
    room        integer,                                     -- leases that it may still be granted in this turn
    allowance   double precision,                            -- bytes that it may still be granted in this turn; NULL: any
    repeats     boolean,                                     -- whether it has chunks that wait for another task's file since this turn
    spare       text                                         -- what slots to spare are for: trials, newcomers (`grant_spare`); NULL: other slots
);

-- The limits that a coordinator passes to the functions: `Store.Policy`.
CREATE TYPE policy AS (
    first_chunk    bigint,                                   -- the size of a first chunk, in bytes
    origin_cap     integer,                                  -- connections to an origin that has no cap of its own
    session_cap    integer,                                  -- leases of one session
    fleet_rate     bigint,                                   -- the fleet's byte budget, in bytes per second; NULL: none
    shrink_unit    bigint,                                   -- ends of shortened chunks are multiples of it, in bytes
    minimum_shrink bigint,                                   -- the least that is cut off a running chunk, in bytes
    max_attempts   integer,                                  -- number of tries without progress after which a task fails
    max_restarts   integer,                                  -- number of content versions that a task may have
    max_deaths     integer,                                  -- number of sessions that may die on a chunk
    base_ms        bigint                                    -- the first backoff
);

-- A lease that failed, and the limits that apply to it.
CREATE TYPE failure AS (
    session_id   bigint,                                     -- the session that reports
    chunk_id     bigint,                                     -- the lease's chunk
    epoch        bigint,                                     -- the lease's epoch
    durable      bigint,                                     -- the durable offset
    crc          bigint,                                     -- CRC32C up to there
    rule         text,                                       -- the retry rule of the failure's kind
    kind         text,                                       -- the kind
    detail       text,                                       -- what was seen
    source       integer,                                    -- the ordinal of the source
    retry_after  bigint,                                     -- the origin's Retry-After, in seconds
    status       integer,                                    -- the answer's status, if there was one
    request      text,                                       -- the origin's name for the request
    address      text,                                       -- the peer's address
    limit_signal text,                                       -- whether it is a sign of too much at once: none, possible, certain, refuted, unserved
    limit_seconds integer,                                   -- seconds since the origin last served anything after which this is no limit any more
    is_expiry    boolean,                                    -- whether an expired URL may be refused like this
    random       double precision,                           -- within [0, 1): sets the jitter
    max_attempts integer,                                    -- as in the policy, or what applies to the kind instead
    unreached_attempts integer,                              -- the same if no peer was reached and the origin has not served lately; NULL: one was reached
    is_unanswered boolean,                                   -- whether the connection ended before an answer, while its worker fetched nothing else there
    is_elsewhere boolean,                                    -- whether another origin answered, to which redirects led
    served       integer,                                    -- how many requests its worker has seen the origin serve at once lately
    maximum_ms   bigint,                                     -- the longest backoff
    policy       policy,                                     -- the coordinator's limits
    sources      integer                                     -- number of sources that the chunk's tries go round
);

-- What a report says of a file: at its path (`report_contents`), or in the first response (`report_answer`), which knows nothing of the last five.
CREATE TYPE content AS (
    session_id    bigint,                                    -- the session that reports
    chunk_id      bigint,                                    -- the lease's chunk
    epoch         bigint,                                    -- the lease's epoch
    size          bigint,                                    -- the file's size, in bytes
    etag          text,                                      -- the ETag of the response
    last_modified text,                                      -- the Last-Modified of the response
    date_strong   boolean,                                   -- whether that is a strong validator
    stated        jsonb,                                     -- the digests that the response stated
    url           text,                                      -- where the response came from, after redirects
    digests       jsonb,                                     -- the digests of the file
    path          text,                                      -- the file's path; NULL: the task's
    crc           bigint,                                    -- CRC32C of the whole file; NULL: the worker does not know it
    reused        text,                                      -- the path of the file that it was copied from; NULL: it was fetched
    unasked       boolean                                    -- whether it was at its path already, and no origin was asked
);
