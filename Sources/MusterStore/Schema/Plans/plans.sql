-- How claims, reports, sweeps of chunks and verbs on groups are planned. Installed after the functions.
--
-- Their statements are planned once for each connection: planning them for the values of every call takes longer than running them. The plans must be
-- good for a queue of ten chunks or ten million, and whatever the statistics say of a table that was just filled or emptied: so they read few rows,
-- by an index. The settings also apply to all functions that these call.
DO $$
DECLARE
    v_verb text;
BEGIN
    FOREACH v_verb IN ARRAY ARRAY[
        'granted_leases', 'promote_due_chunks', 'release_purges', 'release_repeats', 'report_answer', 'report_contents',
        'report_done', 'report_failures', 'report_progress', 'report_released', 'return_leases', 'sequence_events', 'share_leases',
        'sync_session', 'verb_slice'
    ] LOOP
        EXECUTE format(
            'ALTER FUNCTION %I SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off '
                'SET enable_hashjoin = off SET enable_mergejoin = off', v_verb);
    END LOOP;
END
$$;
