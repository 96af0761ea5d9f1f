-- How many rows stale_rows finds from the first key on.
-- Binds: resource, newest revision, api version, whether values begin so, first bytes.
SELECT COUNT(*)
FROM objects o
WHERE o.resource = $1 AND o.resource_version <= $2 AND NOT o.deleted
  AND (o.stored_version <> $3 OR (substr(o.value, 1, length($5)) = $5) <> $4)
  AND NOT EXISTS (SELECT 1 FROM objects n
                  WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
                    AND n.resource_version > o.resource_version)
