-- The clock, and the rows that are left at these revisions: one row at least, by the primary key. Binds: revisions.
SELECT c.revision, o.resource_version, o.resource, o.namespace, o.name, o.deleted, o.value
FROM clock c LEFT JOIN objects o ON o.resource_version = ANY($1)
