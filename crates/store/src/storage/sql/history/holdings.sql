-- The resources that have changes, with their floors, the number of their changes, how many of these may have superseded
-- rows of `objects`, the bytes of the values of the oldest 64 such rows, and the bytes of segments. No other value is looked at.
WITH RECURSIVE present (id) AS (
    SELECT MIN(resource) FROM changes
    UNION ALL
    SELECT (SELECT MIN(c.resource) FROM changes c WHERE c.resource > p.id) FROM present p WHERE p.id IS NOT NULL)
SELECT p.id, COALESCE(f.revision, b.revision),
       (SELECT COUNT(*) FROM changes c WHERE c.resource = p.id),
       (SELECT COUNT(*) FROM changes c WHERE c.resource = p.id AND c.resource_version > m.revision),
       (SELECT CAST(COALESCE(SUM(length(o.value)), 0) AS bigint) FROM objects o WHERE o.resource_version IN (
            SELECT c.previous_version FROM changes c
            WHERE c.resource = p.id AND c.resource_version > m.revision ORDER BY c.resource_version LIMIT 64)),
       (SELECT CAST(COALESCE(SUM(s.bytes), 0) AS bigint) FROM segments s WHERE s.resource = p.id)
FROM present p CROSS JOIN segmented m JOIN floors b ON b.resource = 0 LEFT JOIN floors f ON f.resource = p.id
WHERE p.id IS NOT NULL
