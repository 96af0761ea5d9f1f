-- What became of a batch; if it has not been committed, it never will be from now on. Waits for a commit under way, whose
-- transaction holds the row. Its own commit is behind that one on the way to the standbys, too.
INSERT INTO batches AS b (writer, place, number) VALUES ('{writer}', {place}, {number})
ON CONFLICT (writer, place) DO UPDATE SET
    number = {number},
    base = CASE b.number WHEN {number} THEN b.base END,
    outcomes = CASE b.number WHEN {number} THEN b.outcomes END,
    standing = CASE b.number WHEN {number} THEN b.standing END,
    at = now()
RETURNING base, outcomes, standing
