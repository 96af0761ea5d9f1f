-- Audit events of requests that have written nothing: refused ones, reads, reviews of oneself. They have a table of their own, so
-- that whoever is refused cannot push out the events of writes. The columns are those of audit_events; `size` is the length of
-- the event in bytes.
CREATE TABLE audit_other_events (
    id       integer PRIMARY KEY,
    at       integer NOT NULL,
    username text NOT NULL,
    verb     text NOT NULL,
    object   text NOT NULL,
    event    blob NOT NULL,
    size     integer NOT NULL
) STRICT;

CREATE INDEX audit_other_events_by_time ON audit_other_events (at, size);
