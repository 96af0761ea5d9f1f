-- Live rows of a resource as of a revision, in key order. Served by objects_by_key alone up to the join;
-- SQLite takes `deleted` from the row that holds MAX(resource_version). CROSS JOIN pins the loop order,
-- and with it the order of the rows. Binds: resource, revision, namespace, name, limit.
SELECT o.namespace, o.name, o.resource_version, o.value
FROM (SELECT resource_version, MAX(resource_version), deleted
      FROM objects INDEXED BY objects_by_key
      WHERE resource = ? AND resource_version <= ? AND (namespace, name) > (?, ?)
      GROUP BY namespace, name HAVING NOT deleted
      ORDER BY namespace, name LIMIT ?) k
CROSS JOIN objects o ON o.resource_version = k.resource_version
