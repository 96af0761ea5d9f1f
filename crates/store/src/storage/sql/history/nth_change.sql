-- The change of a resource that has so many before it. A range of changes_by_resource. Binds: resource, number.
SELECT resource_version FROM changes WHERE resource = $1 ORDER BY resource_version LIMIT 1 OFFSET $2
