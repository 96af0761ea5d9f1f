//! Queries in words that both databases understand. Their functions are made once for each, by macros that the database's modules
//! call, since sqlx has other types for each database.

/// Makes queries that take a connection, and the readers of rows. `$change` is the first column of a change.
macro_rules! shared_queries {
    ($connection:ty, $row:ty, $change:literal) => {
        /// The clock, as the connection sees it.
        pub async fn clock(connection: &mut $connection) -> Result<Clock, Error> {
            let clock = sqlx::query_as("SELECT revision, compacted, lag FROM clock").fetch_one(connection);
            clock.await.map(clock_of).map_err(unavailable)
        }

        fn clock_of((revision, compacted, lag): (i64, i64, i64)) -> Clock {
            Clock { revision: Revision(revision as u64), compacted: Revision(compacted as u64), lag }
        }

        /// The lag at a revision that can be read in the connection's snapshot.
        pub async fn lag_at(connection: &mut $connection, at: Revision) -> Result<i64, Error> {
            let lag = sqlx::query_scalar(include_str!("../sql/lag_at.sql")).bind(at.0 as i64);
            lag.fetch_one(connection).await.map_err(unavailable)
        }

        /// The last revision at which one in etcd's terms is the newest, in the connection's snapshot, whose clock is this.
        pub async fn sequence_of(
            connection: &mut $connection,
            clock: Clock,
            revision: i64,
        ) -> Result<Revision, Error> {
            let compacted = clock.compacted.0 as i64;
            let lag = lag_at(connection, clock.compacted).await?;
            $crate::storage::sequence::check_counted(revision, compacted - lag, clock.etcd_revision())?;
            if revision == clock.etcd_revision() {
                return Ok(clock.revision);
            }
            let last = sqlx::query_scalar(include_str!("../sql/sequence_of.sql"));
            let last: i64 = last
                .bind(compacted)
                .bind(lag)
                .bind(revision)
                .fetch_one(connection)
                .await
                .map_err(unavailable)?;
            Ok(Revision(last as u64))
        }

        /// Rows of a resource that are stored in an outdated encoding, after a namespace and a name.
        pub async fn stale_rows(
            connection: &mut $connection,
            stale: &Stale,
            after: (&str, &str),
            limit: u32,
        ) -> Result<Vec<StaleRow>, Error> {
            let (prefix, wanted) = stale.wanted();
            let found = sqlx::query_as($crate::storage::stale::ROWS)
                .bind(stale.resource.0)
                .bind(after.0)
                .bind(after.1)
                .bind(stale.through.0 as i64)
                .bind(&*stale.api_version)
                .bind(wanted)
                .bind(prefix)
                .bind(i64::from(limit))
                .fetch_all(connection)
                .await
                .map_err(unavailable)?;
            Ok(stale.rows(found))
        }

        /// The number of a resource's rows that are stored in an outdated encoding.
        pub async fn stale_count(connection: &mut $connection, stale: &Stale) -> Result<u64, Error> {
            let (prefix, wanted) = stale.wanted();
            let count: i64 = sqlx::query_scalar($crate::storage::stale::COUNT)
                .bind(stale.resource.0)
                .bind(stale.through.0 as i64)
                .bind(&*stale.api_version)
                .bind(wanted)
                .bind(prefix)
                .fetch_one(connection)
                .await
                .map_err(unavailable)?;
            Ok(count as u64)
        }

        /// A row whose first columns are namespace, name, revision and value.
        pub fn live_row(row: $row, resource: ResourceId) -> Result<Row, Error> {
            let revision: i64 = row.try_get(2).map_err(corrupt)?;
            Ok(Row {
                resource,
                namespace: row.try_get::<String, _>(0).map_err(corrupt)?.into(),
                name: row.try_get::<String, _>(1).map_err(corrupt)?.into(),
                revision: Revision(revision as u64),
                value: row.try_get::<Vec<u8>, _>(3).map_err(corrupt)?.into(),
            })
        }

        fn change_row(row: &$row) -> Result<ChangeRow, Error> {
            let revision: i64 = row.try_get($change).map_err(corrupt)?;
            let resource: i32 = row.try_get($change + 1).map_err(corrupt)?;
            let namespace: &str = row.try_get($change + 2).map_err(corrupt)?;
            let name: &str = row.try_get($change + 3).map_err(corrupt)?;
            let kind = ChangeKind::from_code(row.try_get::<i16, _>($change + 4).map_err(corrupt)?.into())?;
            let previous: Option<i64> = row.try_get($change + 5).map_err(corrupt)?;
            let value: Vec<u8> = row.try_get($change + 6).map_err(corrupt)?;
            let before: Option<Vec<u8>> = row.try_get($change + 7).map_err(corrupt)?;
            let previous = previous.zip(before);
            let counting = Counting::from_code(row.try_get($change + 8).map_err(corrupt)?)?;
            Ok(ChangeRow {
                revision: Revision(revision as u64),
                key: Key::new(ResourceId(resource), namespace, name),
                kind,
                value: (kind != ChangeKind::Deleted).then(|| Bytes::from(value)),
                previous: previous.map(|(revision, value)| (Revision(revision as u64), value.into())),
                counting,
            })
        }
    };
}

