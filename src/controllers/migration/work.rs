//! Migrates the rows of one resource, page by page.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::pace::Pace;
use super::report::Reporter;
use super::svm::{Progress, Step, failure};
use super::{Agreement, Config};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::storage_version::common_encoding;
use crate::api::storage_version::registration::storage_version_name;
use crate::cache::State;
use crate::codec::object::Undecodable;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::schema::resource::Storage;
use crate::storage::StaleRow;

/// Rows per page. At a low rate there are fewer, since other conditions are checked between pages.
const PAGE: u32 = 256;
const PAGES_PER_SECOND: u32 = 10;
/// Concurrent writes: enough to share commits, few enough to leave room in each commit for clients' writes.
const AT_ONCE: usize = 64;
/// The time between two reports of progress.
const REPORTS: Duration = Duration::from_secs(1);
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

/// One running migration.
pub struct Work {
    pub api: Arc<Api>,
    pub config: Config,
    pub reporter: Reporter,
    pub name: String,
    pub resource: Arc<Resource>,
}

/// Whether all servers encode the resource as this one does. The error says how they encode.
pub fn agreement(api: &Api, state: &State, resource: &Resource, agreement: Agreement) -> Result<(), String> {
    if agreement == Agreement::Unknown {
        return Ok(());
    }
    let common = common(api, state, resource);
    match common.as_deref() {
        Some(version) if *version == *resource.stored_version => Ok(()),
        Some(version) => Err(format!("the common encoding version is {version}")),
        None => Err("the API servers do not agree on an encoding version".to_owned()),
    }
}

fn common(api: &Api, state: &State, resource: &Resource) -> Option<String> {
    let Storage::Table { resource: stored, .. } = &resource.definition.storage else { return None };
    let versions = api.resources.get(&Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"))?;
    let found = state.get(versions.id, "", &storage_version_name(stored))?;
    let told = |error: &Undecodable| api.unreadable.tell("migration", &found, error);
    // A StorageVersion that cannot be read is no agreement.
    let object = found.to_map().inspect_err(told).ok()?;
    common_encoding(&object).map(str::to_owned)
}

impl Work {
    /// Migrates everything that was written up to the checkpoint, or says why that is impossible.
    pub async fn run(self, checkpoint: u64) -> Result<(), Error> {
        let stale = self.api.stale(&self.resource, Revision(checkpoint));
        let backend = self.api.store.backend();
        let all = backend.stale_count(&stale).await?;
        let mut progress = Progress { all, left: all };
        let size = (self.config.rate / PAGES_PER_SECOND).clamp(1, PAGE);
        let mut pace = Pace::new(self.config.rate, Instant::now(), self.api.cache.revision());
        let (mut cursor, mut backoff, mut reported) = (None::<StaleRow>, FIRST_BACKOFF, Instant::now());
        while self.reporter.exists(&self.name) {
            let state = self.api.cache.any();
            if let Err(changed) = agreement(&self.api, &state, &self.resource, self.config.agreement) {
                let why = format!("aborted, because servers have changed how they encode: {changed}");
                return self.end(Step::Fail(failure(progress, &why))).await;
            }
            let after = cursor.as_ref().map_or(("", ""), |row| (&*row.key.namespace, &*row.key.name));
            let began = Instant::now();
            let page = match backend.stale_rows(&stale, after, pace.page(size)).await {
                Ok(page) => page,
                Err(error) => {
                    self.wait(progress, &error.into(), &mut backoff).await?;
                    continue;
                }
            };
            let Some(last) = page.last() else { return self.end(Step::Succeed(progress)).await };
            match self.rewrite(&page).await {
                Ok(()) => {}
                Err(error) if is_transient(&error) => {
                    // A part of the page may have been written.
                    progress.left = backend.stale_count(&stale).await.unwrap_or(progress.left);
                    self.wait(progress, &error, &mut backoff).await?;
                    continue;
                }
                Err(error) => return self.end(Step::Fail(failure(progress, &error.to_string()))).await,
            }
            backoff = FIRST_BACKOFF;
            progress.left = progress.left.saturating_sub(page.len() as u64);
            self.count(page.len(), progress.left);
            cursor = Some(last.clone());
            if reported.elapsed() >= REPORTS {
                self.reporter.step(&self.name, &Step::Report { progress, hindrance: None }).await?;
                reported = Instant::now();
            }
            let now = self.api.cache.revision();
            tokio::time::sleep(pace.rest(page.len(), began, Instant::now(), now)).await;
        }
        Ok(())
    }

    /// A definition may change while its objects are migrated. Another storage version is noticed elsewhere.
    fn newest_form(&self) -> Arc<Resource> {
        let served = self.api.catalog.served();
        let newest = served.get(&self.resource.definition.gvr());
        newest
            .filter(|newest| newest.stored_version == self.resource.stored_version)
            .unwrap_or(&self.resource)
            .clone()
    }

    /// Writes all rows of a page, and returns the first failure.
    async fn rewrite(&self, page: &[StaleRow]) -> Result<(), Error> {
        let resource = self.newest_form();
        self.api.foresee(&resource, page).await?;
        let writes = futures_util::stream::iter(page.to_vec()).map(|row| {
            let (api, resource) = (self.api.clone(), resource.clone());
            async move { api.rewrite(&resource, &row).await }
        });
        let mut results = writes.buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some(result) = results.next().await {
            if let Err(error) = result {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn wait(&self, progress: Progress, error: &Error, backoff: &mut Duration) -> Result<(), Error> {
        tracing::warn!(%error, name = self.name, "a migration waits");
        let report = Step::Report { progress, hindrance: Some(error.to_string()) };
        // Writing the status may fail for the same reason as writing the objects.
        if let Err(error) = self.reporter.step(&self.name, &report).await {
            tracing::debug!(%error, name = self.name, "cannot say so in its status");
        }
        tokio::time::sleep(*backoff).await;
        *backoff = (*backoff * 2).min(LONGEST_BACKOFF);
        Ok(())
    }

    async fn end(&self, step: Step) -> Result<(), Error> {
        let status = if matches!(step, Step::Fail(_)) { "Failed" } else { "Succeeded" };
        self.api.runtime.metrics.migrations(&self.label(), status).increment(1);
        self.reporter.step(&self.name, &step).await
    }

    fn count(&self, migrated: usize, left: u64) {
        let (metrics, resource) = (&self.api.runtime.metrics, self.label());
        metrics.migrated_objects(&resource).increment(migrated as u64);
        metrics.objects_to_migrate(&resource).set(left as f64);
    }

    fn label(&self) -> String {
        self.resource.group_resource().to_string()
    }
}

/// Whether another attempt may succeed.
fn is_transient(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable { .. }
            | Error::Datastore(_)
            | Error::TooManyRequests { .. }
            | Error::ServerTimeout { .. }
            | Error::Timeout(_)
            | Error::FutureRevision { .. }
    )
}
