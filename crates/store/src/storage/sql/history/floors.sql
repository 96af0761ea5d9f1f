-- The resources that have changes, with their floors. A loose scan of changes_by_resource.
WITH RECURSIVE present (id) AS (
    SELECT MIN(resource) FROM changes
    UNION ALL
    SELECT (SELECT MIN(c.resource) FROM changes c WHERE c.resource > p.id) FROM present p WHERE p.id IS NOT NULL)
SELECT p.id, COALESCE(f.revision, b.revision)
FROM present p JOIN floors b ON b.resource = 0 LEFT JOIN floors f ON f.resource = p.id
WHERE p.id IS NOT NULL
