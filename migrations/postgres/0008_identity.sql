-- The database's own identity, which stays with it through failovers, dumps and moves to other clusters, and when it was
-- made (microseconds since the epoch). `made` is NULL where older content has been put in.
ALTER TABLE clock ADD COLUMN identity bigint, ADD COLUMN made bigint;
UPDATE clock SET identity = ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint,
                 made = CASE WHEN revision = 1 THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END;
