-- How a change counts in etcd's terms, where all changes of a transaction share one revision: NULL for a change that takes a
-- revision, as every write of the Kubernetes API does; 1 for one that has the revision of the next change, if that takes one,
-- and is never shown without it; 2 for one that takes none.
ALTER TABLE changes ADD COLUMN uncounted INTEGER;
CREATE INDEX changes_uncounted ON changes (resource_version, uncounted) WHERE uncounted IS NOT NULL;

-- The number of uncounted changes so far: revision - lag is the newest revision in etcd's terms.
ALTER TABLE clock ADD COLUMN lag INTEGER NOT NULL DEFAULT 0;
