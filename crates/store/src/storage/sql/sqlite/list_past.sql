-- As list_at_revision, with the versions that are in segments, as their frames. LEFT JOIN pins the loop order, and with it the
-- order of the rows. Binds: resource, revision, namespace, name, limit.
SELECT k.namespace, k.name, k.version, o.value, s.value
FROM (SELECT namespace, name, MAX(resource_version) AS version, NULL AS first, deleted
      FROM objects INDEXED BY objects_by_key
      WHERE resource = ?1 AND resource_version <= ?2 AND (namespace, name) > (?3, ?4)
      GROUP BY namespace, name HAVING NOT deleted
      UNION ALL
      SELECT namespace, name, NULL, first_version, NULL
      FROM segments INDEXED BY segments_by_key
      WHERE resource = ?1 AND first_version <= ?2 AND end_version > ?2 AND (namespace, name) > (?3, ?4)
      ORDER BY namespace, name LIMIT ?5) k
LEFT JOIN objects o ON o.resource_version = k.version
LEFT JOIN segments s ON s.first_version = k.first
