-- The changefeed after a revision, with the versions written. A range of the primary key.
-- Binds: revision, limit.
SELECT c.resource_version, c.resource, c.namespace, c.name, c.event, c.previous_version, o.value, NULL, c.uncounted
FROM (SELECT * FROM changes WHERE resource_version > ? ORDER BY resource_version LIMIT ?) c
CROSS JOIN objects o ON o.resource_version = c.resource_version
ORDER BY c.resource_version
