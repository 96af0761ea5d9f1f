-- The changefeed after a revision, with the versions written. A range of the primary key.
-- The clock stands in each row, also in the one row of an empty feed.
-- Binds: revision, limit.
SELECT k.revision, k.compacted, k.lag,
       c.resource_version, c.resource, c.namespace, c.name, c.event, c.previous_version, o.value, NULL::bytea, c.uncounted
FROM clock k
LEFT JOIN LATERAL (SELECT * FROM changes WHERE resource_version > $1 ORDER BY resource_version LIMIT $2) c ON TRUE
LEFT JOIN objects o ON o.resource_version = c.resource_version
ORDER BY c.resource_version
