//! Reads and writes of segments in words that both databases understand; see `storage/shared.rs`.

/// Makes functions that take a connection.
macro_rules! shared_segments {
    ($connection:ty, $row:ty) => {
        use $crate::storage::history::segments::{Common, Kept, Move, Segment, Slice, VersionRow};

        /// The next versions to move among those that changes up to `until` have superseded. `None` if there is nothing to look
        /// at.
        pub async fn next_slice(
            connection: &mut $connection,
            until: Revision,
        ) -> Result<Option<Slice>, Error> {
            let (from, seen): (i64, i64) = sqlx::query_as("SELECT revision, moves FROM segmented")
                .fetch_one(&mut *connection)
                .await
                .map_err(unavailable)?;
            let touched: Vec<(i64, i32, String, String)> =
                sqlx::query_as(include_str!("../sql/history/touched.sql"))
                    .bind(from)
                    .bind(until.0 as i64)
                    .bind(Slice::CHANGES)
                    .fetch_all(&mut *connection)
                    .await
                    .map_err(unavailable)?;
            let Some((last, ..)) = touched.last() else { return Ok(None) };
            let mut slice = Slice::new(seen, Revision(*last as u64));
            for (revision, resource, namespace, name) in touched {
                let key = Key::new(ResourceId(resource), &namespace, &name);
                if !slice.begin(&key) {
                    continue;
                }
                if let Some((moved, is_all)) = next_move(&mut *connection, key, until).await? {
                    slice.push(moved);
                    if !is_all {
                        slice.to = Revision(from as u64);
                        break;
                    }
                }
                if slice.is_full() {
                    slice.to = Revision(revision as u64);
                    break;
                }
            }
            Ok(Some(slice))
        }

        /// The rows of a key that can be moved, and whether they are all that it has.
        async fn next_move(
            connection: &mut $connection,
            key: Key,
            until: Revision,
        ) -> Result<Option<(Move, bool)>, Error> {
            let superseded = sqlx::query_as(include_str!("../sql/history/superseded.sql"))
                .bind(key.resource.0)
                .bind(&*key.namespace)
                .bind(&*key.name)
                .bind(until.0 as i64)
                .fetch_one(&mut *connection)
                .await
                .map_err(unavailable)?;
            let (rows, is_deleted): (i64, bool) = superseded;
            if !Move::is_due(rows, is_deleted) {
                return Ok(None);
            }
            let rows = sqlx::query(include_str!("../sql/history/rows_until.sql"))
                .bind(key.resource.0)
                .bind(&*key.namespace)
                .bind(&*key.name)
                .bind(until.0 as i64)
                .bind(Move::ROWS)
                .fetch_all(&mut *connection)
                .await
                .map_err(unavailable)?;
            let rows = rows.iter().map(version_row).collect::<Result<Vec<_>, _>>()?;
            let last = segments_of(connection, &key, until, Revision(0), 1).await?.pop();
            let is_all = (rows.len() as i64) < Move::ROWS;
            Ok(Move::plan(key, &rows, last).map(|moved| (moved, is_all)))
        }

        fn version_row(row: &$row) -> Result<VersionRow, Error> {
            Ok(VersionRow {
                revision: Revision(row.try_get::<i64, _>(0).map_err(corrupt)? as u64),
                deleted: row.try_get(1).map_err(corrupt)?,
                uid: row.try_get(2).map_err(corrupt)?,
                stored_version: row.try_get(3).map_err(corrupt)?,
                value: row.try_get::<Vec<u8>, _>(4).map_err(corrupt)?.into(),
            })
        }

        /// Segments of a key, newest first: those that begin before `before` and end after `after`.
        async fn segments_of(
            connection: &mut $connection,
            key: &Key,
            before: Revision,
            after: Revision,
            limit: u32,
        ) -> Result<Vec<Segment>, Error> {
            let rows: Vec<(i64, String, String, i16, Vec<u8>)> =
                sqlx::query_as(include_str!("../sql/history/segments_of.sql"))
                    .bind(key.resource.0)
                    .bind(&*key.namespace)
                    .bind(&*key.name)
                    .bind(before.0 as i64)
                    .bind(after.0 as i64)
                    .bind(i64::from(limit))
                    .fetch_all(connection)
                    .await
                    .map_err(unavailable)?;
            let segment = |(end, uid, stored_version, format, frame): (i64, String, String, i16, Vec<u8>)| {
                Segment::open(Common { uid, stored_version, format }, Revision(end as u64), &frame)
            };
            rows.into_iter().map(segment).collect()
        }

        /// The version of a key that was live at a revision, if a segment has it.
        async fn segment_row_at(
            connection: &mut $connection,
            key: &Key,
            at: Revision,
        ) -> Result<Option<Row>, Error> {
            let segments = segments_of(connection, key, Revision(at.0 + 1), at, 1).await?;
            let Some(kept) = segments.first().and_then(|segment| segment.at(at)) else { return Ok(None) };
            Ok(Some(row_of(key, kept)))
        }

        fn row_of(key: &Key, kept: &Kept) -> Row {
            Row {
                resource: key.resource,
                namespace: (*key.namespace).into(),
                name: (*key.name).into(),
                revision: Revision(kept.revision),
                value: kept.value.clone(),
            }
        }

        /// A row whose first columns are namespace, name, revision and value, or else the frame that has the version of `at`.
        pub fn past_row(row: $row, resource: ResourceId, at: Revision) -> Result<Row, Error> {
            let Some(frame) = row.try_get::<Option<Vec<u8>>, _>(4).map_err(corrupt)? else {
                return live_row(row, resource);
            };
            let common = Common { uid: String::new(), stored_version: String::new(), format: 0 };
            let segment = Segment::open(common, at, &frame)?;
            let key = Key::new(
                resource,
                row.try_get::<&str, _>(0).map_err(corrupt)?,
                row.try_get::<&str, _>(1).map_err(corrupt)?,
            );
            let kept = segment.at(at).ok_or_else(|| Error::Corrupt("a segment begins later".into()))?;
            Ok(row_of(&key, kept))
        }

        /// The number of live rows of a scan that segments have.
        async fn count_in_segments(
            connection: &mut $connection,
            scan: &Scan,
            at: Revision,
        ) -> Result<u64, Error> {
            let (namespace, name) = scan.start();
            let count: i64 = sqlx::query_scalar(include_str!("../sql/history/count_in_segments.sql"))
                .bind(scan.resource.0)
                .bind(at.0 as i64)
                .bind(namespace)
                .bind(name)
                .bind(scan.namespace.as_deref())
                .fetch_one(connection)
                .await
                .map_err(unavailable)?;
            Ok(count as u64)
        }

        /// Up to `limit` versions of a key in its segments, newest first: those before a revision, down to the one that was live
        /// at the floor.
        async fn segment_versions(
            connection: &mut $connection,
            key: &Key,
            (before, floor): (Revision, Revision),
            limit: u32,
        ) -> Result<Vec<Version>, Error> {
            let mut found: Vec<Version> = Vec::new();
            let mut begin = before;
            while found.len() < limit as usize {
                let segments = segments_of(&mut *connection, key, begin, floor, SEGMENTS_AT_ONCE).await?;
                let Some(oldest) = segments.last() else { break };
                begin = oldest.first();
                for segment in segments {
                    let mut end = segment.end;
                    for kept in segment.versions().iter().rev() {
                        let is_asked_for = kept.revision < before.0 && end > floor;
                        end = Revision(kept.revision);
                        if is_asked_for && found.len() < limit as usize {
                            found.push(bare_version(&segment.common, row_of(key, kept)));
                        }
                    }
                }
            }
            for versions in found.chunks_mut(CHANGES_AT_ONCE) {
                add_changes(&mut *connection, versions).await?;
            }
            Ok(found)
        }

        /// How many segments one statement asks for: most hold a page of versions.
        const SEGMENTS_AT_ONCE: u32 = 4;
        /// How many changes one statement asks for.
        const CHANGES_AT_ONCE: usize = 256;

        /// A version whose change is not known yet.
        fn bare_version(common: &Common, row: Row) -> Version {
            Version {
                revision: row.revision,
                committed_ms: None,
                event: None,
                previous: None,
                uid: common.uid.as_str().into(),
                deleted: false,
                writer: None,
                row,
            }
        }

        async fn add_changes(connection: &mut $connection, versions: &mut [Version]) -> Result<(), Error> {
            let list: Vec<String> = versions.iter().map(|version| version.revision.to_string()).collect();
            let sql = include_str!("../sql/history/changes_of.sql").replace("$1", &list.join(", "));
            let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).persistent(false).fetch_all(connection);
            let rows = rows.await.map_err(unavailable)?;
            let mut changes = HashMap::with_capacity(rows.len());
            for row in &rows {
                changes.insert(row.try_get::<i64, _>(0).map_err(corrupt)? as u64, row);
            }
            for version in versions {
                let Some(row) = changes.get(&version.revision.0) else { continue };
                version.event =
                    Some(ChangeKind::from_code(row.try_get::<i16, _>(1).map_err(corrupt)?.into())?);
                let previous: Option<i64> = row.try_get(2).map_err(corrupt)?;
                version.previous = previous.map(|revision| Revision(revision as u64));
                version.committed_ms = row.try_get(3).map_err(corrupt)?;
                version.writer = writer(row, 4)?;
            }
            Ok(())
        }
    };
}

pub(in super::super::super) use shared_segments;
