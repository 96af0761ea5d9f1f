-- The changes with these revisions.
SELECT c.resource_version, c.event, c.previous_version, c.committed_ms,
       w.username, w.impersonator, w.verb, w.subresource, w.manager, w.client
FROM changes c LEFT JOIN writers w ON w.id = c.writer
WHERE c.resource_version IN ($1)
