-- All live objects, the same on both databases. The index objects_by_key answers the inner question; rows come in the
-- order of the table's key.
SELECT r.api_group, r.plural, o.namespace, o.name, o.resource_version, o.uid, o.stored_version, o.value
FROM objects o JOIN resources r ON r.id = o.resource
WHERE NOT o.deleted AND NOT EXISTS (
    SELECT 1 FROM objects n
    WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
      AND n.resource_version > o.resource_version)
ORDER BY o.resource_version
