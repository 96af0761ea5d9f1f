-- As list_at_revision, with the versions that are in segments, as their frames. Binds: resource, revision, namespace, name,
-- limit.
SELECT k.namespace, k.name, k.version, o.value, s.value
FROM (SELECT namespace, name, resource_version AS version, NULL::bigint AS first
      FROM (SELECT DISTINCT ON (namespace, name) namespace, name, resource_version, deleted
            FROM objects
            WHERE resource = $1 AND resource_version <= $2 AND (namespace, name) > ($3, $4)
            ORDER BY namespace, name, resource_version DESC) newest
      WHERE NOT deleted
      UNION ALL
      SELECT namespace, name, NULL, first_version
      FROM segments
      WHERE resource = $1 AND first_version <= $2 AND end_version > $2 AND (namespace, name) > ($3, $4)
      ORDER BY namespace, name LIMIT $5) k
LEFT JOIN objects o ON o.resource_version = k.version
LEFT JOIN segments s ON s.first_version = k.first
ORDER BY k.namespace, k.name
