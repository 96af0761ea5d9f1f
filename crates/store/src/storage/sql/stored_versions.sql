-- Versions of objects by resource and encoding, the same on both databases: live ones (0), and older ones that are kept (1).
-- Binds: protobuf's first bytes, those of encrypted values. Formats: 0 JSON or YAML, 1 protobuf, 2 encrypted.
SELECT r.api_group, r.plural, o.stored_version,
    CAST(CASE WHEN substr(o.value, 1, 4) = $1 THEN 1 WHEN substr(o.value, 1, 8) = $2 THEN 2 ELSE 0 END AS BIGINT) AS format,
    CAST(CASE WHEN EXISTS (
        SELECT 1 FROM objects n
        WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
          AND n.resource_version > o.resource_version) THEN 1 ELSE 0 END AS BIGINT) AS older,
    COUNT(*)
FROM objects o JOIN resources r ON r.id = o.resource
WHERE NOT o.deleted
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1, 2, 3, 4, 5
