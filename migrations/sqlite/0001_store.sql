-- One row. `revision` is the newest committed resourceVersion; history at or below `compacted` may be gone.
CREATE TABLE clock (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    revision  INTEGER NOT NULL,
    compacted INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, revision, compacted) VALUES (1, 1, 1);

-- Small numbers for group and plural.
CREATE TABLE resources (
    id         INTEGER PRIMARY KEY,
    api_group  TEXT NOT NULL,
    plural     TEXT NOT NULL,
    UNIQUE (api_group, plural)
) STRICT;

-- One row per version of an object, inserted once and never updated. A revision belongs to exactly one write,
-- so it is the key rows are clustered by: writes append, compaction deletes by key.
CREATE TABLE objects (
    resource_version INTEGER PRIMARY KEY,
    resource         INTEGER NOT NULL,
    namespace        TEXT NOT NULL,
    name             TEXT NOT NULL,
    deleted          INTEGER NOT NULL,
    uid              TEXT NOT NULL,
    stored_version   TEXT NOT NULL,
    value            BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX objects_by_key ON objects (resource, namespace, name, resource_version, deleted);

-- The changefeed: one narrow row per write. event: 0 added, 1 modified, 2 deleted.
CREATE TABLE changes (
    resource_version INTEGER PRIMARY KEY,
    resource         INTEGER NOT NULL,
    namespace        TEXT NOT NULL,
    name             TEXT NOT NULL,
    event            INTEGER NOT NULL,
    previous_version INTEGER
) STRICT;
CREATE INDEX changes_by_resource ON changes (resource, resource_version);

-- Keys that authenticate continue tokens; the newest signs, older ones still verify.
CREATE TABLE token_keys (
    id         INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL,
    secret     BLOB NOT NULL
) STRICT;
