-- Audit events of requests that have written nothing: refused ones, reads, reviews of oneself. They have a table of their own, so
-- that whoever is refused cannot push out the events of writes. The columns are those of audit_events; `size` is the length of
-- the event in bytes.
CREATE TABLE audit_other_events (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    username text COLLATE "C" NOT NULL,
    verb     text COLLATE "C" NOT NULL,
    object   text COLLATE "C" NOT NULL,
    event    bytea NOT NULL,
    size     bigint NOT NULL
);

CREATE INDEX audit_other_events_by_time ON audit_other_events (at, size);
