-- Live rows of a resource in another encoding, in key order: a range of objects_by_key, whose rows are looked at.
-- Binds: resource, namespace, name, newest revision, api version, whether values begin so, first bytes, limit.
SELECT o.namespace, o.name, o.resource_version
FROM objects o
WHERE o.resource = $1 AND (o.namespace, o.name) > ($2, $3) AND o.resource_version <= $4 AND NOT o.deleted
  AND (o.stored_version <> $5 OR (substr(o.value, 1, length($7)) = $7) <> $6)
  AND NOT EXISTS (SELECT 1 FROM objects n
                  WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
                    AND n.resource_version > o.resource_version)
ORDER BY o.namespace, o.name
LIMIT $8
