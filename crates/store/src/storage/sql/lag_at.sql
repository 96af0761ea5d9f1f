-- How many changes up to a revision take no revision in etcd's terms; a range of changes_uncounted. Binds: revision.
SELECT k.lag - (SELECT COUNT(*) FROM changes c WHERE c.uncounted IS NOT NULL AND c.resource_version > $1) FROM clock k
