//! StorageVersionMigrations: rows in an outdated encoding are written again, through the ordinary write path, at a
//! bounded rate.
//!
//! The remaining work is in the database (`objects.stored_version`), and a migration's progress in its status, so that
//! the next leader can continue. Upstream's three controllers are one here.

mod definition;
mod pace;
mod report;
mod svm;
mod work;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use self::definition::MigrationPhase;
use self::report::Reporter;
use self::svm::{Migration, Next, Step};
use self::work::Work;
use crate::api::Api;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::{Range, State};
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Verb;

pub use self::svm::{Account, Progress};

/// The resource of the StorageVersionMigrations.
pub fn migrations() -> GroupResource {
    GroupResource::new("storagemigration.k8s.io", "storageversionmigrations")
}

/// The pause before work that cannot continue yet is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Settings of migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most objects that each migration writes per second.
    pub rate: u32,
    pub agreement: Agreement,
}

/// Whether servers publish how they encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// They do, in StorageVersions: nothing is migrated before all of them agree.
    Registered,
    Unknown,
}

pub async fn run(api: Arc<Api>, config: Config) -> Result<(), Error> {
    let migrations = api.resources.get(&Gvr::fixed("storagemigration.k8s.io/v1", "storageversionmigrations"));
    let versions = api.resources.get(&Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"));
    let (Some(migrations), Some(versions)) = (migrations.cloned(), versions.cloned()) else { return Ok(()) };
    let start = api.cache.any().revision;
    let mut changes = (api.cache.watch(migrations.id, start), api.cache.watch(versions.id, start));
    let mut migrator = Migrator {
        reporter: Reporter { api: api.clone(), resource: migrations },
        api,
        config,
        working: JoinSet::new(),
        busy: HashSet::new(),
    };
    loop {
        while !changes.0.next().await?.is_empty() {}
        while !changes.1.next().await?.is_empty() {}
        let waits = migrator.look().await?;
        tokio::select! {
            () = changes.0.changed() => {}
            () = changes.1.changed() => {}
            Some(ended) = migrator.working.join_next() => migrator.ended(ended)?,
            () = tokio::time::sleep(RETRY), if waits => {}
        }
    }
}

struct Migrator {
    api: Arc<Api>,
    config: Config,
    reporter: Reporter,
    /// Running migrations. They end with the controller.
    working: JoinSet<(GroupResource, Result<(), Error>)>,
    busy: HashSet<GroupResource>,
}

/// Whether some work can only be done later.
type Waits = bool;

impl Migrator {
    /// Carries out or starts all work that can be done now.
    async fn look(&mut self) -> Result<Waits, Error> {
        let state = self.api.cache.fresh().await?;
        let mut by_resource: BTreeMap<GroupResource, Vec<Migration>> = BTreeMap::new();
        for object in state.objects(self.reporter.resource.id).range(&Range::of(None)) {
            let migration = match object.to_map() {
                Ok(object) => Migration::of(&object),
                Err(error) => {
                    self.api.unreadable.tell("migration", object, error);
                    None
                }
            };
            if let Some(migration) = migration {
                by_resource.entry(migration.resource.clone()).or_default().push(migration);
            }
        }
        let mut waits = false;
        for (resource, migrations) in by_resource {
            if self.busy.contains(&resource) {
                continue;
            }
            match svm::next(&migrations) {
                Some(Next::CleanUp(migration)) => {
                    self.reporter.tell_definition(migration, MigrationPhase::Ends).await?;
                    self.reporter.step(&migration.name, &Step::CleanUp).await?;
                }
                Some(Next::Promote(migration)) => {
                    self.reporter.tell_definition(migration, MigrationPhase::Starts).await?;
                    self.reporter.step(&migration.name, &Step::Start).await?;
                }
                Some(Next::Work(migration)) => waits |= self.work(&state, migration).await?,
                None => {}
            }
        }
        Ok(waits)
    }

    async fn work(&mut self, state: &State, migration: &Migration) -> Result<Waits, Error> {
        let resource = match self.find(&migration.resource) {
            Found::Resource(resource) => resource,
            Found::Nothing if migration.is_young(self.api.runtime.clock.timestamp()) => return Ok(true),
            Found::Nothing => {
                return self.fail(migration, "resource does not exist in discovery".to_owned()).await;
            }
            Found::Unfit(why) => return self.fail(migration, why).await,
        };
        if let Err(hindrance) = work::agreement(&self.api, state, &resource, self.config.agreement) {
            let report = Step::Report { progress: Default::default(), hindrance: Some(hindrance) };
            self.reporter.step(&migration.name, &report).await?;
            // A change of the StorageVersion will lead to another check.
            return Ok(false);
        }
        let Some(checkpoint) = migration.checkpoint else {
            // From this revision on, all writes use the version that all servers agree on.
            let now = self.api.cache.clock().await?.revision;
            self.reporter.step(&migration.name, &Step::Checkpoint(now.0)).await?;
            return Ok(false);
        };
        let work = Work {
            api: self.api.clone(),
            config: self.config,
            reporter: self.reporter.clone(),
            name: migration.name.clone(),
            resource,
        };
        let resource = migration.resource.clone();
        self.busy.insert(resource.clone());
        self.working.spawn(async move { (resource, work.run(checkpoint).await) });
        Ok(false)
    }

    async fn fail(&self, migration: &Migration, why: String) -> Result<Waits, Error> {
        self.reporter.step(&migration.name, &Step::Fail(why)).await?;
        Ok(false)
    }

    /// Looks the resource up in its storage version.
    fn find(&self, name: &GroupResource) -> Found {
        let resources = self.api.catalog.served();
        let versions = resources.registry().group(&name.group).map(|group| &group.versions[..]);
        let served = versions
            .unwrap_or_default()
            .iter()
            .find_map(|version| resources.registry().lookup(&version.name.with_plural(name.plural.clone())));
        let Some(served) = served else { return Found::Nothing };
        if [Verb::Update, Verb::Patch, Verb::List].into_iter().any(|verb| !served.allows(verb)) {
            let (group, version, plural) = (served.group(), served.version(), &served.plural);
            return Found::Unfit(format!(
                "resource \"{group}/{version}, Resource={plural}\" does not support discovery operations: [update patch list]"
            ));
        }
        let id = resources.get(&served.gvr()).map(|resource| resource.id);
        match id.and_then(|id| resources.by_id(id)) {
            Some(resource) => Found::Resource(resource.clone()),
            None => Found::Nothing,
        }
    }

    fn ended(
        &mut self,
        ended: Result<(GroupResource, Result<(), Error>), tokio::task::JoinError>,
    ) -> Result<(), Error> {
        let (resource, result) = ended.map_err(|error| Error::Internal(error.to_string()))?;
        self.busy.remove(&resource);
        result
    }
}

enum Found {
    Resource(Arc<Resource>),
    Nothing,
    /// It is served, but cannot be migrated.
    Unfit(String),
}
