WITH holders AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity AS session
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - make_interval(secs => $1)
      AND application_name <> $2
      AND EXISTS (
          SELECT FROM pg_locks AS l
          WHERE l.pid = session.pid AND l.granted AND l.relation = 'clock'::regclass
            AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))
      AND EXISTS (
          SELECT FROM pg_stat_activity AS waiting
          WHERE waiting.wait_event_type = 'Lock' AND session.pid = ANY (pg_blocking_pids(waiting.pid)))
)
SELECT pid FROM holders WHERE pg_terminate_backend(pid)
