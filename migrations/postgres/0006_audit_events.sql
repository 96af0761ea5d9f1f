-- Audit events (audit.k8s.io/v1, JSON), which are kept for a time. Those of writes are committed with the write. `at` counts
-- microseconds since the epoch; `object` is <resource>[.<group>]/<namespace>/<name>[/<subresource>].
CREATE TABLE audit_events (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    username text COLLATE "C" NOT NULL,
    verb     text COLLATE "C" NOT NULL,
    object   text COLLATE "C" NOT NULL,
    event    bytea NOT NULL
);

CREATE INDEX audit_events_by_time ON audit_events (at);
