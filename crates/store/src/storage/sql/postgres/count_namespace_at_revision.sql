-- Binds: resource, revision, namespace, name.
SELECT COUNT(*) FILTER (WHERE NOT deleted)
FROM (SELECT DISTINCT ON (name) deleted
      FROM objects
      WHERE resource = $1 AND resource_version <= $2 AND namespace = $3 AND name > $4
      ORDER BY name, resource_version DESC) k
