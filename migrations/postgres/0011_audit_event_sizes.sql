-- The length of a write's event in bytes, by which the table is bounded as that of other events is. The database fills it in, since
-- the procedure that commits batches does not. The table is written anew: some seconds for each million events.
ALTER TABLE audit_events ADD COLUMN size bigint NOT NULL GENERATED ALWAYS AS (octet_length(event)) STORED;

DROP INDEX audit_events_by_time;
CREATE INDEX audit_events_by_time ON audit_events (at, size);
