//! What upstream's admission plugins that are on by default fill in, and what they refuse on the way: which kind has
//! which (kube-apiserver's `--enable-admission-plugins`).
//!
//! Those that add something run behind the tracking of ownership, so that nobody owns what they add, and before the kind's
//! own part; those that only look run behind validation.
//! ServiceAccount is not among them, as in envtest: no controller here makes the `default` ServiceAccounts without which
//! it refuses every Pod.

use super::view::View;
use super::{classes, limits, priority, protection, runtime_class, tolerations};
use crate::api::error::Error;
use crate::api::{Api, ObjectMap, Target};
use crate::cache::State;
use crate::schema::resource::ResourceDefinition;

/// Completes a new object, or says why there may be none.
type Completion = fn(&View<'_>, &mut ObjectMap) -> Result<(), String>;

/// Says why there may be no such new object, which is valid.
type Check = fn(&View<'_>, &ObjectMap) -> Result<(), String>;

/// Completes an object that takes another's place.
type Change = fn(&mut ObjectMap, &ObjectMap);

/// The plugins of a kind, in upstream's order.
#[derive(Clone, Copy, Default)]
pub struct Plugins {
    create: &'static [Completion],
    check: &'static [Check],
    update: &'static [Change],
}

impl Plugins {
    pub fn of(definition: &ResourceDefinition) -> Self {
        match (definition.group().as_str(), definition.kind_name().as_str()) {
            ("", "Pod") => Self {
                create: &[
                    limits::complete_pod,
                    priority::complete,
                    tolerations::complete,
                    runtime_class::complete,
                ],
                check: &[limits::check_pod, runtime_class::check],
                update: &[priority::keep, |new, _| tolerations::add(new)],
            },
            ("", "Node") => Self { create: &[tolerations::taint], ..Self::default() },
            ("", "PersistentVolume") => Self { create: &[protection::volume], ..Self::default() },
            ("", "PersistentVolumeClaim") => Self {
                create: &[classes::of_claim, protection::claim],
                check: &[limits::check_claim],
                ..Self::default()
            },
            ("storage.k8s.io", "VolumeAttributesClass") => {
                Self { create: &[protection::attributes], ..Self::default() }
            }
            ("networking.k8s.io", "Ingress") => Self { create: &[classes::of_ingress], ..Self::default() },
            ("scheduling.k8s.io", "PriorityClass") => {
                Self { check: &[priority::only_default], ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    /// Completes what is about to be written in the place of `old`.
    pub fn update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        self.update.iter().for_each(|change| change(new, old));
    }
}

/// Completes a new object by what this replica knows.
pub fn complete(api: &Api, target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    complete_in(api, &api.cache.any(), target, object)
}

/// As [`complete`]; a refusal is looked at again in the newest state, where others may have made what was missed.
pub async fn complete_proven(api: &Api, target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    match complete(api, target, object) {
        Err(_) if api.store.backend().shared() => {
            complete_in(api, &*api.cache.fresh().await?, target, object)
        }
        other => other,
    }
}

/// Refuses a new object, complete and valid, by what this replica knows.
pub fn check(api: &Api, target: Target<'_>, object: &ObjectMap) -> Result<(), Error> {
    check_in(api, &api.cache.any(), target, object)
}

/// As [`check`], proven as by [`complete_proven`].
pub async fn check_proven(api: &Api, target: Target<'_>, object: &ObjectMap) -> Result<(), Error> {
    match check(api, target, object) {
        Err(_) if api.store.backend().shared() => check_in(api, &*api.cache.fresh().await?, target, object),
        other => other,
    }
}

fn complete_in(api: &Api, state: &State, target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    let view = View::new(api, state, target.namespace);
    let mut all = target.resource.plugins.create.iter();
    let verdict = all.try_for_each(|complete| complete(&view, object));
    concluded(target, view, verdict)
}

fn check_in(api: &Api, state: &State, target: Target<'_>, object: &ObjectMap) -> Result<(), Error> {
    let view = View::new(api, state, target.namespace);
    let mut all = target.resource.plugins.check.iter();
    let verdict = all.try_for_each(|check| check(&view, object));
    concluded(target, view, verdict)
}

/// What plugins say, if they could see all that they asked for.
fn concluded(target: Target<'_>, view: View<'_>, verdict: Result<(), String>) -> Result<(), Error> {
    match view.failure() {
        Some(failure) => Err(failure),
        None => verdict.map_err(|reason| refused(target, reason)),
    }
}

fn refused(target: Target<'_>, reason: String) -> Error {
    Error::Forbidden { resource: target.resource.group_resource(), name: target.name.to_owned(), reason }
}
