-- The rows of these revisions, served by the table's key. Binds: revisions.
SELECT namespace, name, resource_version, value, resource FROM objects WHERE resource_version = ANY($1::bigint[])
