//! Reports a migration's progress in its status and in events.

use std::sync::Arc;

use rand::RngExt as _;

use super::svm::{self, Step};
use crate::api::error::Error;
use crate::api::input::decode::Body;
use crate::api::input::options::write::WriteOptions;
use crate::api::input::options::{GetOptions, ReadAt};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, meta, metadata};
use crate::kinds::behavior::part::Part;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const MANAGER: &str = "storage-version-migrator-controller";
/// The namespace of events about cluster-scoped objects.
const NAMESPACE: &str = "default";

#[derive(Clone)]
pub struct Reporter {
    pub api: Arc<Api>,
    /// The resource of StorageVersionMigrations.
    pub resource: Arc<Resource>,
}

impl Reporter {
    /// Applies a step to a migration's status, if the migration still exists.
    pub async fn step(&self, name: &str, step: &Step) -> Result<(), Error> {
        let target = Target { resource: &self.resource, namespace: "", name };
        loop {
            let found = match self.api.get(target, GetOptions { at: ReadAt::Latest }).await {
                Ok(found) => found,
                Err(Error::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut object = self.resource.decode(&found)?;
            svm::take(&mut object, step, &self.api.now());
            let event = self.event(&object, step);
            let options = options();
            let request = Request::own(Verb::Update, target).on(Part::Status).with(&options);
            match self.api.update(&request, Body::Object(&object)).await {
                Ok(_) => {
                    if let Some(event) = event {
                        self.tell(event).await;
                    }
                    return Ok(());
                }
                Err(Error::NotFound { .. }) => return Ok(()),
                // Someone else has written the object; the step stays the same.
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the migration still exists.
    pub fn exists(&self, name: &str) -> bool {
        self.api.cache.any().get(self.resource.id, "", name).is_some()
    }

    fn event(&self, migration: &ObjectMap, step: &Step) -> Option<ObjectMap> {
        let (kind, reason, message) = match step {
            Step::Start => ("Normal", "MigrationRunning", "The migration is running".to_owned()),
            Step::Succeed(progress) => (
                "Normal",
                "MigrationSucceeded",
                format!("Migration completed, {} objects were stale", progress.all),
            ),
            Step::Fail(why) => ("Warning", "MigrationFailed", why.clone()),
            Step::Checkpoint(_) | Step::Report { .. } | Step::CleanUp => return None,
        };
        let metadata = metadata(migration)?;
        let (name, now) = (meta::text(metadata, "name"), self.api.now());
        let event = json!({
            "kind": "Event", "apiVersion": "v1",
            "metadata": {"name": format!("{name}.{:016x}", self.api.runtime.random.with(|rng| rng.random::<u64>())), "namespace": NAMESPACE},
            "involvedObject": {
                "kind": "StorageVersionMigration", "apiVersion": "storagemigration.k8s.io/v1",
                "name": name, "uid": meta::text(metadata, "uid"),
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": MANAGER}, "reportingComponent": MANAGER,
        });
        match event {
            Value::Object(event) => Some(event),
            _ => None,
        }
    }

    async fn tell(&self, event: ObjectMap) {
        let Some(events) = self.api.resources.get(&Gvr::fixed("v1", "events")) else { return };
        let (options, target) = (options(), Target { resource: events, namespace: NAMESPACE, name: "" });
        let request = Request::own(Verb::Create, target).with(&options);
        if let Err(error) = self.api.create(&request, Body::Object(&event)).await {
            tracing::debug!(%error, "cannot create an event about a migration");
        }
    }
}

fn options() -> WriteOptions {
    WriteOptions { field_manager: Some(MANAGER.to_owned()), ..WriteOptions::default() }
}
