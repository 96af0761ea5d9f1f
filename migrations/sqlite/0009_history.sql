-- When each revision was committed (milliseconds since the Unix epoch), and by whom. Both are NULL for changes of earlier
-- releases. Stamps never decrease as revisions grow.
ALTER TABLE changes ADD COLUMN committed_ms INTEGER;
ALTER TABLE changes ADD COLUMN writer INTEGER;

-- The stamp of the newest commit. History begins now.
ALTER TABLE clock ADD COLUMN committed_ms INTEGER NOT NULL DEFAULT 0;
UPDATE clock SET committed_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER);

-- The last commit of each second in which there was one, kept for longer than the changes. The newest commit's own row is
-- added by the first one of another second.
CREATE TABLE marks (
    at_ms    INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX marks_by_revision ON marks (revision);
INSERT INTO marks (at_ms, revision) SELECT committed_ms, revision FROM clock;

-- Who makes changes. `id` is made of the other columns' text; `used_ms` is when a server has needed the row last, to the
-- hour.
CREATE TABLE writers (
    id           INTEGER PRIMARY KEY,
    username     TEXT NOT NULL,
    impersonator TEXT NOT NULL,
    verb         TEXT NOT NULL,
    subresource  TEXT NOT NULL,
    manager      TEXT NOT NULL,
    client       TEXT NOT NULL,
    used_ms      INTEGER NOT NULL
) STRICT;

-- The oldest revision at which each resource can be read; never above clock.compacted. Resource 0 stands for those that
-- have no row.
CREATE TABLE floors (
    resource INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO floors (resource, revision) SELECT 0, compacted FROM clock;
