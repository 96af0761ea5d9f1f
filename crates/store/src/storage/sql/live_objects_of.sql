-- The live objects of a resource, the same on both databases, in key order. Served by objects_by_key.
-- Binds: group, plural.
SELECT r.api_group, r.plural, o.namespace, o.name, o.resource_version, o.uid, o.stored_version, o.value
FROM resources r JOIN objects o ON o.resource = r.id
WHERE r.api_group = $1 AND r.plural = $2 AND NOT o.deleted AND NOT EXISTS (
    SELECT 1 FROM objects n
    WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
      AND n.resource_version > o.resource_version)
ORDER BY o.namespace, o.name
