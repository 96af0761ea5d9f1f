-- Whose connection this is, where the cluster stands, and what the clock remembers of that. The name of a WAL file begins
-- with the timeline. A standby has neither. What is flushed has survived any crash since; what is merely written may not.
SELECT pg_backend_pid(),
       (SELECT a.backend_start::text FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()),
       CASE WHEN NOT here.standby
            THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END,
       CASE WHEN NOT here.standby THEN (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint END,
       clock.revision, clock.timeline, clock.system_identifier, clock.identity, clock.made
FROM clock, (SELECT pg_is_in_recovery() AS standby) here
