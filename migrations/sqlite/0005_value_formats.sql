-- The newest format of values (codec/at_rest.rs) that each server reads. Releases that know nothing of this column say
-- nothing, and read format 0.
ALTER TABLE servers ADD COLUMN value_format integer NOT NULL DEFAULT 0;
