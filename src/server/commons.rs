//! The means that clusters of a process share, and the opening of their stores.

use std::sync::Arc;

use super::config::Config;
use super::datastore::Datastore;
use crate::http::limits::Printing;
use crate::long_work::Lanes;
use crate::scheduling::Scheduling;
use crate::storage::memory::Memory;
#[cfg(feature = "postgres")]
use crate::storage::postgres::Databases;
#[cfg(feature = "sqlite")]
use crate::storage::sqlite::Sqlite;
use crate::storage::{Backend, OpenError};
use crate::wall_clock::WallClock;

/// The means that the clusters of a process share, since they have its processors in common. Clones are the same process's.
///
/// Nothing of a cluster is in it: what one cluster has must be neither seen nor used up by another one.
#[derive(Clone, Debug, Default)]
pub struct Commons {
    /// The hints that threads of stores and those of connections give each other.
    pub scheduling: Scheduling,
    /// The threads for work on large stored objects.
    pub lanes: Lanes,
    /// The threads for requests with large bodies. A request may hold one of them while it waits for one of [`Commons::lanes`].
    pub body_lanes: Lanes,
    /// The threads for answers that take long to print.
    pub printing: Printing,
    /// The connections to databases of PostgreSQL.
    #[cfg(feature = "postgres")]
    databases: Databases,
}

impl Commons {
    /// Opens the store of a cluster, with what the stores of the process share.
    pub async fn open(&self, config: &Config, clock: WallClock) -> Result<Arc<dyn Backend>, OpenError> {
        self.open_store(&config.datastore, config.schema.as_deref(), clock).await
    }

    /// Opens a store, in a schema of its database if one is named.
    pub async fn open_store(
        &self,
        datastore: &Datastore,
        schema: Option<&str>,
        clock: WallClock,
    ) -> Result<Arc<dyn Backend>, OpenError> {
        if let (Some(schema), Datastore::Memory | Datastore::Sqlite(_)) = (schema, datastore) {
            let reason = format!("it has no schemas, such as {schema:?}");
            return Err(OpenError::Refused { url: datastore.to_string(), reason });
        }
        Ok(match datastore {
            Datastore::Memory => Arc::new(Memory::new(clock)),
            #[cfg(feature = "sqlite")]
            Datastore::Sqlite(path) => {
                Arc::new(Sqlite::open_beside(path, self.scheduling.clone(), clock).await?)
            }
            #[cfg(not(feature = "sqlite"))]
            Datastore::Sqlite(_) => {
                let reason = "rowplane is compiled without its feature `sqlite`".to_owned();
                return Err(OpenError::Refused { url: datastore.to_string(), reason });
            }
            #[cfg(feature = "postgres")]
            Datastore::Postgres(address) => Arc::new(self.databases.open(address.clone(), schema).await?),
        })
    }
}
