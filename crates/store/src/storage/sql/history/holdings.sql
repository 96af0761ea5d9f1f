-- The resources that have changes, with their floors, the number of their changes, and the bytes of the versions that the
-- oldest 64 of these have superseded. Values are looked at for these alone; all else is in changes_by_resource.
WITH RECURSIVE present (id) AS (
    SELECT MIN(resource) FROM changes
    UNION ALL
    SELECT (SELECT MIN(c.resource) FROM changes c WHERE c.resource > p.id) FROM present p WHERE p.id IS NOT NULL)
SELECT p.id, COALESCE(f.revision, b.revision),
       (SELECT COUNT(*) FROM changes c WHERE c.resource = p.id),
       (SELECT COALESCE(SUM(length(o.value)), 0) FROM objects o WHERE o.resource_version IN (
            SELECT c.previous_version FROM changes c WHERE c.resource = p.id ORDER BY c.resource_version LIMIT 64))
FROM present p JOIN floors b ON b.resource = 0 LEFT JOIN floors f ON f.resource = p.id
WHERE p.id IS NOT NULL
