-- The newest version of a key at a revision, which may be a deletion. Binds: resource, namespace, name, revision.
SELECT namespace, name, resource_version, value, deleted
FROM objects
WHERE resource = $1 AND namespace = $2 AND name = $3 AND resource_version <= $4
ORDER BY resource_version DESC LIMIT 1
