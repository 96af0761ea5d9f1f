//! Reads of the past in words that both databases understand; see `storage/shared.rs`.

/// Makes the reads, each of which takes a connection that holds a snapshot.
macro_rules! shared_history {
    ($connection:ty, $row:ty) => {
        use std::cmp::Reverse;
        use std::collections::HashMap;

        use $crate::schema::names::GroupResource;
        use $crate::storage::history::{
            ChangeFilter, ChangeOfPast, Holding, Moment, PastError, Precision, Present, Version, Writer,
        };

        use $crate::storage::inventory::ResourceHistory;

        /// The newest commit at or before a time that is before the newest commit of all.
        pub async fn earlier_moment(connection: &mut $connection, ms: i64) -> Result<Moment, PastError> {
            let found: Option<(i64, i64, Option<i64>, Option<i64>)> =
                sqlx::query_as(include_str!("../sql/history/moment_at.sql"))
                    .bind(ms)
                    .fetch_optional(connection)
                    .await
                    .map_err(unavailable)?;
            let (revision, at, later, stamp) = found.ok_or(PastError::BeforeFirst)?;
            let (revision, committed_ms) = later.zip(stamp).unwrap_or((revision, at));
            Ok(Moment { revision: Revision(revision as u64), committed_ms })
        }

        /// When a revision was committed that is not after the newest one.
        pub async fn moment_of(
            connection: &mut $connection,
            newest: Moment,
            revision: Revision,
        ) -> Result<(Moment, Precision), Error> {
            let found: (Option<i64>, Option<i64>, Option<i64>) =
                sqlx::query_as(include_str!("../sql/history/moment_of.sql"))
                    .bind(revision.0 as i64)
                    .fetch_one(connection)
                    .await
                    .map_err(unavailable)?;
            let (committed_ms, precision) = match found {
                (Some(stamp), _, _) => (stamp, Precision::Exact),
                _ if revision == newest.revision => (newest.committed_ms, Precision::Exact),
                (None, Some(before), after) => {
                    let after = after.unwrap_or(newest.committed_ms);
                    match after - before {
                        0 => (after, Precision::Exact),
                        ms => (after, Precision::Within { ms }),
                    }
                }
                (None, None, after) => (after.unwrap_or(newest.committed_ms), Precision::Before),
            };
            Ok((Moment { revision, committed_ms }, precision))
        }

        /// The oldest revision at which a resource can be read.
        pub async fn floor(connection: &mut $connection, resource: ResourceId) -> Result<Revision, Error> {
            let floor = sqlx::query_scalar(include_str!("../sql/history/floor.sql")).bind(resource.0);
            let floor: i64 = floor.fetch_one(connection).await.map_err(unavailable)?;
            Ok(Revision(floor as u64))
        }

        /// The number of changes at or below the floors of their resources.
        pub async fn unswept(connection: &mut $connection) -> Result<u64, Error> {
            let count = sqlx::query_scalar(include_str!("../sql/history/unswept.sql")).fetch_one(connection);
            let count: i64 = count.await.map_err(unavailable)?;
            Ok(count as u64)
        }

        /// The resources that have changes, and about how much history they have.
        pub async fn holdings(connection: &mut $connection) -> Result<Vec<Holding>, Error> {
            let rows = sqlx::query_as(include_str!("../sql/history/holdings.sql")).fetch_all(connection);
            let rows: Vec<(i32, i64, i64, i64, i64, i64)> = rows.await.map_err(unavailable)?;
            Ok(rows.into_iter().map(Holding::new).collect())
        }

        /// How much history each resource has, but for hidden ones.
        pub async fn of_resources(connection: &mut $connection) -> Result<Vec<ResourceHistory>, Error> {
            let clock =
                sqlx::query_as("SELECT revision, committed_ms FROM clock").fetch_one(&mut *connection);
            let (revision, committed_ms): (i64, i64) = clock.await.map_err(unavailable)?;
            let newest = Moment { revision: Revision(revision as u64), committed_ms };
            let names: HashMap<ResourceId, GroupResource> =
                resources(&mut *connection).await?.into_iter().collect();
            let mut found = Vec::new();
            for Holding { resource, floor, changes, bytes } in holdings(&mut *connection).await? {
                let Some(resource) = names.get(&resource).cloned() else { continue };
                let (floor, _) = moment_of(&mut *connection, newest, floor).await?;
                found.push(ResourceHistory { resource, floor, changes, bytes });
            }
            found.retain(ResourceHistory::is_shown);
            found.sort_by(|a, b| a.resource.cmp(&b.resource));
            Ok(found)
        }

        /// The change of a resource that has `before` older ones.
        pub async fn nth_change(
            connection: &mut $connection,
            resource: ResourceId,
            before: u64,
        ) -> Result<Option<Revision>, Error> {
            let found: Option<i64> = sqlx::query_scalar(include_str!("../sql/history/nth_change.sql"))
                .bind(resource.0)
                .bind(before as i64)
                .fetch_optional(connection)
                .await
                .map_err(unavailable)?;
            Ok(found.map(|revision| Revision(revision as u64)))
        }

        /// All resources that have ever had a number.
        pub async fn resources(
            connection: &mut $connection,
        ) -> Result<Vec<(ResourceId, GroupResource)>, Error> {
            let rows = sqlx::query_as("SELECT id, api_group, plural FROM resources").fetch_all(connection);
            let rows: Vec<(i32, String, String)> = rows.await.map_err(unavailable)?;
            let resource = |(id, group, plural): (i32, String, String)| {
                (ResourceId(id), GroupResource::new(&group, &plural))
            };
            Ok(rows.into_iter().map(resource).collect())
        }

        /// Fails unless a resource can be read at a revision.
        pub async fn check_past(
            connection: &mut $connection,
            newest: Moment,
            resource: ResourceId,
            at: Revision,
        ) -> Result<(), PastError> {
            if at > newest.revision {
                return Err(Error::Future { requested: at, current: newest.revision }.into());
            }
            let floor = floor(&mut *connection, resource).await?;
            if at < floor {
                let (floor, _) = moment_of(connection, newest, floor).await?;
                return Err(PastError::Expired { resource, floor });
            }
            Ok(())
        }

        /// The version of a key that was live at a revision.
        pub async fn row_at(
            connection: &mut $connection,
            key: &Key,
            at: Revision,
        ) -> Result<Option<Row>, Error> {
            let row = sqlx::query(include_str!("../sql/history/row_at.sql"))
                .bind(key.resource.0)
                .bind(&*key.namespace)
                .bind(&*key.name)
                .bind(at.0 as i64)
                .fetch_optional(&mut *connection)
                .await
                .map_err(unavailable)?;
            match row {
                Some(row) if !row.try_get::<bool, _>(4).map_err(corrupt)? => {
                    live_row(row, key.resource).map(Some)
                }
                _ => segment_row_at(connection, key, at).await,
            }
        }

        /// Versions of a key below a revision, newest first.
        pub async fn versions_of(
            connection: &mut $connection,
            key: &Key,
            before: Revision,
            limit: u32,
        ) -> Result<Vec<Version>, Error> {
            let floor = floor(&mut *connection, key.resource).await?;
            let mut moved = segment_versions(&mut *connection, key, (before, floor), limit).await?;
            let rows = sqlx::query(include_str!("../sql/history/versions_of.sql"))
                .bind(key.resource.0)
                .bind(&*key.namespace)
                .bind(&*key.name)
                .bind(before.0 as i64)
                .bind(floor.0 as i64)
                .bind(i64::from(limit))
                .fetch_all(connection)
                .await
                .map_err(unavailable)?;
            let rows = rows.into_iter().map(|row| version(row, key.resource));
            let mut versions = rows.collect::<Result<Vec<_>, _>>()?;
            versions.append(&mut moved);
            versions.sort_by_key(|version| Reverse(version.revision));
            versions.truncate(limit as usize);
            Ok(versions)
        }

        fn version(row: $row, resource: ResourceId) -> Result<Version, Error> {
            let event: Option<i16> = row.try_get(6).map_err(corrupt)?;
            let previous: Option<i64> = row.try_get(7).map_err(corrupt)?;
            Ok(Version {
                revision: Revision(row.try_get::<i64, _>(2).map_err(corrupt)? as u64),
                committed_ms: row.try_get(8).map_err(corrupt)?,
                event: event.map(|code| ChangeKind::from_code(code.into())).transpose()?,
                previous: previous.map(|revision| Revision(revision as u64)),
                uid: row.try_get::<String, _>(5).map_err(corrupt)?.into(),
                deleted: row.try_get(4).map_err(corrupt)?,
                writer: writer(&row, 9)?,
                row: live_row(row, resource)?,
            })
        }

        /// Changes between two revisions, newest first.
        pub async fn changes_between(
            connection: &mut $connection,
            filter: &ChangeFilter,
            (after, before): (Revision, Revision),
            limit: u32,
        ) -> Result<Vec<ChangeOfPast>, Error> {
            let sql = match filter.resource {
                None => include_str!("../sql/history/changes_between.sql"),
                Some(_) => include_str!("../sql/history/changes_of_resource_between.sql"),
            };
            let mut query = sqlx::query(sql)
                .bind(filter.namespace.as_deref())
                .bind(after.0 as i64)
                .bind(before.0 as i64)
                .bind(i64::from(limit));
            if let Some(resource) = filter.resource {
                query = query.bind(resource.0);
            }
            let rows = query.fetch_all(connection).await.map_err(unavailable)?;
            rows.iter().map(change_of_past).collect()
        }

        fn change_of_past(row: &$row) -> Result<ChangeOfPast, Error> {
            let text = |column: usize| row.try_get::<String, _>(column).map_err(corrupt);
            let previous: Option<i64> = row.try_get(5).map_err(corrupt)?;
            Ok(ChangeOfPast {
                revision: Revision(row.try_get::<i64, _>(0).map_err(corrupt)? as u64),
                resource: ResourceId(row.try_get(1).map_err(corrupt)?),
                namespace: text(2)?.into(),
                name: text(3)?.into(),
                event: ChangeKind::from_code(row.try_get::<i16, _>(4).map_err(corrupt)?.into())?,
                previous: previous.map(|revision| Revision(revision as u64)),
                committed_ms: row.try_get(6).map_err(corrupt)?,
                uid: text(7)?.into(),
                writer: writer(row, 8)?,
            })
        }

        /// The writer in six columns from `first` on; `None` if they are NULL.
        fn writer(row: &$row, first: usize) -> Result<Option<Writer>, Error> {
            let text = |column: usize| row.try_get::<Option<String>, _>(first + column).map_err(corrupt);
            let Some(username) = text(0)? else { return Ok(None) };
            Ok(Some(Writer {
                username,
                impersonator: text(1)?.unwrap_or_default(),
                verb: text(2)?.unwrap_or_default(),
                subresource: text(3)?.unwrap_or_default(),
                manager: text(4)?.unwrap_or_default(),
                client: text(5)?.unwrap_or_default(),
            }))
        }
    };
}

pub(in super::super) use shared_history;
