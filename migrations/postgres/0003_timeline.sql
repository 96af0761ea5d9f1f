-- PostgreSQL's own timeline, as it was when the clock was last known to be whole: a standby that is promoted begins a
-- new one, and may lack commits that were acknowledged. NULL until the first server looks.
ALTER TABLE clock ADD COLUMN timeline bigint;
