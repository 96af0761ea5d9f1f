-- The clock as it stood at a revision, or before. Binds: revision.
SELECT MIN(k.revision, ?1), k.compacted,
       k.lag - (SELECT COUNT(*) FROM changes WHERE uncounted IS NOT NULL AND resource_version > ?1)
FROM clock k
