-- The oldest revision at which a resource can be read. Binds: resource.
SELECT COALESCE((SELECT revision FROM floors WHERE resource = $1), (SELECT revision FROM floors WHERE resource = 0))
