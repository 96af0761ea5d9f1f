-- The clock jumps if the database has begun another timeline since. Updates and locks nothing if it has not; of several
-- servers that notice at once, one does it. The name of a WAL file begins with the timeline; a standby has none, and
-- the statement fails there. Binds: the gap.
WITH present AS (
    SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS timeline
), past AS (
    SELECT timeline FROM clock
)
UPDATE clock SET
    timeline = present.timeline,
    revision = CASE WHEN clock.timeline IS NULL THEN revision ELSE revision + $1 END,
    compacted = CASE WHEN clock.timeline IS NULL THEN compacted ELSE revision + $1 END
FROM present
WHERE clock.timeline IS DISTINCT FROM present.timeline
RETURNING (SELECT timeline FROM past), present.timeline, revision
