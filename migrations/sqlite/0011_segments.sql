-- Superseded versions of objects that have been moved out of `objects`, many in one compressed frame
-- (crates/store/src/storage/history/segments.rs). A segment is what one object was from `first_version`, the revision of its
-- oldest version, until `end_version`, the revision that has superseded the newest one. Its versions have the same uid and
-- encoding; `format` is 0 for JSON or YAML, 1 for protobuf.
CREATE TABLE segments (
    first_version  INTEGER PRIMARY KEY,
    end_version    INTEGER NOT NULL UNIQUE,
    resource       INTEGER NOT NULL,
    namespace      TEXT NOT NULL,
    name           TEXT NOT NULL,
    uid            TEXT NOT NULL,
    stored_version TEXT NOT NULL,
    format         INTEGER NOT NULL,
    versions       INTEGER NOT NULL,
    bytes          INTEGER NOT NULL,
    value          BLOB NOT NULL
) STRICT;
CREATE INDEX segments_by_key ON segments (resource, namespace, name, end_version, first_version);
CREATE INDEX segments_by_size ON segments (resource, bytes, versions);

-- One row. The changes up to `revision` have been looked at for versions to move; `moves` counts the transactions that moved
-- some, so that none is made by what was read before another one.
CREATE TABLE segmented (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL,
    moves    INTEGER NOT NULL
) STRICT;
INSERT INTO segmented (id, revision, moves) VALUES (1, 0, 0);
