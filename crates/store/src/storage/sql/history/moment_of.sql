-- When a revision was committed: the stamp of its change, and the marks before and after it. Binds: revision.
SELECT (SELECT c.committed_ms FROM changes c WHERE c.resource_version = $1),
       (SELECT m.at_ms FROM marks m WHERE m.revision <= $1 ORDER BY m.revision DESC LIMIT 1),
       (SELECT m.at_ms FROM marks m WHERE m.revision >= $1 ORDER BY m.revision LIMIT 1)
