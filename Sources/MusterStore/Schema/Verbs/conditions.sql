-- Conditions that the planner does not see through.
--
-- An index with a condition can be read whole for a query that implies the condition, whatever else the query asks. A plan that was made while
-- the index was empty takes it before the right one, since nothing is cheaper to read than nothing, and goes on when it has millions of entries.
-- So conditions of indexes that may grow are written with `coalesce`, and a query finds such an index by one of these functions alone; and a query
-- that looks for rows by their ids asks for their state by one of these, which is the condition of no index. They are written into the
-- statements that call them.

-- Whether a task in this state has its path to itself: the condition of `tasks_destination_unique`.
CREATE FUNCTION holds_path(p_state text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(p_state IN ('queued', 'paused', 'finalizing'), false)
$$;

-- Whether a task in this state has put a file in its place: the condition of `tasks_placed`.
CREATE FUNCTION is_placed(p_state text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_state = 'succeeded', false) $$;

-- Whether a chunk waits: the condition of `ready_chunks_due` and `ready_chunks_put_off`.
CREATE FUNCTION is_waiting(p_status text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_status = 'waiting', false) $$;

-- Whether a chunk waits for another task's file: the condition of `ready_chunks_awaiting`.
CREATE FUNCTION is_awaiting(p_status text, p_awaits bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_status = 'waiting' AND p_awaits IS NOT NULL, false) $$;

-- Whether a chunk that is looked for by its task or its id may be leased; no index has this condition.
CREATE FUNCTION is_ready(p_status text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_status = 'ready', false) $$;

-- Whether a group that is looked for by its id is not finished; no index has this condition.
CREATE FUNCTION is_unfinished(p_state text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(p_state IN ('open', 'sealed'), false) $$;

-- Whether a row, which is named first, has an id that the query has from another row. The planner reaches such rows by their ids alone: a join that is
-- written with `=` can be turned round, and begins with all of a table where that is taken for an empty one (plans.sql). What else of such a row is
-- compared is written with IS NOT DISTINCT FROM where an index is of it.
CREATE FUNCTION has_id(p_row bigint, p_id bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p_row = ANY (ARRAY[p_id]) $$;

-- A row by its id, in a query that has the id from another row. Such a join can be turned round, or made over what the rows have in common: a plan
-- that takes a table for a small one begins with all of it. OFFSET 0 lets a row be reached by its id alone.

-- A task by its id.
CREATE FUNCTION task_of(p_id bigint) RETURNS SETOF tasks
LANGUAGE sql STABLE ROWS 1 AS $$ SELECT * FROM tasks WHERE id = p_id OFFSET 0 $$;

-- A group by its id.
CREATE FUNCTION group_of(p_id bigint) RETURNS SETOF groups
LANGUAGE sql STABLE ROWS 1 AS $$ SELECT * FROM groups WHERE id = p_id OFFSET 0 $$;

-- An origin by its id.
CREATE FUNCTION origin_of(p_id bigint) RETURNS SETOF origins
LANGUAGE sql STABLE ROWS 1 AS $$ SELECT * FROM origins WHERE id = p_id OFFSET 0 $$;

-- The sources of a task.
CREATE FUNCTION sources_of(p_task bigint) RETURNS SETOF sources
LANGUAGE sql STABLE ROWS 1 AS $$ SELECT * FROM sources WHERE task_id = p_task OFFSET 0 $$;

-- A source by its task and its place there.
CREATE FUNCTION source_of(p_task bigint, p_ordinal integer) RETURNS SETOF sources
LANGUAGE sql STABLE ROWS 1 AS $$ SELECT * FROM sources WHERE task_id = p_task AND ordinal = p_ordinal OFFSET 0 $$;
