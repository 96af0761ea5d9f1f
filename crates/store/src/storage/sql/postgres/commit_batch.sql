-- One batch; see migrations/postgres/0013_counting.sql.
-- Binds: writer, place, number, channel; floor, server, incarnation, exempt resources, format of the values, newest format;
-- keys (resources, namespaces, names), first places; expected versions, events, uids, stored versions, values, joins;
-- ends, places and expected versions of requirements, revisions of decisions; assumed versions, whether the registration is
-- assumed to be gone, what is assumed to be compacted, places of counted rows; audit events (whose, at, users, verbs, objects, events); the registry's change;
-- numbers of writers, rows of writers that may be new; how changes count, which values are stamped; ends, resources, first
-- names, first names behind and revisions of ranges.
CALL commit_batch_3($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                    $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44,
                    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
