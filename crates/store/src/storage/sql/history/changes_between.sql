-- Changes between two revisions, newest first: those after their resources' floors. A range of the primary key.
-- Binds: namespace, first revision, last revision, limit.
SELECT c.resource_version, c.resource, c.namespace, c.name, c.event, c.previous_version, c.committed_ms,
       COALESCE(CASE WHEN c.event = 2 THEN p.uid ELSE o.uid END,
                (SELECT s.uid FROM segments s
                 WHERE s.resource = c.resource AND s.namespace = c.namespace AND s.name = c.name
                   AND s.first_version <= CASE WHEN c.event = 2 THEN c.previous_version ELSE c.resource_version END
                   AND s.end_version > CASE WHEN c.event = 2 THEN c.previous_version ELSE c.resource_version END), ''),
       w.username, w.impersonator, w.verb, w.subresource, w.manager, w.client
FROM (SELECT n.* FROM changes n
      WHERE n.resource_version > $2 AND n.resource_version < $3 AND ($1 IS NULL OR n.namespace = $1)
        AND n.resource_version > COALESCE((SELECT f.revision FROM floors f WHERE f.resource = n.resource),
                                          (SELECT b.revision FROM floors b WHERE b.resource = 0))
      ORDER BY n.resource_version DESC LIMIT $4) c
LEFT JOIN objects o ON o.resource_version = c.resource_version
LEFT JOIN objects p ON p.resource_version = c.previous_version
LEFT JOIN writers w ON w.id = c.writer
ORDER BY c.resource_version DESC
