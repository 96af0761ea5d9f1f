-- Servers that may write: the batches of one are refused once its row is gone. Another incarnation after every start.
CREATE TABLE servers (
    id          text COLLATE "C" PRIMARY KEY,
    incarnation text COLLATE "C" NOT NULL
);

-- How each server encodes a resource, and which versions it can decode and serves, parted by commas.
CREATE TABLE storage_versions (
    resource           integer NOT NULL,
    server             text COLLATE "C" NOT NULL,
    encoding_version   text COLLATE "C" NOT NULL,
    decodable_versions text COLLATE "C" NOT NULL,
    served_versions    text COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, server)
);
