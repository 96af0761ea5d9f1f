//! Status of a quota: `status.hard` and `status.used`, right from its creation.

use super::QUOTAS;
use super::amounts::Amounts;
use super::evaluator::Evaluator;
use super::scopes::Requirement as Scope;
use crate::cache::{Range, State};
use crate::effects::Effects;
use crate::kinds::behavior::part::Part;
use crate::resource::Resource;
use crate::tree::Value;
use crate::{Cluster, ObjectMap, Target, fields};

impl Cluster {
    /// Whether these are quotas.
    pub(crate) fn are_quotas(&self, resource: &Resource) -> bool {
        self.resources.get(&QUOTAS).is_some_and(|quotas| quotas.id == resource.id)
    }

    /// Brings the status of a quota up to date that is about to be written, and makes the set of its namespace another
    /// one if the quota is new or counts something else than before. Nothing of other kinds.
    ///
    /// `used` is this server's own: whoever writes another figure, such as the controller of kube-controller-manager,
    /// has counted what he has seen of the objects, which may be old. Where kube-controller-manager runs beside this server, it is he
    /// who sets the limits in the status, and a quota that nobody has set them in limits nothing.
    pub(crate) fn settle_quota(
        &self,
        target: Target<'_>,
        part: Part,
        new: &mut ObjectMap,
        old: Option<&ObjectMap>,
    ) -> Effects {
        if !self.are_quotas(target.resource) {
            return Effects::default();
        }
        let state = self.cache.any();
        let limits = |quota: &ObjectMap| fields::at(quota, &["status", "hard"]).cloned();
        let spec_changed = old.is_none_or(|old| old.get("spec") != new.get("spec"));
        if part != Part::Status && spec_changed && self.config.cluster_controllers {
            let hard = fields::at(new, &["spec", "hard"]).cloned();
            if let Some(hard) = hard.filter(|hard| hard.as_object().is_some_and(|hard| !hard.is_empty())) {
                fields::object_mut(new, "status").insert("hard", hard);
            } else if let Some(Value::Object(status)) = new.get_mut("status") {
                status.shift_remove("hard");
            }
        }
        let is_same = !spec_changed && old.is_some_and(|old| limits(old) == limits(new));
        if is_same {
            // Counted figures do not change by a write of the quota.
            if let (Some(old), Part::Status) = (old, part) {
                fields::restore(
                    fields::object_mut(new, "status"),
                    fields::object(old, "status").unwrap_or(&ObjectMap::new()),
                    "used",
                );
            }
            return Effects::default();
        }
        let names = fields::at(new, &["status", "hard"]).and_then(Value::as_object);
        let names: Vec<String> = names.into_iter().flatten().map(|(name, _)| name.to_string()).collect();
        // With the same scopes, what was counted before is still right.
        let kept = old.filter(|old| {
            ["scopes", "scopeSelector"]
                .iter()
                .all(|list| fields::at(old, &["spec", list]) == fields::at(new, &["spec", list]))
        });
        let kept = Amounts::of(kept.and_then(|old| fields::at(old, &["status", "used"])?.as_object()));
        let counted = self.counted(&state, target, new, names.iter().map(String::as_str));
        let mut used = ObjectMap::new();
        for name in &names {
            if let Some(amount) = kept.get(name).or_else(|| counted.get(name)) {
                used.insert(name.as_str(), amount.into());
            }
        }
        used.sort_keys();
        match (used.is_empty(), new.get_mut("status")) {
            (false, _) => {
                fields::object_mut(new, "status").insert("used", used.into());
            }
            (true, Some(Value::Object(status))) => {
                status.shift_remove("used");
            }
            (true, _) => {}
        }
        let mut effects = Effects::default();
        effects.join([self.changed_set(&state, target.namespace)]);
        effects
    }

    /// The change of the namespace's set of quotas that is committed with the deletion of a quota. Nothing for other kinds.
    pub(crate) fn release_quota(&self, target: Target<'_>) -> Effects {
        if !self.are_quotas(target.resource) {
            return Effects::default();
        }
        let state = self.cache.any();
        let mut effects = Effects::default();
        effects.join([self.changed_set(&state, target.namespace)]);
        effects
    }

    /// The amounts that the objects in a quota's namespace use of the resources in `names`, as of a state; the quota itself
    /// is one of the objects.
    pub(super) fn counted<'n>(
        &self,
        state: &State,
        target: Target<'_>,
        quota: &ObjectMap,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Amounts {
        let scopes = Scope::all(quota);
        let mut total = Amounts::default();
        let served = self.catalog.served();
        for resource in served.stored() {
            let Some(evaluator) = Evaluator::of(&resource.definition) else { continue };
            let notes = self.notes(&resource.definition, state);
            let evaluator = evaluator.knowing(notes.as_ref());
            let mut known = names.clone().filter(|name| evaluator.knows(name)).peekable();
            if known.peek().is_none() {
                continue;
            }
            known.for_each(|name| {
                if total.get(name).is_none() {
                    total.set(name, "0")
                }
            });
            self.add_objects(state, resource, (evaluator, &scopes), target, &mut total);
        }
        let wanted: std::collections::HashSet<&str> = names.collect();
        total.retain(|name, _| wanted.contains(name));
        total
    }

    fn add_objects(
        &self,
        state: &State,
        resource: &Resource,
        (evaluator, scopes): (Evaluator<'_>, &[Scope<'_>]),
        quota: Target<'_>,
        total: &mut Amounts,
    ) {
        let (objects, range) = (state.objects(resource.id), Range::of(Some(quota.namespace)));
        if let Evaluator::Objects(_) = evaluator {
            let mut number = if scopes.is_empty() { objects.range(&range).count() } else { 0 };
            let is_itself = resource.id == quota.resource.id && scopes.is_empty();
            if is_itself && objects.get(quota.namespace, quota.name).is_none() {
                number += 1;
            }
            for (name, _) in evaluator.usage(&ObjectMap::new()).iter() {
                total.plus(name, &number.to_string());
            }
            return;
        }
        for object in objects.range(&range) {
            match resource.decode(object) {
                Ok(map) if evaluator.matches(scopes, &map) => total.add(&evaluator.usage(&map)),
                Ok(_) => {}
                Err(error) => self.unreadable.tell("quotas", object, error),
            }
        }
    }
}
