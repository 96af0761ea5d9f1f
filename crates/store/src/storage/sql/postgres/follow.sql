-- The clock jumps if the database has begun another timeline since, has come to another cluster, or is known to have been
-- set back; not for the latter if it has jumped over all that this server knows. Updates and locks nothing
-- otherwise; of several servers that notice at once, one does it. The past begins behind a jump: what was lost before it
-- cannot be told from what never was.
WITH past AS (
    SELECT revision FROM clock
), moved AS (
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
    RETURNING clock.revision, clock.revision >= (SELECT revision FROM past) + {gap} AS has_jumped
), raised AS (
    UPDATE floors SET revision = moved.revision FROM moved WHERE moved.has_jumped
)
SELECT revision, has_jumped FROM moved
