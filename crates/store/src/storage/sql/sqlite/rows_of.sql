-- The rows of these revisions, in their order. CROSS JOIN pins the loop order. Binds: an array of JSON.
SELECT o.namespace, o.name, o.resource_version, o.value, o.resource
FROM json_each(?) k CROSS JOIN objects o ON o.resource_version = k.value
