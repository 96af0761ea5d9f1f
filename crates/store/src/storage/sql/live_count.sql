-- How many live objects there are, the same on both databases. Served by objects_by_key alone.
SELECT COUNT(*)
FROM objects o
WHERE NOT o.deleted AND NOT EXISTS (
    SELECT 1 FROM objects n
    WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
      AND n.resource_version > o.resource_version)
