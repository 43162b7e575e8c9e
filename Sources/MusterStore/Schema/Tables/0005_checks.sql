-- Checks of the database against the sinks (adr/0048): what `muster fsck` asked for, how far each sink is, and what was found.

CREATE TABLE checks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- requests name it
    deep        boolean NOT NULL,                            -- finished files are read, and compared with their checksums
    repair      boolean NOT NULL,                            -- what is safe is repaired
    sinks       text[] NOT NULL,                             -- the sinks that are looked at
    looks       smallint NOT NULL DEFAULT 0,                 -- how often the rows of the database were looked at; two looks are needed
    looked_at   timestamptz,                                 -- when they were last looked at
    failure     text,                                        -- why the rows could not be looked at
    is_cut      boolean NOT NULL DEFAULT false,              -- more rows contradict each other than are kept as findings
    stopped     boolean NOT NULL DEFAULT false,              -- it was ended before it was complete
    begun_at    timestamptz NOT NULL DEFAULT statement_timestamp(),   -- when it was asked for
    finished_at timestamptz,                                 -- when it ended; NULL while it has not
    CONSTRAINT checks_looks_counted CHECK (looks BETWEEN 0 AND 2)
);
-- One check at a time: two would read the sinks twice.
CREATE UNIQUE INDEX checks_one_runs ON checks ((true)) WHERE finished_at IS NULL;

-- How far a check is in a sink. A session holds the row as it holds a lease, but without any right to write.
CREATE TABLE check_walks (
    check_id    bigint NOT NULL REFERENCES checks ON DELETE CASCADE,   -- the check
    sink        text NOT NULL,                               -- the sink
    phase       text NOT NULL DEFAULT 'files',               -- files, parts, names, done: what is looked at, in this order
    session_id  bigint,                                      -- the holder, no foreign key: another session follows one that is gone; NULL: none
    epoch       bigint NOT NULL DEFAULT 0,                   -- the fencing token: a report of an earlier holder changes nothing
    step        bigint NOT NULL DEFAULT 1,                   -- the page that is looked at
    -- The place after which the page begins. files: a path and a task; parts: a task; names: a name.
    after_path  text NOT NULL DEFAULT '',                    -- the path, or the name
    after_task  bigint NOT NULL DEFAULT 0,                   -- the task
    upto_path   text,                                        -- where the page ends that was given out; NULL: none was, or it has no path
    upto_task   bigint,                                      -- the same; NULL: no page was given out
    suspects    jsonb,                                       -- names that no row explains, to be looked at again; NULL: none
    is_last     boolean NOT NULL DEFAULT false,              -- whether all names were listed
    files       bigint NOT NULL DEFAULT 0,                   -- finished files that were looked at
    parts       bigint NOT NULL DEFAULT 0,                   -- parts that were looked at
    bytes       bigint NOT NULL DEFAULT 0,                   -- bytes of files that were read
    unproven    bigint NOT NULL DEFAULT 0,                   -- files of a deep check of which no checksum is known
    is_cut      boolean NOT NULL DEFAULT false,              -- more names were listed than a report can have
    PRIMARY KEY (check_id, sink),
    CONSTRAINT check_walks_phase_known CHECK (phase IN ('files', 'parts', 'names', 'done'))
);

CREATE TABLE check_findings (
    check_id   bigint NOT NULL REFERENCES checks ON DELETE CASCADE,   -- the check
    serial     bigint GENERATED ALWAYS AS IDENTITY,          -- the order
    kind       text NOT NULL,                                -- one of MusterCore's FindingKind
    sink       text NOT NULL DEFAULT '',                     -- the sink; empty: the database
    subject    text NOT NULL,                                -- a path, a name below .muster, or what the rows are about
    task_id    bigint,                                       -- the task; no foreign key: it may be removed
    version    integer,                                      -- its content version
    run        integer,                                      -- its run
    group_name text,                                         -- its group
    key        text,                                         -- its key
    detail     text NOT NULL,                                -- what was seen
    -- seen: one look saw it, another one has to; pending: to be repaired, or left as it is if the check has ended; repaired; found: left as it is.
    outcome    text NOT NULL,
    PRIMARY KEY (check_id, serial),
    -- A report that comes twice has one effect.
    CONSTRAINT check_findings_once UNIQUE (check_id, kind, sink, subject),
    CONSTRAINT check_findings_outcome_known CHECK (outcome IN ('seen', 'pending', 'repaired', 'found'))
);
