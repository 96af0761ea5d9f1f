-- The clock jumps if the database has begun another timeline since, has come to another cluster, or is known to have been
-- set back; not for the latter if it has jumped over all that this server knows. Updates and locks nothing
-- otherwise; of several servers that notice at once, one does it.
WITH past AS (
    SELECT revision FROM clock
)
UPDATE clock SET
    timeline = {timeline},
    system_identifier = COALESCE({system}, clock.system_identifier),
    revision = CASE
        WHEN clock.timeline <> {timeline} OR clock.system_identifier <> {system} OR ({set_back} AND clock.compacted <= {known})
        THEN GREATEST(clock.revision, {known}) + {gap} ELSE clock.revision END,
    compacted = CASE
        WHEN clock.timeline <> {timeline} OR clock.system_identifier <> {system} OR ({set_back} AND clock.compacted <= {known})
        THEN GREATEST(clock.revision, {known}) + {gap} ELSE clock.compacted END
WHERE clock.timeline IS DISTINCT FROM {timeline}
   OR ({system} IS NOT NULL AND clock.system_identifier IS DISTINCT FROM {system})
   OR ({set_back} AND clock.compacted <= {known})
RETURNING clock.revision, clock.revision >= (SELECT revision FROM past) + {gap}
