-- Changes between two revisions, the oldest first. Binds: first revision, last revision, limit.
SELECT resource_version, resource, namespace, name FROM changes
WHERE resource_version > $1 AND resource_version <= $2 ORDER BY resource_version LIMIT $3
