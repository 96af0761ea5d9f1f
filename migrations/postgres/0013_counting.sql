-- How a change counts in etcd's terms, where all changes of a transaction share one revision: NULL for a change that takes a
-- revision, as every write of the Kubernetes API does; 1 for one that has the revision of the next change, if that takes one,
-- and is never shown without it; 2 for one that takes none.
ALTER TABLE changes ADD COLUMN uncounted smallint;
CREATE INDEX changes_uncounted ON changes (resource_version, uncounted) WHERE uncounted IS NOT NULL;

-- The number of uncounted changes so far: revision - lag is the newest revision in etcd's terms.
ALTER TABLE clock ADD COLUMN lag bigint NOT NULL DEFAULT 0;

-- Commits a batch: the transaction begins and ends in this call, so nobody holds the clock's lock while a network or a
-- server is waited for. (A function would hold it until the next message of its client.) The rules are those of
-- crates/store/src/storage/judge.rs.
--
-- The first keys are those of the mutations; the keys of other rows that count follow. `same` names for each mutation the
-- first place of its key, and is NULL if no two have one key. A version of 0 means that there is no row.
-- Requirements lie one behind the other; `need_ends` says where those of each mutation end.
-- `decided` is the revision at which each mutation was decided, and NULL if none is outdated by history that is given up.
-- `assumed`, `assumed_lost` and `assumed_compacted` are given if the caller has judged the batch by them; all the given
-- mutations pass then. Without `assumed_compacted` the verdicts do not depend on what has been compacted.
--
-- verdict: `done`. All others mean that nothing was written: the clock is before `floor` (`regressed`); the server's
-- registration is gone, and the batch changes the registry (`fenced`); values have to be in another format (`format`); rows
-- are not as assumed (`stale`, with the rows as they are, and the values of those at the places `counted`).
-- outcomes: 0 passed, -1 conflict, -2 apart, -3 fenced, -4 outdated, -5 a range has changed; from 1 on the mutation's
-- requirement that failed. `standing` is the version that was found instead of the expected one.
-- waited, held: microseconds until the clock was locked, and from there until the commit was durable.
--
-- writer_of: the number of each mutation's writer; NULL if none has one. new_writers: rows of `writers` that the table may
-- lack, as a JSON array; NULL if there are none.
--
-- uncounted_of: the column `uncounted` of each change; NULL if all are counted. stamped: whether the revision of each
-- mutation in etcd's terms is put before its content; NULL if none is. Ranges of names of a resource that must not have
-- changed since a revision lie one behind the other; `range_ends` says where those of each mutation end. `moved`: which of
-- them have changed.
--
-- A release that needs another procedure makes one of another name, since servers of two releases share a database: this one
-- is commit_batch_2 with the changes that are uncounted, revisions before contents, and ranges.
CREATE PROCEDURE commit_batch_3(
    writer text, place integer, number bigint, channel text,
    floor bigint, server text, generation text, exempt integer[], value_format integer, newest_format integer,
    resources integer[], namespaces text[], names text[], same integer[],
    expects bigint[], events smallint[], uids text[], versions text[], contents bytea[], joins boolean[],
    need_ends integer[], need_places integer[], need_expects bigint[], decided bigint[],
    assumed bigint[], assumed_lost boolean, assumed_compacted bigint, counted integer[],
    audit_of integer[], audit_at bigint[], audit_users text[], audit_verbs text[], audit_objects text[],
    audit_contents bytea[],
    registry text,
    writer_of bigint[], new_writers text,
    uncounted_of smallint[], stamped boolean[],
    range_ends integer[], range_resources integer[], range_starts text[], range_stops text[], range_since bigint[],
    OUT verdict text, OUT base bigint, OUT flushed bigint, OUT format integer,
    OUT outcomes integer[], OUT standing bigint[],
    OUT lost boolean, OUT compacted bigint, OUT live bigint[], OUT counts bytea[], OUT moved boolean[],
    OUT waited bigint, OUT held bigint
) LANGUAGE plpgsql AS $procedure$
DECLARE
    called     timestamptz := clock_timestamp();
    locked     timestamptz;
    last_stamp bigint;
    stamp      bigint;
    -- The clock's lag, the newest revision in etcd's terms, and the revisions that are put before contents.
    behind     bigint;
    counted_to bigint;
    etcd       bigint[];
    size       integer := cardinality(expects);
    tick       bigint;
    revisions  bigint[];
    previous   bigint[];
    key        integer;
    version    bigint;
    outcome    integer;
    failed     boolean := false;
    need       integer;
    -- The mutations that are joined: the first of them, what was before it, and whether one of them has failed.
    first      integer := 1;
    first_live bigint[];
    first_tick bigint;
    first_counted bigint;
    broken     boolean := false;
    changes_of_registry jsonb;
