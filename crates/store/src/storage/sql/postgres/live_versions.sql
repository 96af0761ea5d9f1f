-- The newest version of each key, as 2 × version + deleted; as number 0, how many such servers are registered, and which
-- format of values all registered servers read. Run under the clock's row lock, in a statement of its own: its snapshot
-- has to be younger than the lock.
-- Binds: resources, namespaces, names, server, incarnation.
SELECT k.i, (SELECT o.resource_version * 2 + o.deleted::int FROM objects o
             WHERE o.resource = k.resource AND o.namespace = k.namespace AND o.name = k.name
             ORDER BY o.resource_version DESC LIMIT 1), NULL::int
FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY AS k (resource, namespace, name, i)
UNION ALL
SELECT 0, COUNT(*) FILTER (WHERE id = $4 AND incarnation = $5), MIN(value_format) FROM servers
