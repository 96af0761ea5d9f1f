-- One row. `revision` is the newest committed resourceVersion; history at or below `compacted` may be gone.
CREATE TABLE clock (
    id        integer PRIMARY KEY CHECK (id = 1),
    revision  bigint NOT NULL,
    compacted bigint NOT NULL
) WITH (fillfactor = 10); -- room for HOT updates: the row changes with every batch
INSERT INTO clock (id, revision, compacted) VALUES (1, 1, 1);

-- Small numbers for group and plural.
CREATE TABLE resources (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    api_group  text COLLATE "C" NOT NULL,
    plural     text COLLATE "C" NOT NULL,
    UNIQUE (api_group, plural)
);

-- One row per version of an object, inserted once and never updated. A revision belongs to exactly one write,
-- so it is the primary key: writes append, compaction deletes by key.
CREATE TABLE objects (
    resource_version bigint PRIMARY KEY,
    resource         integer NOT NULL,
    namespace        text COLLATE "C" NOT NULL,
    name             text COLLATE "C" NOT NULL,
    deleted          boolean NOT NULL,
    uid              text NOT NULL,
    stored_version   text NOT NULL,
    value            bytea COMPRESSION lz4 NOT NULL
);
CREATE UNIQUE INDEX objects_by_key ON objects (resource, namespace, name, resource_version DESC, deleted);

-- The changefeed: one narrow row per write. event: 0 added, 1 modified, 2 deleted.
CREATE TABLE changes (
    resource_version bigint PRIMARY KEY,
    resource         integer NOT NULL,
    namespace        text COLLATE "C" NOT NULL,
    name             text COLLATE "C" NOT NULL,
    event            smallint NOT NULL,
    previous_version bigint
);
CREATE INDEX changes_by_resource ON changes (resource, resource_version);

-- Keys that authenticate continue tokens; the newest signs, older ones still verify.
CREATE TABLE token_keys (
    id         integer PRIMARY KEY,
    created_at bigint NOT NULL,
    secret     bytea NOT NULL
);
