-- As changes, of one resource, with the versions replaced; a range of changes_by_resource. Binds: revision, resource, limit.
SELECT k.revision, k.compacted, k.lag,
       c.resource_version, c.resource, c.namespace, c.name, c.event, c.previous_version, o.value, p.value, c.uncounted
FROM clock k
LEFT JOIN LATERAL (SELECT * FROM changes WHERE resource_version > $1 AND resource = $2 ORDER BY resource_version LIMIT $3) c ON TRUE
LEFT JOIN objects o ON o.resource_version = c.resource_version
LEFT JOIN objects p ON p.resource_version = c.previous_version
ORDER BY c.resource_version
