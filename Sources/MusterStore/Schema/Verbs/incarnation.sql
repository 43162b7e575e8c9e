-- Databases that lose commits: after an asynchronous failover or a restore, numbers would be given out again, and a worker's report about the lost
-- past would be taken for one about the present (I1).

-- The history that the server writes to: the identifier of its cluster, and the number of its timeline, which every promotion and every restore to a
-- point in time raises. No row on a standby.
CREATE FUNCTION database_timeline() RETURNS TABLE (cluster text, number bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pg_is_in_recovery() THEN RETURN; END IF;
    RETURN QUERY SELECT c.system_identifier::text, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint FROM pg_control_system() AS c;
END
$$;

-- Names a database and its past: by its cluster, its timeline and its OID in the cluster. Its id tells it from other copies of the same template.
CREATE FUNCTION database_incarnation() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT concat_ws('.', t.cluster, t.number, d.oid, i.id)
    FROM installation AS i, database_timeline() AS t, pg_database AS d WHERE d.datname = current_database()
$$;

-- The number from which a sequence goes on in a new incarnation: 2^20 for each second since 1970, and at least 2^30 beyond what is known. Nothing is
-- counted as fast as that, so it is beyond all lost numbers, also beyond those of an incarnation that was lost itself, as when one backup is restored twice.
-- It stays below 2^53, up to which JSON numbers are exact everywhere, for two centuries.
CREATE FUNCTION beyond_lost(p_last bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT greatest(coalesce(p_last, 0) + (1::bigint << 30), (extract(epoch FROM statement_timestamp()) * (1 << 20))::bigint)
$$;

-- Every connection calls it before anything else. If the database is another incarnation than at its last use, all sessions end, and all sequences go
-- on beyond any number that could have been lost: no session, epoch, chunk or task has the number of another one. A group in the
-- backup counts its generations again; so the ids of new events end in a mark, and differ from those of events that were sent and lost. If the files
-- of the database are restored as they were, nothing shows it; the operator has to say so (docs/operations.md).
CREATE FUNCTION enter_incarnation() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now text;
    v_known text;
BEGIN
    -- Every database has this row since its table was made: if it is gone, files of the database are damaged, whatever else they contain.
    IF NOT EXISTS (SELECT 1 FROM event_log) THEN
        RAISE EXCEPTION 'the only row of the table event_log is gone' USING ERRCODE = 'data_corrupted';
    END IF;
    -- The first use gives the database its id. If two connections come first at once, one of them inserts it.
    IF NOT EXISTS (SELECT 1 FROM installation) THEN INSERT INTO installation DEFAULT VALUES ON CONFLICT DO NOTHING; END IF;
    v_now := database_incarnation();
    IF EXISTS (SELECT 1 FROM installation WHERE incarnation = v_now) THEN RETURN; END IF;
    -- Another connection may have done it meanwhile.
    SELECT incarnation INTO v_known FROM installation FOR UPDATE;
    IF v_known IS NOT DISTINCT FROM v_now THEN RETURN; END IF;
    IF v_known IS NOT NULL THEN
        PERFORM setval(format('%I.%I', q.schemaname, q.sequencename)::regclass, beyond_lost(q.last_value))
        FROM pg_sequences q JOIN pg_class t ON t.oid = 'installation'::regclass AND q.schemaname = t.relnamespace::regnamespace::text;
        -- The sweep takes back their leases. Until then the leases have epochs that no worker has heard of.
        PERFORM end_sessions(ARRAY (SELECT id FROM sessions ORDER BY id));
        UPDATE leases SET epoch = nextval('lease_epochs');
        -- Staged tasks have ids of the past already.
        DELETE FROM staged_tasks;
    END IF;
    UPDATE installation SET incarnation = v_now, log = CASE WHEN v_known IS NULL THEN log ELSE gen_random_uuid() END;
    UPDATE installation SET event_mark = '-' || left(log::text, 8) WHERE v_known IS NOT NULL;
END
$$;
