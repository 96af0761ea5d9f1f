-- Binds: resource, revision, namespace, name.
SELECT COUNT(*) FILTER (WHERE NOT deleted)
FROM (SELECT DISTINCT ON (namespace, name) deleted
      FROM objects
      WHERE resource = $1 AND resource_version <= $2 AND (namespace, name) > ($3, $4)
      ORDER BY namespace, name, resource_version DESC) k
