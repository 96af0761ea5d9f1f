-- The length of a write's event in bytes, by which the table is bounded as that of other events is. Events of earlier releases
-- count as nothing, and go by their age and number.
ALTER TABLE audit_events ADD COLUMN size integer NOT NULL DEFAULT 0;

DROP INDEX audit_events_by_time;
CREATE INDEX audit_events_by_time ON audit_events (at, size);
