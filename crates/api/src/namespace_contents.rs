//! Objects that come with a new namespace, in one transaction with it: the ServiceAccount `default`, and the ConfigMap by
//! which Pods know the server. So nothing that is created in the namespace has to wait for either.

use crate::error::Error;
use crate::storage::{Mutation, Written};
use crate::tree::{Value, json};
use crate::{Cluster, Target};

pub use crate::config::namespace_contents::{CA_KEY, DEFAULT_ACCOUNT, NamespaceContents, ROOT_CA};

impl Cluster {
    /// Creates a namespace with the objects that every namespace has. Waits for this server to see it if another one has been
    /// faster.
    pub(crate) async fn create_namespace(&self, target: Target<'_>) -> Result<(), Error> {
        let metadata = json!({"metadata": {"name": target.name}});
        let Value::Object(object) = metadata else { return Ok(()) };
        let namespace = self.create_mutation(target, object)?;
        let revision = match self.store.write_joined(self.companions(target)?, namespace).await? {
            Written::Committed { revision, .. } => revision,
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at } => judged_at,
        };
        self.cache.at_least(revision).await?;
        Ok(())
    }

    /// The mutations that create the objects of a new namespace, but for those that exist.
    pub(crate) fn companions(&self, target: Target<'_>) -> Result<Vec<Mutation>, Error> {
        let Some(contents) = &self.config.namespace_contents else { return Ok(Vec::new()) };
        let state = self.cache.any();
        let mut companions = Vec::new();
        for (resource, object) in contents.objects() {
            let (Some(resource), Value::Object(object)) = (self.resources.get(&resource), object) else {
                continue;
            };
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let companion = Target { resource, namespace: target.name, name: &name };
            if state.get(resource.id, target.name, &name).is_none() {
                companions.push(self.create_mutation(companion, object)?);
            }
        }
        Ok(companions)
    }
}
