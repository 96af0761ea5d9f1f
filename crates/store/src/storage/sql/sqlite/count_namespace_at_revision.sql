-- Binds: resource, revision, namespace, name.
SELECT COUNT(*) FROM (
    SELECT MAX(resource_version), deleted FROM objects INDEXED BY objects_by_key
    WHERE resource = ? AND resource_version <= ? AND namespace = ? AND name > ?
    GROUP BY name HAVING NOT deleted)
