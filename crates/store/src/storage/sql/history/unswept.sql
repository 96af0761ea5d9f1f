-- Changes at or below the floors of their resources. Ranges of changes_by_resource.
WITH RECURSIVE present (id) AS (
    SELECT MIN(resource) FROM changes
    UNION ALL
    SELECT (SELECT MIN(c.resource) FROM changes c WHERE c.resource > p.id) FROM present p WHERE p.id IS NOT NULL)
SELECT CAST(COALESCE(SUM((SELECT COUNT(*) FROM changes c
                          WHERE c.resource = p.id AND c.resource_version <= COALESCE(f.revision, b.revision))), 0) AS bigint)
FROM present p JOIN floors b ON b.resource = 0 LEFT JOIN floors f ON f.resource = p.id
WHERE p.id IS NOT NULL
