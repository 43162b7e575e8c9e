-- When groups may run and how fast, what they wait for, and who still has to let go of what is taken from him. Columns, tables
-- and the questions about them; what is done with them stands in the migrations after this one.

ALTER TABLE groups
    ADD COLUMN bytes_per_second bigint CONSTRAINT groups_rate_positive CHECK (bytes_per_second > 0),
    -- When it may run at all, by local time: over midnight where from > to, always where both are the same.
    ADD COLUMN window_from      time,
    ADD COLUMN window_to        time,
    ADD COLUMN window_zone      text,
    -- [{from, to, timeZone?, bytesPerSecond}]: the first entry whose window is open sets the rate in place of bytes_per_second.
    ADD COLUMN timetable        jsonb,
    ADD COLUMN time_limit       interval,                    -- how long a generation of it may take
    ADD COLUMN deadline_at      timestamptz,                 -- when that is over, by the database's clock (I11)
    ADD COLUMN deadline_action  text NOT NULL DEFAULT 'fail',
    ADD COLUMN overdue          boolean NOT NULL DEFAULT false,  -- its deadline has passed, and what follows from it is under way
    ADD COLUMN held             boolean NOT NULL DEFAULT false,  -- it waits for other groups
    -- At which priority it takes turns with others; NULL or another one: its place among those of its level is to be found.
    ADD COLUMN shares_at        integer,
    ADD CONSTRAINT groups_window_whole CHECK (num_nulls(window_from, window_to, window_zone) IN (0, 3)),
    ADD CONSTRAINT groups_timetable_listed CHECK (jsonb_typeof(timetable) = 'array'),
    ADD CONSTRAINT groups_deadline_action_known CHECK (deadline_action IN ('fail', 'continue')),
    ADD CONSTRAINT groups_overdue_had_deadline CHECK (NOT overdue OR deadline_at IS NOT NULL);

-- What its group was charged for the lease, in bytes; set right when it ends.
ALTER TABLE leases ADD COLUMN charged bigint NOT NULL DEFAULT 0;
ALTER TABLE origins ADD COLUMN bytes_per_second bigint CONSTRAINT origins_rate_positive CHECK (bytes_per_second > 0);
-- The worker's own cap, which it keeps by itself; shown only.
ALTER TABLE sessions ADD COLUMN bytes_per_second bigint CONSTRAINT sessions_rate_positive CHECK (bytes_per_second > 0);

-- Which groups a group waits for. A row that was satisfied once stays so, whatever becomes of the other group.
CREATE TABLE group_prerequisites (
    group_id        bigint NOT NULL REFERENCES groups ON DELETE CASCADE,
    prerequisite_id bigint NOT NULL,
    condition       text NOT NULL,
    satisfied_at    timestamptz,
    PRIMARY KEY (group_id, prerequisite_id),
    -- A group that others still wait for is not removed.
    CONSTRAINT group_prerequisites_in_use FOREIGN KEY (prerequisite_id) REFERENCES groups,
    CONSTRAINT group_prerequisites_condition_known CHECK (condition IN ('succeeded', 'finished')),
    CONSTRAINT group_prerequisites_not_itself CHECK (group_id <> prerequisite_id)
);
CREATE INDEX group_prerequisites_by_prerequisite ON group_prerequisites (prerequisite_id);

-- Leases that were taken from sessions which may still be writing under them (I13). A row goes when a sync of the session says
-- that all writes for the lease have stopped, or with the session. What is left of a task is not deleted before.
CREATE TABLE holdouts (
    epoch      bigint PRIMARY KEY,
    session_id bigint NOT NULL,
    sync       bigint NOT NULL,                              -- the session's sync in whose answer it was granted
    task_id    bigint NOT NULL                               -- no foreign key: a purge outlives its task
);
CREATE INDEX holdouts_by_session ON holdouts (session_id);
CREATE INDEX holdouts_by_task ON holdouts (task_id);

-- Which database this is, whatever becomes of its name and its server: files are marked as those of its tasks (adr/0014).
CREATE TABLE installation (
    id     uuid NOT NULL DEFAULT gen_random_uuid(),
    is_one boolean PRIMARY KEY DEFAULT true,
    CONSTRAINT installation_has_one_row CHECK (is_one)
);
INSERT INTO installation DEFAULT VALUES;

-- What the sweeps look for.
CREATE INDEX groups_by_deadline ON groups (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('open', 'sealed') AND (NOT overdue OR deadline_action = 'fail');
CREATE INDEX groups_held ON groups (id) WHERE held;
CREATE INDEX groups_with_window ON groups (id) WHERE window_from IS NOT NULL AND state IN ('open', 'sealed');
CREATE INDEX ready_chunks_held_purges ON ready_chunks (id) WHERE kind = 'purge' AND status = 'parked';
-- What an explanation of a group looks for.
CREATE INDEX ready_chunks_put_off ON ready_chunks (group_id, not_before) WHERE status = 'waiting';

-- Whether a window of local time is open, now or at another moment. Local time jumps where clocks are changed: what lies between is left
-- out, or comes twice.
CREATE FUNCTION is_open(
    p_from time, p_to time, p_zone text, p_moment timestamptz DEFAULT statement_timestamp()
) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_from = p_to THEN true
        WHEN p_from < p_to THEN (p_moment AT TIME ZONE p_zone)::time >= p_from AND (p_moment AT TIME ZONE p_zone)::time < p_to
        ELSE (p_moment AT TIME ZONE p_zone)::time >= p_from OR (p_moment AT TIME ZONE p_zone)::time < p_to
    END
$$;

-- When it is that time of day next, in a time zone.
CREATE FUNCTION next_time(p_time time, p_zone text, p_moment timestamptz DEFAULT statement_timestamp()) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT ((p_moment AT TIME ZONE p_zone)::date + p_time
        + CASE WHEN (p_moment AT TIME ZONE p_zone)::time < p_time THEN interval '0' ELSE interval '1 day' END)
        AT TIME ZONE p_zone
$$;

-- Whether work of the group may be leased that fetches something. What is fetched already may be put in place at any time.
CREATE FUNCTION group_may_run(g groups) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT g.desired = 'run' AND NOT g.held AND NOT (g.overdue AND g.deadline_action = 'fail')
        AND (g.window_from IS NULL OR is_open(g.window_from, g.window_to, g.window_zone))
$$;

-- How many bytes per second the group may have now; NULL means as many as come.
CREATE FUNCTION group_rate(g groups) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT (e.entry ->> 'bytesPerSecond')::bigint
        FROM jsonb_array_elements(g.timetable) WITH ORDINALITY AS e (entry, n)
        WHERE is_open((e.entry ->> 'from')::time, (e.entry ->> 'to')::time, coalesce(e.entry ->> 'timeZone', g.window_zone, 'UTC'))
        ORDER BY e.n LIMIT 1
    ), g.bytes_per_second)
$$;

-- Whether a group in this state lets those begin that wait for it so.
CREATE FUNCTION satisfies(p_state text, p_condition text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_state = 'succeeded' OR p_condition = 'finished' AND p_state IN ('failed', 'cancelled')
$$;

-- Whether the group is to be cancelled as a whole, and is not yet. It is sealed, and ends as cancelled (adr/0015).
CREATE FUNCTION is_cancelling(g groups) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT g.desired = 'cancel' AND g.state IN ('open', 'sealed')
$$;

-- Whether the group is to be removed as a whole: it only waits for its tasks to be gone, and does not complete any more (adr/0015).
CREATE FUNCTION is_removing(g groups) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT g.desired IN ('remove', 'remove_files')
$$;
