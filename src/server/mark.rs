//! The high-water mark of a store, which is kept outside of its database (ARCHITECTURE.md, 10), and the end of a server whose
//! database cannot be relied on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::datastore::Datastore;
use crate::revision::Revision;
use crate::storage::{self, Backend, HighWaterMark, SAFETY_GAP};
use crate::tasks::{Failure, Tasks};

/// The period at which the mark is saved.
const PERIOD: Duration = Duration::from_secs(1);

/// The mark that was saved last.
pub fn load(datastore: &Datastore, schema: Option<&str>, data_dir: Option<&Path>) -> Arc<HighWaterMark> {
    let path = path(datastore, schema, data_dir);
    Arc::new(path.map_or_else(HighWaterMark::default, HighWaterMark::load))
}

/// The path of the high-water mark: one file per database and schema, since each has a clock of its own. A store in memory has
/// none, since it cannot come back in an older state.
fn path(datastore: &Datastore, schema: Option<&str>, data_dir: Option<&Path>) -> Option<PathBuf> {
    if *datastore == Datastore::Memory {
        return None;
    }
    let schema = schema.map(|schema| format!(" {schema}")).unwrap_or_default();
    let digest = Sha256::digest(format!("{datastore}{schema}"));
    let name: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Some(data_dir?.join(format!("mark-{name}")))
}

/// Advances the clock of a database that has lost revisions which it had acknowledged.
pub async fn repair_clock(backend: &dyn Backend, mark: &HighWaterMark) -> Result<(), storage::Error> {
    let (clock, floor) = (backend.clock().await?, mark.get());
    if clock.revision < floor {
        tracing::error!(
            found = %clock.revision,
            %floor,
            "the database has lost acknowledged commits; its clock is moved ahead and older history is given up"
        );
        backend.advance_clock(Revision(floor.0 + SAFETY_GAP)).await?;
    }
    Ok(())
}

/// Saves the mark again and again.
pub async fn keep_saved(mark: Arc<HighWaterMark>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        save(&mark).await;
    }
}

/// Saves the mark on a thread of its own, since the disk may be slow.
pub async fn save(mark: &Arc<HighWaterMark>) {
    let mark = mark.clone();
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || mark.save()).await {
        tracing::warn!(%error, "cannot save the high-water mark");
    }
}

/// Ends the server when the contents of its database cannot be relied on any more.
pub fn end_when_broken(tasks: &Tasks, backend: &Arc<dyn Backend>) {
    let (backend, server) = (backend.clone(), tasks.clone());
    tasks.run("store-failure", async move {
        server.fail(Failure::Store(backend.broken().await));
        std::future::pending::<()>().await;
    });
}
