-- Conditions that hide partial indexes from the planner.
--
-- The planner can read all of a partial index for a query that implies its condition, whatever else the query asks. A plan that was made while the
-- index was empty prefers it to the right index, since an empty index is the cheapest to read, and is kept when the index has millions of entries. So
-- conditions of indexes that may grow are written with `coalesce`, and a query can use such an index only through one of these functions. A query
-- that looks for rows by their ids checks their state through a function that is the condition of no index. PostgreSQL inlines all of them.

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

-- Whether a row, whose id is named first, has an id that the query has from another row. The planner can reach such rows only by their ids: a join
-- with `=` can be reversed, and then begins with all of a table that is taken for an empty one (plans.sql). Other columns of such a row that have an
-- index are compared with IS NOT DISTINCT FROM.
CREATE FUNCTION has_id(p_row bigint, p_id bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p_row = ANY (ARRAY[p_id]) $$;

-- Functions for rows by their ids, in a query that has the id from another row. A plain join can be reversed, or made over other columns that the
-- rows have in common: a plan that takes a table for a small one begins with all of it. With OFFSET 0 a row can be reached only by its id.

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
