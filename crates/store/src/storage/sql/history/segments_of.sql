-- Segments of a key that begin before a revision and end after another, the newest first. Binds: resource, namespace, name,
-- before, after, limit.
SELECT end_version, uid, stored_version, format, value FROM segments
WHERE resource = $1 AND namespace = $2 AND name = $3 AND first_version < $4 AND end_version > $5
ORDER BY end_version DESC LIMIT $6
