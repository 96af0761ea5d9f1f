-- The first bytes of encrypted versions, the same on both databases: live ones (0), and older ones that are kept (1).
-- Binds: encrypted values' first bytes, bytes.
SELECT r.api_group, r.plural, o.stored_version, substr(o.value, 1, $2),
    CAST(CASE WHEN EXISTS (
        SELECT 1 FROM objects n
        WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
          AND n.resource_version > o.resource_version) THEN 1 ELSE 0 END AS BIGINT)
FROM objects o JOIN resources r ON r.id = o.resource
WHERE NOT o.deleted AND substr(o.value, 1, 8) = $1
