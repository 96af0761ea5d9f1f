-- Audit events (audit.k8s.io/v1, JSON), which are kept for a time. Those of writes are committed with the write. `at` counts
-- microseconds since the epoch; `object` is <resource>[.<group>]/<namespace>/<name>[/<subresource>].
CREATE TABLE audit_events (
    id       integer PRIMARY KEY,
    at       integer NOT NULL,
    username text NOT NULL,
    verb     text NOT NULL,
    object   text NOT NULL,
    event    blob NOT NULL
) STRICT;

CREATE INDEX audit_events_by_time ON audit_events (at);
