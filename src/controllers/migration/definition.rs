//! The status of a migration of custom resources in their definition: that it runs, how it has ended, and, once no row is
//! left in another version, that the others need not be served for the sake of the store.
//!
//! No row is written in another version than the definition's, since every write of a custom object requires its
//! definition as it was judged by. So no row comes after a count of zero, unless the definition changes, and then this
//! status is not written.

use super::report::Reporter;
use super::svm::Migration;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::{Api, ObjectMap, Target, fields, meta, metadata};
use crate::kinds::apiextensions::custom_resource_definition::conditions;
use crate::kinds::behavior::part::Part;
use crate::patch::PatchKind;
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const MANAGER: &str = "migration-runner-controller";
const CONDITION: &str = "StorageMigrating";
const DEFINITIONS: Gvr = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");
/// How often another write may come first.
const ATTEMPTS: usize = 5;

/// The beginning or the end of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPhase {
    Starts,
    Ends,
}

/// The condition and, if they change, the stored versions.
struct News {
    status: &'static str,
    reason: &'static str,
    message: String,
    observed: Value,
    stored_versions: Option<Value>,
}

impl Reporter {
    /// Tells the definition of the migrated resource, if it has one.
    pub async fn tell_definition(&self, migration: &Migration, turn: MigrationPhase) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            match self.try_to_tell(migration, turn).await {
                Err(Error::Conflict { .. }) => {}
                Ok(()) | Err(Error::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn try_to_tell(&self, migration: &Migration, turn: MigrationPhase) -> Result<(), Error> {
        let api = &*self.api;
        let Some(resource) = api.resources.get(&DEFINITIONS) else { return Ok(()) };
        let name = format!("{}.{}", migration.resource.plural, migration.resource.group);
        let state = api.cache.fresh().await?;
        let Some(found) = state.get(resource.id, "", &name) else { return Ok(()) };
        let definition = resource.decode(&found)?;
        let news = match turn {
            MigrationPhase::Starts => News::of_start(&definition, migration),
            MigrationPhase::Ends => News::of_end(api, &definition, migration).await?,
        };
        if news.is_told_by(&definition) {
            return Ok(());
        }
        let body = news.configuration(&definition, &api.now());
        let target = Target { resource, namespace: "", name: &name };
        let options = WriteOptions::forced(MANAGER);
        let request = Request::own(Verb::Patch, target).on(Part::Status).with(&options);
        // A failover may bring rows back that are stored in a version which is not named any more.
        let request = request.decided_at(state.revision);
        api.patch(&request, PatchKind::Apply, body.to_string().as_bytes()).await.map(drop)
    }
}

impl News {
    fn of_start(definition: &ObjectMap, migration: &Migration) -> Self {
        Self {
            status: "True",
            reason: "MigrationRunning",
            message: format!("Migration {} is running", migration.name),
            observed: generation(definition),
            stored_versions: None,
        }
    }

    async fn of_end(api: &Api, definition: &ObjectMap, migration: &Migration) -> Result<Self, Error> {
        let observed = conditions::find(definition, CONDITION)
            .map_or(Value::Null, |condition| condition["observedGeneration"].clone());
        let told = |reason, message: &str, stored_versions| Self {
            status: "False",
            reason,
            message: message.to_owned(),
            observed: observed.clone(),
            stored_versions,
        };
        if !migration.succeeded {
            return Ok(told("MigrationFailed", "The migration has failed", None));
        }
        let kept = "The migration has succeeded but the stored versions have not been updated";
        if observed != generation(definition) {
            let message = format!("{kept} due to a generation mismatch");
            return Ok(told("MigrationSucceeded", &message, None));
        }
        Ok(match rows_elsewhere(api, definition, &migration.resource).await? {
            Some((stored, 0)) => {
                let message = "The migration has succeeded and the stored versions have been updated";
                told("MigrationSucceeded", message, Some(json!([stored])))
            }
            Some((_, left)) => {
                let message = format!("{kept}: {left} objects are stored in another version");
                told("MigrationSucceeded", &message, None)
            }
            None => told("MigrationSucceeded", kept, None),
        })
    }

    fn is_told_by(&self, definition: &ObjectMap) -> bool {
        conditions::find(definition, CONDITION).is_some_and(|condition| {
            condition["status"] == self.status
                && condition["reason"] == self.reason
                && condition["message"] == self.message.as_str()
                && condition["observedGeneration"] == self.observed
        })
    }

    /// The configuration that is applied to the definition as it was found.
    fn configuration(&self, definition: &ObjectMap, now: &str) -> Value {
        let before = conditions::find(definition, CONDITION);
        let same = before.filter(|condition| condition["status"] == self.status);
        let since = same.map_or_else(|| now.into(), |condition| condition["lastTransitionTime"].clone());
        let mut condition = json!({"type": CONDITION, "status": self.status, "lastTransitionTime": since,
            "reason": self.reason, "message": self.message});
        if !self.observed.is_null() {
            condition["observedGeneration"] = self.observed.clone();
        }
        let own = metadata(definition);
        let text = |field| own.map_or("", |metadata| meta::text(metadata, field));
        let mut configuration = json!({
            "apiVersion": DEFINITIONS.group_version.api_version().as_str(), "kind": "CustomResourceDefinition",
            "metadata": {"name": text("name"), "resourceVersion": text("resourceVersion")},
            "status": {"conditions": [condition]},
        });
        if let Some(stored) = &self.stored_versions {
            configuration["status"]["storedVersions"] = stored.clone();
        }
        configuration
    }
}

fn generation(definition: &ObjectMap) -> Value {
    metadata(definition).and_then(|metadata| metadata.get("generation")).cloned().unwrap_or_default()
}

/// The storage version, and how many rows are in another one; `None` unless this server stores as the definition says.
async fn rows_elsewhere(
    api: &Api,
    definition: &ObjectMap,
    name: &GroupResource,
) -> Result<Option<(String, u64)>, Error> {
    api.follow_definitions().await?;
    let versions = fields::items(definition, &["spec", "versions"]).iter();
    let mut stored = versions.filter(|version| version["storage"] == true);
    let Some(stored) = stored.next().and_then(|version| version["name"].as_str()) else { return Ok(None) };
    let served = api.catalog.served();
    let Some(resource) = served.stored().find(|resource| resource.group_resource() == *name) else {
        return Ok(None);
    };
    if resource.stored_kind.gvk.version() != stored {
        return Ok(None);
    }
    let now = api.cache.clock().await?.revision;
    let left = api.store.backend().stale_count(&api.stale(resource, now)).await?;
    Ok(Some((stored.to_owned(), left)))
}
