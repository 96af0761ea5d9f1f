-- Versions of objects in segments, by resource and encoding, in the columns of stored_versions.sql.
SELECT r.api_group, r.plural, s.stored_version, CAST(s.format AS BIGINT), CAST(1 AS BIGINT), CAST(SUM(s.versions) AS BIGINT)
FROM segments s JOIN resources r ON r.id = s.resource
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4
