-- The last change before the unit that takes the revision after the given one in etcd's terms. Changes above the watch
-- horizon are counted: let that unit's counted change be the nth one that takes a revision; the changes that take none and
-- come before it are those that have fewer than n counted ones before them. Then a range of the primary key goes back over
-- the changes that share its revision. Binds: watch horizon, its lag, revision in etcd's terms.
WITH uncounted AS (
    SELECT c.resource_version - $1 - ROW_NUMBER() OVER (ORDER BY c.resource_version) AS counted_before
    FROM changes c WHERE c.uncounted IS NOT NULL AND c.resource_version > $1
), wanted (nth) AS (
    SELECT $3 + 1 - ($1 - $2)
), next (revision) AS (
    SELECT $1 + w.nth + (SELECT COUNT(*) FROM uncounted u WHERE u.counted_before < w.nth) FROM wanted w
)
SELECT COALESCE((SELECT c.resource_version FROM changes c
                 WHERE c.resource_version > $1 AND c.resource_version < n.revision
                   AND (c.uncounted IS NULL OR c.uncounted <> 1)
                 ORDER BY c.resource_version DESC LIMIT 1), $1)
FROM next n
