-- How every registered server encodes every resource, the same on both databases.
SELECT r.api_group, r.plural, v.server, v.encoding_version
FROM storage_versions v JOIN resources r ON r.id = v.resource JOIN servers s ON s.id = v.server
ORDER BY 1, 2, 3
