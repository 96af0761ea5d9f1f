-- What became of a batch; if it has not been committed, it never will be from now on. Waits for a commit under way, whose
-- transaction holds the row. Its own commit is behind that one on the way to the standbys, too.
-- Binds: writer, place, number.
INSERT INTO batches AS b (writer, place, number) VALUES ($1, $2, $3)
ON CONFLICT (writer, place) DO UPDATE SET
    number = $3,
    base = CASE b.number WHEN $3 THEN b.base END,
    outcomes = CASE b.number WHEN $3 THEN b.outcomes END,
    standing = CASE b.number WHEN $3 THEN b.standing END,
    at = now()
RETURNING base, outcomes, standing
