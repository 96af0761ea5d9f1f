-- Both tables, the clock and the hint to other replicas in one statement. `event` 2 is a deletion.
-- Binds: versions, resources, namespaces, names, uids, stored versions, values, events, previous versions,
-- new clock, channel, this server.
WITH batch AS (
    SELECT * FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[],
                         $8::smallint[], $9::bigint[])
        AS b (resource_version, resource, namespace, name, uid, stored_version, value, event, previous_version)
), inserted AS (
    INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value)
    SELECT resource_version, resource, namespace, name, event = 2, uid, stored_version, value FROM batch
), fed AS (
    INSERT INTO changes (resource_version, resource, namespace, name, event, previous_version)
    SELECT resource_version, resource, namespace, name, event, previous_version FROM batch
), ticked AS (
    UPDATE clock SET revision = $10
)
SELECT pg_notify($11, $10::text || ' ' || $12)