/// Makes queries of audit events.
macro_rules! shared_audit {
    ($connection:ty) => {
        /// Removes events that are too old, too many or too large.
        pub async fn remove(connection: &mut $connection, removal: AuditRemoval) -> Result<u64, Error> {
            let mut removed = 0;
            for (sql, bound) in removals(&removal) {
                let done = sqlx::query(AssertSqlSafe(sql)).bind(bound).bind(i64::from(removal.limit));
                removed += done.execute(&mut *connection).await.map_err(unavailable)?.rows_affected();
            }
            Ok(removed)
        }

        /// The newest events that are asked for, the oldest of them first.
        pub async fn find(
            connection: &mut $connection,
            query: &AuditQuery,
            has_others: bool,
        ) -> Result<Vec<Bytes>, Error> {
            let (object, prefix) = query.object_and_prefix();
            let found = sqlx::query_scalar(AssertSqlSafe(selection(has_others)))
                .bind(query.since)
                .bind(query.user.as_deref())
                .bind(query.verb.as_deref())
                .bind(object)
                .bind(prefix)
                .bind(i64::from(query.limit));
            let found: Vec<Vec<u8>> = found.fetch_all(connection).await.map_err(unavailable)?;
            Ok(found.into_iter().rev().map(Bytes::from).collect())
        }
    };
}

/// Makes the reads of a whole store that is at `$place`. The calling module has `snapshot`, which begins them, and
/// `extent`, the size of the store, and says from which migrations on there are audit events of requests that write
/// nothing, and history.
macro_rules! snapshot_reads {
    ($store:ty, $place:ty, $connection:ty, $others:expr, $history:expr) => {
        impl $store {
            /// The newest state of the store, from one snapshot. Takes no lock: servers go on writing.
            pub async fn export(place: &$place) -> Result<Export, Error> {
                let Snapshot { mut connection, revision, lag, .. } = snapshot(place).await?;
                let count = sqlx::query_scalar(transfer::LIVE_COUNT).fetch_one(&mut connection);
                let count: i64 = count.await.map_err(unavailable)?;
                let (sender, receiver) = mpsc::channel(transfer::BATCHES_AHEAD);
                let batches = stream(receiver, async move { send(&mut connection, lag, &sender).await });
                Ok(Export {
                    revision,
                    gap: storage::SAFETY_GAP,
                    length: Length::Objects(count as u64),
                    batches,
                })
            }

            /// The contents of the store, from one snapshot. Takes no lock.
            pub async fn inventory(place: &$place) -> Result<Inventory, Error> {
                let Snapshot { mut connection, revision, schema, .. } = snapshot(place).await?;
                let stored = sqlx::query_as(inventory::STORED_VERSIONS).bind(PROTOBUF).bind(ENCRYPTED);
                let stored = stored.fetch_all(&mut connection).await.map_err(unavailable)?;
                let sealed = sqlx::query_as(inventory::SEALED_HEADS).bind(ENCRYPTED);
                let sealed = sealed.bind(inventory::SEALED_HEAD);
                let sealed = sealed.fetch_all(&mut connection).await.map_err(unavailable)?;
                let registered = match schema >= inventory::REGISTRY {
                    true => sqlx::query_as(inventory::REGISTERED_VERSIONS)
                        .fetch_all(&mut connection)
                        .await
                        .map_err(unavailable)?,
                    false => Vec::new(),
                };
                let history = match schema >= $history {
                    true => super::history::of_resources(&mut connection).await?,
                    false => Vec::new(),
                };
                let extent = extent(&mut connection).await?;
                Ok(Inventory::new(revision, extent, history, stored, sealed, registered))
            }

            /// The objects that are longer than a limit, from one snapshot. Takes no lock.
            pub async fn long_objects(place: &$place, limit: usize) -> Result<Vec<LongObject>, Error> {
                let Snapshot { mut connection, .. } = snapshot(place).await?;
                let (head, tail) = inventory::ENDS;
                let rows = sqlx::query_as(inventory::LONG_OBJECTS)
                    .bind(inventory::shortest_of(limit))
                    .bind(head)
                    .bind(tail);
                let rows = rows.fetch_all(&mut connection).await.map_err(unavailable)?;
                Ok(inventory::long_objects(rows, limit))
            }

            /// The objects of a resource, from one snapshot. Takes no lock.
            pub async fn live_objects(
                place: &$place,
                resource: &GroupResource,
            ) -> Result<Vec<StoredObject>, Error> {
                let Snapshot { mut connection, .. } = snapshot(place).await?;
                let rows = sqlx::query_as(transfer::LIVE_OBJECTS_OF);
                let rows = rows.bind(&*resource.group).bind(&*resource.plural);
                let rows: Vec<ObjectRow> = rows.fetch_all(&mut connection).await.map_err(unavailable)?;
                Ok(rows.into_iter().map(StoredObject::from).collect())
            }

            /// The audit events that are asked for, from one snapshot. Takes no lock.
            pub async fn audit_events(place: &$place, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
                let Snapshot { mut connection, schema, .. } = snapshot(place).await?;
                if schema < storage::audit::MIGRATION {
                    return Ok(Vec::new());
                }
                Ok(super::audit::find(&mut connection, query, schema >= $others).await?)
            }
        }

        /// A connection that holds a snapshot of a store that is only read.
        struct Snapshot {
            connection: $connection,
            revision: Revision,
            /// See [`Clock::lag`](storage::Clock::lag).
            lag: i64,
            /// The schema's newest migration.
            schema: i64,
        }

        /// Sends everything in the connection's snapshot, until the receiver is gone.
        async fn send(
            connection: &mut $connection,
            lag: i64,
            batches: &mpsc::Sender<Result<Vec<Record>, Error>>,
        ) {
            let keys = sqlx::query_as(transfer::TOKEN_KEYS).fetch_all(&mut *connection).await;
            let keys = match keys.map_err(unavailable) {
                Ok(keys) => keys,
                Err(error) => return drop(batches.send(Err(error.into())).await),
            };
            let objects = sqlx::query_as(transfer::LIVE_OBJECTS).fetch(connection).map_err(unavailable);
            transfer::send(lag, keys, objects, batches).await;
        }
    };
}

pub(super) use {shared_audit, shared_queries, snapshot_reads};
