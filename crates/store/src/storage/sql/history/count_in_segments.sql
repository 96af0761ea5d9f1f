-- Segments that have a version of a revision. Binds: resource, revision, namespace and name after which they are counted, the
-- only namespace.
SELECT COUNT(*) FROM segments
WHERE resource = $1 AND first_version <= $2 AND end_version > $2 AND (namespace, name) > ($3, $4)
  AND ($5 IS NULL OR namespace = $5)
