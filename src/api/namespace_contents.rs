//! Objects that come with a new namespace, in one transaction with it: the ServiceAccount `default`, and the ConfigMap by
//! which Pods know the server. So nothing that is created in the namespace has to wait for either.

use super::error::Error;
use super::write::create;
use super::{Api, ObjectMap, Target, metadata_mut, ownership};
use crate::kinds::behavior::strategy::Writer;
use crate::schema::names::Gvr;
use crate::storage::{Expect, Mutation};
use crate::tree::{Value, json};
use crate::user::User;
use crate::warnings::Warnings;

/// The account of Pods that name none.
pub const DEFAULT_ACCOUNT: &str = "default";
/// The ConfigMap by which Pods verify the server.
pub const ROOT_CA: &str = "kube-root-ca.crt";
/// Its only key.
pub const CA_KEY: &str = "ca.crt";
const MANAGER: &str = "kube-apiserver";
const DESCRIPTION: &str =
    "Certificates by which Pods verify the API server. Kept by the server: changes are undone.";

/// The objects that the server puts into each namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceContents {
    /// The text of `kube-root-ca.crt`; without one there is no such ConfigMap.
    pub root_ca: Option<String>,
}

impl NamespaceContents {
    /// The objects by their resources.
    pub fn objects(&self) -> impl Iterator<Item = (Gvr, Value)> {
        let account =
            json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": DEFAULT_ACCOUNT}});
        let root_ca = self.root_ca.as_ref().map(|text| {
            let annotations = json!({"kubernetes.io/description": DESCRIPTION});
            let object = json!({
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": ROOT_CA, "annotations": annotations},
                "data": {CA_KEY: text},
            });
            (Gvr::fixed("v1", "configmaps"), object)
        });
        [(Gvr::fixed("v1", "serviceaccounts"), account)].into_iter().chain(root_ca)
    }
}

impl Api {
    /// The mutations that create the objects of a new namespace. None with objects of other kinds, and none for objects
    /// that exist.
    pub(super) fn companions(&self, target: Target<'_>) -> Result<Vec<Mutation>, Error> {
        let definition = &target.resource.definition;
        let is_namespace = &*definition.plural == "namespaces" && definition.group().is_empty();
        let Some(contents) = self.config.namespace_contents.as_ref().filter(|_| is_namespace) else {
            return Ok(Vec::new());
        };
        let state = self.cache.any();
        let mut companions = Vec::new();
        for (resource, object) in contents.objects() {
            let (Some(resource), Value::Object(object)) = (self.resources.get(&resource), object) else {
                continue;
            };
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let companion = Target { resource, namespace: target.name, name: &name };
            if state.get(resource.id, target.name, &name).is_none() {
                companions.push(self.companion(companion, object)?);
            }
        }
        Ok(companions)
    }

    /// The mutation that a create of the object would end in.
    fn companion(&self, target: Target<'_>, mut object: ObjectMap) -> Result<Mutation, Error> {
        let (now, user) = (self.now(), User::apiserver());
        metadata_mut(&mut object).insert("namespace", target.namespace.into());
        target.resource.default(&mut object)?;
        ownership::track_create(target.resource, &mut object, MANAGER, &now);
        create::stamp(self, target.resource, &mut object, &now);
        let writer = Writer { user: &user, now: &now, warnings: &Warnings::UNREAD };
        create::prepare(target.resource, &mut object, &writer);
        self.put_mutation(target, Expect::Absent, object)
    }
}
