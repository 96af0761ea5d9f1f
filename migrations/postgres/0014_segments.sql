-- Superseded versions of objects that have been moved out of `objects`, many in one compressed frame
-- (crates/store/src/storage/history/segments.rs). A segment is what one object was from `first_version`, the revision of its
-- oldest version, until `end_version`, the revision that has superseded the newest one. Its versions have the same uid and
-- encoding; `format` is 0 for JSON or YAML, 1 for protobuf.
CREATE TABLE segments (
    first_version  bigint PRIMARY KEY,
    end_version    bigint NOT NULL UNIQUE,
    resource       integer NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    uid            text NOT NULL,
    stored_version text NOT NULL,
    format         smallint NOT NULL,
    versions       integer NOT NULL,
    bytes          integer NOT NULL,
    value          bytea NOT NULL
);
-- The frames are compressed already.
ALTER TABLE segments ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE INDEX segments_by_key ON segments (resource, namespace, name, end_version, first_version);
CREATE INDEX segments_by_size ON segments (resource, bytes, versions);

-- One row. The changes up to `revision` have been looked at for versions to move; `moves` counts the transactions that moved
-- some, so that none is made by what was read before another one.
CREATE TABLE segmented (
    id       integer PRIMARY KEY CHECK (id = 1),
    revision bigint NOT NULL,
    moves    bigint NOT NULL
);
INSERT INTO segmented (id, revision, moves) VALUES (1, 0, 0);
