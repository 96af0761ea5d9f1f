//! Reports a migration's progress in its status and in events.

use std::sync::Arc;

use super::svm::{self, Step};
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::options::{GetOptions, ReadAt};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, meta, metadata};
use crate::controllers::recorder::{self, About, Told};
use crate::kinds::behavior::part::Part;
use crate::schema::resource::Verb;

const MANAGER: &str = "storage-version-migrator-controller";

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
            let options = options();
            let request = Request::own(Verb::Update, target).on(Part::Status).with(&options);
            match self.api.update(&request, Body::Object(&object)).await {
                Ok(_) => {
                    self.tell(&object, step).await;
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

    /// Tells of a step by an event. A step that is only progress is not told.
    async fn tell(&self, migration: &ObjectMap, step: &Step) {
        let (kind, reason, message) = match step {
            Step::Start => ("Normal", "MigrationRunning", "The migration is running".to_owned()),
            Step::Succeed(progress) => (
                "Normal",
                "MigrationSucceeded",
                format!("Migration completed, {} objects were stale", progress.all),
            ),
            Step::Fail(why) => ("Warning", "MigrationFailed", why.clone()),
            Step::Checkpoint(_) | Step::Report { .. } | Step::CleanUp => return,
        };
        let Some(metadata) = metadata(migration) else { return };
        let about = About {
            api_version: "storagemigration.k8s.io/v1",
            kind: "StorageVersionMigration",
            namespace: "",
            name: meta::text(metadata, "name"),
            uid: meta::text(metadata, "uid"),
        };
        recorder::record(&self.api, MANAGER, about, Told { kind, reason, message: &message }).await;
    }
}

fn options() -> WriteOptions {
    WriteOptions { field_manager: Some(MANAGER.to_owned()), ..WriteOptions::default() }
}
