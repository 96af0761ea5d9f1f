-- Rows of a key up to a revision, the oldest first. Binds: resource, namespace, name, revision, limit.
SELECT resource_version, deleted, uid, stored_version, value FROM objects
WHERE resource = $1 AND namespace = $2 AND name = $3 AND resource_version <= $4
ORDER BY resource_version LIMIT $5
