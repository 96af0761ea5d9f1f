//! Stored values outside a server: for commands that read a store, and for backups that encrypt.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::configuration::{Configuration, Reload};
use super::row_key::StoredResource;
use super::transformer::{Meter, Transformer, Transformers};
use super::{COUNTED, SealError};
use crate::runtime::Runtime;
use crate::schema::names::GroupResource;
use crate::storage::HIDDEN_GROUP;
use crate::storage::transfer::{Record, StoredObject};
use crate::tree::Text;

/// How old the word of a key management service may be by which values are sealed; it counts for three minutes.
const FRESH: Duration = Duration::from_secs(60);

/// The keys of a configuration.
pub struct OfflineKeys {
    transformers: Transformers,
    /// The groups of built-in resources.
    built_in: HashSet<Text>,
    runtime: Runtime,
}

impl OfflineKeys {
    pub async fn load(file: &Path, built_in: HashSet<Text>) -> Result<Self, String> {
        let runtime = Runtime::default();
        let transformers = Transformers::new(Configuration::load(file, Reload::No)?, &runtime);
        transformers.probe(|_| true).await;
        Ok(Self { transformers, built_in, runtime })
    }

    /// Opens the value of an object. The error is upstream's text.
    pub async fn open(&self, object: &mut StoredObject) -> Result<(), String> {
        if let Some((row, transformer)) = self.find(object) {
            let meter = self.meter(&object.resource, "from_storage");
            let value = std::mem::take(&mut object.value).into();
            object.value = transformer.open(&value, row.as_bytes(), &meter).await?.into();
        }
        Ok(())
    }

    /// Makes the values of records what a server would write by this configuration: sealed by the first key of their
    /// resource, or plain. Values of resources that it does not name stay as they are.
    pub async fn seal_all(&self, records: &mut [Record], asked: &mut Instant) -> Result<(), SealError> {
        if asked.elapsed() >= FRESH {
            self.transformers.probe(|_| true).await;
            *asked = Instant::now();
        }
        for record in records {
            if let Record::Object(object) = record {
                self.seal(object)
                    .await
                    .map_err(|why| SealError(format!("{} {:?}: {why}", object.resource, object.name)))?;
            }
        }
        Ok(())
    }

    async fn seal(&self, object: &mut StoredObject) -> Result<(), String> {
        let Some((row, transformer)) = self.find(object) else { return Ok(()) };
        if transformer.writes_like(&object.value) {
            return Ok(());
        }
        self.open(object).await?;
        let meter = self.meter(&object.resource, "to_storage");
        if let Some(sealed) = transformer.seal(&object.value, row.as_bytes(), &meter)? {
            object.value = sealed.into();
        }
        Ok(())
    }

    fn find(&self, object: &StoredObject) -> Option<(String, &Transformer)> {
        let StoredObject { resource, namespace, name, .. } = object;
        if resource.group == HIDDEN_GROUP || resource.group.is_empty() && resource.plural == COUNTED {
            return None;
        }
        let transformer = self.transformers.of(resource)?;
        let stored = StoredResource::new(resource, self.built_in.contains(&resource.group));
        Some((stored.key(namespace, name), transformer))
    }

    fn meter(&self, resource: &GroupResource, direction: &'static str) -> Meter<'_> {
        Meter::new(&self.runtime.metrics, resource.to_string(), direction)
    }
}
