//! Upstream's admission plugins, as far as they are here. [`namespace`] refuses objects in namespaces that do not exist or
//! are going away, this file the deletion of namespaces the system needs (both are NamespaceLifecycle); [`plugins`]
//! completes objects.

mod classes;
mod limits;
pub mod namespace;
pub mod plugins;
mod priority;
mod protection;
mod runtime_class;
mod tolerations;
mod usage;
mod view;

use super::Target;
use super::error::Error;

/// Namespaces that may not be deleted (upstream's immortal namespaces).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// The priority classes that are there from the start.
const SYSTEM_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// May this object be deleted?
pub fn admit_delete(target: Target<'_>) -> Result<(), Error> {
    let definition = &target.resource.definition;
    let (immortal, reason) = match (definition.group().as_str(), &*definition.plural) {
        ("", "namespaces") => (&IMMORTAL[..], "this namespace may not be deleted"),
        ("scheduling.k8s.io", "priorityclasses") => {
            (&SYSTEM_CLASSES[..], "this is a system priority class and cannot be deleted")
        }
        _ => return Ok(()),
    };
    if !immortal.contains(&target.name) {
        return Ok(());
    }
    Err(Error::Forbidden {
        resource: definition.group_resource(),
        name: target.name.to_owned(),
        reason: reason.to_owned(),
    })
}
