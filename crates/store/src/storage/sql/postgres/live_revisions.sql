-- The revisions of all live rows as of a revision, by resource, in key order. Served by objects_by_key alone.
-- Binds: revision.
SELECT resource, array_agg(resource_version)
FROM (SELECT DISTINCT ON (resource, namespace, name) resource, resource_version, deleted
      FROM objects
      WHERE resource_version <= $1
      ORDER BY resource, namespace, name, resource_version DESC) k
WHERE NOT deleted
GROUP BY resource
