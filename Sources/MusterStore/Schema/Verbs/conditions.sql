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
