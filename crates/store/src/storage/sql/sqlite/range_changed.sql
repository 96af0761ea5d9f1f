-- Whether a name in a range has changed since a revision; a range of changes_by_resource. Binds: resource, revision, first
-- name, first name behind the range or NULL.
SELECT EXISTS (SELECT 1 FROM changes WHERE resource = ?1 AND resource_version > ?2
               AND name >= ?3 AND (?4 IS NULL OR name < ?4))
