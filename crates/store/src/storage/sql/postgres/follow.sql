-- The clock jumps if the database has begun another timeline since, has come to another cluster, or is known to have been
-- set back ($5); not for the latter if it has jumped over all that this server knows ($4). Updates and locks nothing
-- otherwise; of several servers that notice at once, one does it.
-- Binds: the gap, timeline, system identifier or NULL, the newest revision known here, whether it has been set back.
WITH past AS (
    SELECT revision FROM clock
)
UPDATE clock SET
    timeline = $2,
    system_identifier = COALESCE($3, clock.system_identifier),
    revision = CASE
        WHEN clock.timeline <> $2 OR clock.system_identifier <> $3 OR ($5 AND clock.compacted <= $4)
        THEN GREATEST(clock.revision, $4) + $1 ELSE clock.revision END,
    compacted = CASE
        WHEN clock.timeline <> $2 OR clock.system_identifier <> $3 OR ($5 AND clock.compacted <= $4)
        THEN GREATEST(clock.revision, $4) + $1 ELSE clock.compacted END
WHERE clock.timeline IS DISTINCT FROM $2
   OR ($3 IS NOT NULL AND clock.system_identifier IS DISTINCT FROM $3)
   OR ($5 AND clock.compacted <= $4)
RETURNING clock.revision, clock.revision >= (SELECT revision FROM past) + $1
