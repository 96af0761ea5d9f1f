-- The first bytes of encrypted live objects, the same on both databases. Binds: encrypted values' first bytes, bytes.
SELECT r.api_group, r.plural, o.stored_version, substr(o.value, 1, $2)
FROM objects o JOIN resources r ON r.id = o.resource
WHERE NOT o.deleted AND substr(o.value, 1, 8) = $1 AND NOT EXISTS (
    SELECT 1 FROM objects n
    WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
      AND n.resource_version > o.resource_version)