BEGIN
    SELECT c.revision, c.compacted, c.committed_ms, c.lag, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint
    INTO STRICT base, compacted, last_stamp, behind, flushed
    FROM clock c FOR UPDATE;
    locked := clock_timestamp();
    waited := extract(epoch FROM locked - called) * 1000000;
    IF base < floor THEN
        ROLLBACK;
        verdict := 'regressed';
        RETURN;
    END IF;

    -- A statement of its own, whose snapshot is younger than the lock: the first one does not see what others committed
    -- while it waited.
    SELECT ARRAY(
               SELECT COALESCE((SELECT CASE WHEN o.deleted THEN 0 ELSE o.resource_version END
                                FROM objects o
                                WHERE o.resource = k.resource AND o.namespace = k.namespace AND o.name = k.name
                                ORDER BY o.resource_version DESC LIMIT 1), 0)
               FROM unnest(resources, namespaces, names) WITH ORDINALITY AS k (resource, namespace, name, i)
               ORDER BY k.i),
           server IS NOT NULL
               AND NOT EXISTS (SELECT FROM servers s WHERE s.id = server AND s.incarnation = generation),
           CASE WHEN server IS NULL THEN 0
                ELSE (SELECT LEAST(MIN(s.value_format), newest_format) FROM servers s) END
    INTO live, lost, format;
    IF lost AND registry IS NOT NULL THEN
        ROLLBACK;
        verdict := 'fenced';
        RETURN;
    END IF;
    IF range_ends IS NOT NULL THEN
        moved := ARRAY(
            SELECT r.since < compacted OR EXISTS (
                SELECT FROM changes c
                WHERE c.resource = r.resource AND c.resource_version > r.since
                  AND c.name >= r.start AND (r.stop IS NULL OR c.name < r.stop))
            FROM unnest(range_resources, range_starts, range_stops, range_since) WITH ORDINALITY
                AS r (resource, start, stop, since, i)
            ORDER BY r.i);
    END IF;
    IF assumed IS NOT NULL AND (live <> assumed OR lost <> assumed_lost OR compacted <> assumed_compacted
                                OR true = ANY (moved)) THEN
        counts := ARRAY(SELECT (SELECT o.value FROM objects o WHERE o.resource_version = live[c.place])
                        FROM unnest(counted) WITH ORDINALITY AS c (place, i) ORDER BY c.i);
        ROLLBACK;
        verdict := 'stale';
        RETURN;
    END IF;
    IF format <> value_format THEN
        ROLLBACK;
        verdict := 'format';
        RETURN;
    END IF;

    tick := base;
    counted_to := base - behind;
    revisions := array_fill(NULL::bigint, ARRAY[size]);
    previous := revisions;
    outcomes := array_fill(0, ARRAY[size]);
    standing := array_fill(0::bigint, ARRAY[size]);
    IF stamped IS NOT NULL THEN
        etcd := revisions;
    END IF;
    FOR i IN 1 .. size LOOP
        IF i = first AND joins[i] THEN
            first_live := live;
            first_tick := tick;
            first_counted := counted_to;
        END IF;
        key := COALESCE(same[i], i);
        version := live[key];
        outcome := 0;
        IF assumed IS NULL THEN
            IF lost AND NOT resources[i] = ANY (exempt) THEN
                outcome := -3;
            ELSIF decided[i] < compacted THEN
                outcome := -4;
            ELSIF version <> expects[i] OR (version = 0 AND events[i] = 2) THEN
                outcome := -1;
                standing[i] := version;
            ELSIF need_ends IS NOT NULL THEN
                need := COALESCE(need_ends[i - 1], 0);
                FOR n IN need + 1 .. need_ends[i] LOOP
                    IF live[need_places[n]] <> need_expects[n] THEN
                        outcome := n - need;
                        standing[i] := live[need_places[n]];
                        EXIT;
                    END IF;
                END LOOP;
            END IF;
            IF outcome = 0 AND range_ends IS NOT NULL THEN
                FOR n IN COALESCE(range_ends[i - 1], 0) + 1 .. range_ends[i] LOOP
                    IF moved[n] OR EXISTS (
                        SELECT FROM unnest(revisions, resources, names) WITH ORDINALITY AS b (revision, resource, name, place)
                        WHERE b.place < i AND b.revision IS NOT NULL AND b.resource = range_resources[n]
                          AND b.name COLLATE "C" >= range_starts[n]
                          AND (range_stops[n] IS NULL OR b.name COLLATE "C" < range_stops[n])) THEN
                        outcome := -5;
                        EXIT;
                    END IF;
                END LOOP;
            END IF;
        END IF;
        IF outcome = 0 THEN
            tick := tick + 1;
            revisions[i] := tick;
            previous[i] := NULLIF(version, 0);
            live[key] := CASE events[i] WHEN 2 THEN 0 ELSE tick END;
            IF stamped IS NOT NULL THEN
                IF stamped[i] THEN
                    etcd[i] := counted_to + CASE uncounted_of[i] WHEN 2 THEN 0 ELSE 1 END;
                END IF;
                IF uncounted_of[i] IS NULL THEN
                    counted_to := counted_to + 1;
                END IF;
            END IF;
        ELSE
            outcomes[i] := outcome;
            failed := true;
            broken := true;
        END IF;
        IF joins[i] AND i < size THEN
            CONTINUE;
        END IF;
        IF broken AND first < i THEN
            FOR n IN first .. i LOOP
                IF outcomes[n] = 0 THEN
                    outcomes[n] := -2;
                    revisions[n] := NULL;
                END IF;
            END LOOP;
            live := first_live;
            tick := first_tick;
            counted_to := first_counted;
        END IF;
        first := i + 1;
        broken := false;
    END LOOP;
    verdict := 'done';
    live := NULL;
    IF NOT failed THEN
        outcomes := NULL;
        standing := NULL;
    END IF;
    -- A change of the registry passes with all mutations or not at all.
    IF (registry IS NULL AND tick = base) OR (registry IS NOT NULL AND failed) THEN
        ROLLBACK;
        RETURN;
    END IF;

    IF tick > base THEN
        INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value)
        SELECT b.revision, b.resource, b.namespace, b.name, b.event = 2, b.uid, b.version,
               CASE WHEN b.etcd IS NULL THEN b.content ELSE int8send(b.etcd) || b.content END
        FROM unnest(revisions, resources, namespaces, names, events, uids, versions, contents, etcd)
            AS b (revision, resource, namespace, name, event, uid, version, content, etcd)
        WHERE b.revision IS NOT NULL;
        stamp := GREATEST(floor(extract(epoch FROM locked) * 1000), last_stamp);
        IF stamp / 1000 <> last_stamp / 1000 THEN
            -- Servers of the release before leave the clock's stamp as it is.
            INSERT INTO marks (at_ms, revision)
            VALUES (COALESCE((SELECT c.committed_ms FROM changes c WHERE c.resource_version = base), last_stamp), base)
            ON CONFLICT DO NOTHING;
        END IF;
        IF new_writers IS NOT NULL THEN
            INSERT INTO writers AS w (id, username, impersonator, verb, subresource, manager, client, used_ms)
            SELECT n.id, n.username, n.impersonator, n.verb, n.subresource, n.manager, n.client, stamp
            FROM jsonb_to_recordset(new_writers::jsonb)
                AS n (id bigint, username text, impersonator text, verb text, subresource text, manager text, client text)
            ON CONFLICT (id) DO UPDATE SET used_ms = excluded.used_ms;
        END IF;
        INSERT INTO changes
            (resource_version, resource, namespace, name, event, previous_version, committed_ms, writer, uncounted)
        SELECT b.revision, b.resource, b.namespace, b.name, b.event, b.previous, stamp, b.writer, b.uncounted
        FROM unnest(revisions, resources, namespaces, names, events, previous, writer_of, uncounted_of)
            AS b (revision, resource, namespace, name, event, previous, writer, uncounted)
        WHERE b.revision IS NOT NULL;
        IF uncounted_of IS NOT NULL THEN
            behind := behind + (SELECT COUNT(*) FROM unnest(revisions, uncounted_of) AS b (revision, uncounted)
                                WHERE b.revision IS NOT NULL AND b.uncounted IS NOT NULL);
        END IF;
        UPDATE clock SET revision = tick, committed_ms = stamp, lag = behind;
        IF channel IS NOT NULL THEN
            PERFORM pg_notify(channel, tick || ' ' || writer);
        END IF;
    END IF;
    IF audit_of IS NOT NULL THEN
        INSERT INTO audit_events (at, username, verb, object, event)
        SELECT a.at, a.username, a.verb, a.object, a.content
        FROM unnest(audit_of, audit_at, audit_users, audit_verbs, audit_objects, audit_contents)
            AS a (i, at, username, verb, object, content)
        WHERE revisions[a.i] IS NOT NULL;
    END IF;
    IF registry IS NOT NULL THEN
        changes_of_registry := registry;
        DELETE FROM servers s
        WHERE s.id IN (SELECT jsonb_array_elements_text(changes_of_registry -> 'removed'));
        DELETE FROM storage_versions v
        WHERE v.server IN (SELECT jsonb_array_elements_text(changes_of_registry -> 'removed'));
        DELETE FROM storage_versions v
        WHERE v.server = changes_of_registry ->> 'server'
          AND v.resource IN (SELECT d::integer FROM jsonb_array_elements_text(changes_of_registry -> 'dropped') d);
        INSERT INTO servers (id, incarnation, value_format)
        SELECT a.id, a.incarnation, a.value_format
        FROM jsonb_to_recordset(changes_of_registry -> 'added')
            AS a (id text, incarnation text, value_format integer);
        INSERT INTO storage_versions (resource, server, encoding_version, decodable_versions, served_versions)
        SELECT e.resource, changes_of_registry ->> 'server', e.encoding, e.decodable, e.served
        FROM jsonb_to_recordset(changes_of_registry -> 'encoded')
            AS e (resource integer, encoding text, decodable text, served text);
    END IF;
    INSERT INTO batches AS b (writer, place, number, base, outcomes, standing)
    VALUES (writer, place, number, base, outcomes, standing)
    ON CONFLICT ON CONSTRAINT batches_pkey DO UPDATE
        SET number = excluded.number, base = excluded.base, outcomes = excluded.outcomes,
            standing = excluded.standing, at = excluded.at
        WHERE b.number < excluded.number;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this batch has been given up';
    END IF;
    COMMIT;
    held := extract(epoch FROM clock_timestamp() - locked) * 1000000;
END
$procedure$;
