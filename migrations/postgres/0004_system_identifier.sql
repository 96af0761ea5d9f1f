-- The cluster that the clock was last known to be whole in, by PostgreSQL's system identifier (its 64 bits as a signed
-- number): a dump that is restored elsewhere carries this row and its timeline along, and may lack commits that were
-- acknowledged. NULL until the first server looks, and where roles may not read the identifier.
ALTER TABLE clock ADD COLUMN system_identifier bigint;
