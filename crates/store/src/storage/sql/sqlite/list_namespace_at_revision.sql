-- As list_at_revision, within one namespace. Binds: resource, revision, namespace, name, limit.
SELECT o.namespace, o.name, o.resource_version, o.value
FROM (SELECT resource_version, MAX(resource_version), deleted
      FROM objects INDEXED BY objects_by_key
      WHERE resource = ? AND resource_version <= ? AND namespace = ? AND name > ?
      GROUP BY name HAVING NOT deleted
      ORDER BY name LIMIT ?) k
CROSS JOIN objects o ON o.resource_version = k.resource_version
