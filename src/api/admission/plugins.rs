//! What upstream's admission plugins that are on by default fill in, and what they refuse on the way: which kind has
//! which (kube-apiserver's `--enable-admission-plugins`).
//!
//! They run behind the tracking of ownership, so that nobody owns what they add, and before the kind's own part.
//! ServiceAccount is not among them, as in envtest: no controller here makes the `default` ServiceAccounts without which
//! it refuses every Pod.

use super::view::View;
use super::{classes, limits, priority, protection, runtime_class, tolerations};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target};
use crate::cache::State;
use crate::schema::resource::ResourceDefinition;

/// Completes a new object, or says why there may be none.
type Completion = fn(&View<'_>, &mut ObjectMap) -> Result<(), String>;

/// Completes an object that takes another's place.
type Change = fn(&mut ObjectMap, &ObjectMap);

/// The plugins of a kind, in upstream's order.
#[derive(Clone, Copy)]
pub struct Plugins {
    create: &'static [Completion],
    update: &'static [Change],
}

impl Plugins {
    pub fn of(definition: &ResourceDefinition) -> Self {
        let create: &[Completion] = match (&*definition.group, &*definition.kind) {
            ("", "Pod") => {
                return Self {
                    create: &[
                        limits::complete_pod,
                        priority::complete,
                        tolerations::complete,
                        runtime_class::complete,
                        limits::check_pod,
                    ],
                    update: &[priority::keep, |new, _| tolerations::add(new)],
                };
            }
            ("", "Node") => &[tolerations::taint],
            ("", "PersistentVolume") => &[protection::volume],
            ("", "PersistentVolumeClaim") => &[classes::of_claim, protection::claim, limits::check_claim],
            ("storage.k8s.io", "VolumeAttributesClass") => &[protection::attributes],
            ("networking.k8s.io", "Ingress") => &[classes::of_ingress],
            ("scheduling.k8s.io", "PriorityClass") => &[priority::only_default],
            _ => &[],
        };
        Self { create, update: &[] }
    }

    /// Completes what is about to be written in the place of `old`.
    pub fn update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        self.update.iter().for_each(|change| change(new, old));
    }
}

/// Completes a new object by what this replica knows.
pub fn complete(api: &Api, target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    run(target.resource.plugins.create, api, &api.cache.any(), target, object)
}

/// As [`complete`]; a refusal is looked at again in the newest state, where others may have made what was missed.
pub async fn complete_proven(api: &Api, target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    let create = target.resource.plugins.create;
    if create.is_empty() {
        return Ok(());
    }
    match run(create, api, &api.cache.any(), target, object) {
        Err(_) if api.store.backend().shared() => {
            let fresh = api.cache.fresh().await?;
            run(create, api, &fresh, target, object)
        }
        other => other,
    }
}

fn run(
    create: &[Completion],
    api: &Api,
    state: &State,
    target: Target<'_>,
    object: &mut ObjectMap,
) -> Result<(), Error> {
    let view = View { state, resources: &api.resources, namespace: target.namespace };
    create
        .iter()
        .try_for_each(|complete| complete(&view, object))
        .map_err(|reason| refused(target.resource, target.name, reason))
}

fn refused(resource: &Resource, name: &str, reason: String) -> Error {
    Error::Forbidden { resource: resource.group_resource(), name: name.to_owned(), reason }
}
