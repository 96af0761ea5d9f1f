-- Servers that may write: the batches of one are refused once its row is gone. Another incarnation after every start.
CREATE TABLE servers (
    id          TEXT PRIMARY KEY,
    incarnation TEXT NOT NULL
) STRICT;

-- How each server encodes a resource, and which versions it can decode and serves, parted by commas.
CREATE TABLE storage_versions (
    resource           INTEGER NOT NULL,
    server             TEXT NOT NULL,
    encoding_version   TEXT NOT NULL,
    decodable_versions TEXT NOT NULL,
    served_versions    TEXT NOT NULL,
    PRIMARY KEY (resource, server)
) STRICT;
