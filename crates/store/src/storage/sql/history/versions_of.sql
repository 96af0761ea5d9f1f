-- Versions of one key in `objects` below a revision, newest first: those after the resource's floor, and the one that was live there.
-- Binds: resource, namespace, name, revision, floor, limit.
SELECT o.namespace, o.name, o.resource_version, o.value, o.deleted,
       CASE WHEN o.deleted THEN COALESCE(p.uid,
            (SELECT s.uid FROM segments s
             WHERE s.resource = $1 AND s.namespace = $2 AND s.name = $3 AND s.end_version = o.resource_version), '')
            ELSE o.uid END,
       c.event, c.previous_version, c.committed_ms,
       w.username, w.impersonator, w.verb, w.subresource, w.manager, w.client
FROM objects o
LEFT JOIN changes c ON c.resource_version = o.resource_version
LEFT JOIN objects p ON p.resource_version = c.previous_version
LEFT JOIN writers w ON w.id = c.writer
WHERE o.resource = $1 AND o.namespace = $2 AND o.name = $3 AND o.resource_version < $4
  AND (o.resource_version > $5 OR NOT o.deleted AND o.resource_version = (
          SELECT MAX(f.resource_version) FROM objects f
          WHERE f.resource = $1 AND f.namespace = $2 AND f.name = $3 AND f.resource_version <= $5))
ORDER BY o.resource_version DESC
LIMIT $6
