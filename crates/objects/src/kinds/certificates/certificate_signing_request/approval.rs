//! The strategy of certificate signing requests (`pkg/registry/certificates/certificates/strategy.go`): clients can set
//! neither the requesting user nor, without the subresource, the approval.

use crate::causes::Cause;
use crate::fields;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Touched;
use crate::kinds::prelude::*;
use crate::patch::apply::fields::field_paths;
use crate::patch::apply::filter::Filter;
use crate::tree::json;
use crate::user::User;

#[derive(Debug)]
pub struct RequestHooks;

impl Hooks for RequestHooks {
    fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        prepare_create(object, writer.user);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        fields::restore(new, old, "spec");
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        keep_approval(new, old);
        stamp_conditions(new, old, writer.now);
    }

    fn prepare_part_update(
        &self,
        part: Part,
        new: &mut ObjectMap,
        old: &ObjectMap,
        writer: &Writer<'_>,
    ) -> Touched {
        if part == Part::Approval {
            stamp_conditions(new, old, writer.now);
            keep_all_but_conditions(new, old);
        }
        Touched::Part
    }

    fn part_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
        if part == Part::Approval { super::approval_causes(new, old) } else { Vec::new() }
    }

    fn not_owned_through(&self, part: Part) -> Option<Filter> {
        let fields: &[&[&str]] = match part {
            // The spec never changes, so nobody owns its fields; the same holds upstream.
            Part::Main => &[&["spec"], &["status"]],
            Part::Status => &[&["spec"], &["status", "conditions"]],
            Part::Approval => &[&["spec"], &["status", "certificate"]],
            _ => return None,
        };
        Some(Filter::Exclude(field_paths(fields)))
    }
}

/// Sets the requesting user: a client that could choose it would get certificates for others.
fn prepare_create(object: &mut ObjectMap, user: &User) {
    let spec = fields::object_mut(object, "spec");
    for key in ["username", "uid", "groups", "extra"] {
        spec.shift_remove(key);
    }
    spec.insert("username", user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra", json!(user.extra));
    }
}

/// Restores the conditions that approve or deny, since only the subresource `approval` may change them. If their number
/// has changed, validation reports it.
fn keep_approval(new: &mut ObjectMap, old: &ObjectMap) {
    let stored = fields::items(old, &["status", "conditions"]);
    for decision in ["Approved", "Denied"] {
        let decides = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(decision);
        let stored = stored.iter().filter(decides);
        let sent = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
        let Some(sent) = sent.and_then(Value::as_array_mut) else { continue };
        if sent.iter().filter(decides).count() != stored.clone().count() {
            continue;
        }
        for (sent, stored) in sent.iter_mut().filter(|condition| decides(&&**condition)).zip(stored) {
            *sent = stored.clone();
        }
    }
}

/// Sets times that the client has left out. An existing condition keeps its time.
fn stamp_conditions(new: &mut ObjectMap, old: &ObjectMap, now: &str) {
    let stored = fields::items(old, &["status", "conditions"]);
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
    let conditions = conditions.and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        if fields::text(condition, &["lastUpdateTime"]).is_empty() {
            condition.insert("lastUpdateTime", now.into());
        }
        if fields::text(condition, &["lastTransitionTime"]).is_empty() {
            let same = |other: &&ObjectMap| {
                ["type", "status"].iter().all(|field| other.get(field) == condition.get(field))
            };
            let since = stored.iter().filter_map(Value::as_object).filter(same);
            let since =
                since.map(|other| fields::text(other, &["lastTransitionTime"])).find(|at| !at.is_empty());
            condition.insert("lastTransitionTime", since.unwrap_or(now).into());
        }
    }
}

fn keep_all_but_conditions(new: &mut ObjectMap, old: &ObjectMap) {
    let conditions = fields::at(new, &["status", "conditions"]).cloned();
    fields::restore(new, old, "spec");
    fields::restore(new, old, "status");
    let status = fields::object_mut(new, "status");
    match conditions {
        Some(conditions) => status.insert("conditions", conditions),
        None => status.shift_remove("conditions"),
    };
}
