-- Live objects with long values, the same on both databases, by their names: lengths, first and last bytes.
-- Binds: the length above which a value is long, the number of first bytes, the number of last ones.
SELECT r.api_group, r.plural, o.namespace, o.name, CAST(length(o.value) AS BIGINT), substr(o.value, 1, $2),
    substr(o.value, length(o.value) - $3 + 1)
FROM objects o JOIN resources r ON r.id = o.resource
WHERE length(o.value) > $1 AND NOT o.deleted AND NOT EXISTS (
    SELECT 1 FROM objects n
    WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name
      AND n.resource_version > o.resource_version)
ORDER BY 1, 2, 3, 4
