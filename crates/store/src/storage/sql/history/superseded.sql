-- How many rows of a key that are no deletions are superseded at a revision, and whether the key is deleted there. Binds:
-- resource, namespace, name, revision.
SELECT COUNT(*) - COUNT(CASE WHEN deleted THEN 1 END)
         - COUNT(CASE WHEN NOT deleted AND resource_version = newest THEN 1 END),
       COUNT(CASE WHEN deleted AND resource_version = newest THEN 1 END) > 0
FROM objects JOIN (SELECT MAX(resource_version) AS newest FROM objects
                   WHERE resource = $1 AND namespace = $2 AND name = $3 AND resource_version <= $4) n ON TRUE
WHERE resource = $1 AND namespace = $2 AND name = $3 AND resource_version <= $4
