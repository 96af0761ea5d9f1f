-- The newest commit at or before a time, but for the newest of all: the last mark, or a change after it and before the next
-- one. Stamps never decrease as revisions grow, so these are the changes of a second or so. Binds: time.
SELECT m.revision, m.at_ms, c.resource_version, c.committed_ms
FROM (SELECT revision, at_ms FROM marks WHERE at_ms <= $1 ORDER BY at_ms DESC LIMIT 1) m
LEFT JOIN changes c ON c.resource_version = (
    SELECT n.resource_version FROM changes n
    WHERE n.resource_version > m.revision AND n.committed_ms <= $1
      AND n.resource_version <= COALESCE((SELECT MIN(x.revision) FROM marks x WHERE x.revision > m.revision),
                                         (SELECT k.revision FROM clock k))
    ORDER BY n.resource_version DESC LIMIT 1)
