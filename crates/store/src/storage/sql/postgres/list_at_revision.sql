-- Live rows of a resource as of a revision, in key order. The inner query is served by objects_by_key alone.
-- Binds: resource, revision, namespace, name, limit.
SELECT o.namespace, o.name, o.resource_version, o.value
FROM (SELECT DISTINCT ON (namespace, name) namespace, name, resource_version, deleted
      FROM objects
      WHERE resource = $1 AND resource_version <= $2 AND (namespace, name) > ($3, $4)
      ORDER BY namespace, name, resource_version DESC) k
JOIN objects o ON o.resource_version = k.resource_version
WHERE NOT k.deleted
ORDER BY k.namespace, k.name
LIMIT $5
