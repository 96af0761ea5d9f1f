-- The revisions of a resource's live rows as of a revision, in key order, as one text: a row for each would take longer
-- than to find them. Served by objects_by_key alone. Binds: resource, revision.
SELECT group_concat(resource_version)
FROM (SELECT resource_version, MAX(resource_version), deleted
      FROM objects INDEXED BY objects_by_key
      WHERE resource = ? AND resource_version <= ?
      GROUP BY namespace, name HAVING NOT deleted
      ORDER BY namespace, name)
