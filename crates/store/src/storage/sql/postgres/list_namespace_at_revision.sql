-- As list_at_revision, within one namespace. Binds: resource, revision, namespace, name, limit.
SELECT o.namespace, o.name, o.resource_version, o.value
FROM (SELECT DISTINCT ON (name) name, resource_version, deleted
      FROM objects
      WHERE resource = $1 AND resource_version <= $2 AND namespace = $3 AND name > $4
      ORDER BY name, resource_version DESC) k
JOIN objects o ON o.resource_version = k.resource_version
WHERE NOT k.deleted
ORDER BY k.name
LIMIT $5
