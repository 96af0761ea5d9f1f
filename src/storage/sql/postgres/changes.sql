-- The changefeed after a revision, with the versions it speaks of. A range of the primary key.
-- Binds: revision, limit.
SELECT c.resource_version, c.resource, c.namespace, c.name, c.event, c.previous_version, o.value, p.value
FROM (SELECT * FROM changes WHERE resource_version > $1 ORDER BY resource_version LIMIT $2) c
JOIN objects o ON o.resource_version = c.resource_version
LEFT JOIN objects p ON p.resource_version = c.previous_version
ORDER BY c.resource_version
