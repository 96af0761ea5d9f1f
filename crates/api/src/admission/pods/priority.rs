//! Priority: a Pod gets the number of its priority class (`plugin/pkg/admission/priority`).

use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const CLASSES: Gvr = Gvr::fixed("scheduling.k8s.io/v1", "priorityclasses");
const PREEMPTS: &str = "PreemptLowerPriority";

pub(in crate::admission) struct Priority;

impl Admission for Priority {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        match operation {
            Operation::Create => {
                of_kind(request, "", "Pod") || of_kind(request, "scheduling.k8s.io", "PriorityClass")
            }
            Operation::Update => {
                of_kind(request, "", "Pod") || of_kind(request, "scheduling.k8s.io", "PriorityClass")
            }
            Operation::Delete | Operation::Connect => false,
        }
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match (attempt.old, attempt.operation) {
            (Some(old), Operation::Update) if of_kind(attempt.request, "", "Pod") => {
                Verdict::Now(attempt.object_mut().map(|pod| keep(pod, old)))
            }
            (_, Operation::Create) if of_kind(attempt.request, "", "Pod") => {
                view::complete(attempt, complete)
            }
            _ => Verdict::Now(Ok(())),
        }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match of_kind(attempt.request, "", "Pod") {
            true => Verdict::Now(Ok(())),
            false => view::check(attempt, only_default),
        }
    }
}

fn complete(view: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
    let spec = fields::object_mut(pod, "spec");
    let class = match fields::text(spec, &["priorityClassName"]) {
        "" => default_class(view, ""),
        name => {
            let found = view.get(&CLASSES, name);
            Some(found.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
        }
    };
    let (priority, policy) = match &class {
        Some(class) => (value(class), fields::text(class, &["preemptionPolicy"])),
        None => (0, PREEMPTS),
    };
    if let Some(said) = spec.get("priority").and_then(Value::as_i64).filter(|said| *said != priority) {
        return Err(format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority admission \
             controller computed {priority} from the given PriorityClass name"
        ));
    }
    let said = fields::text(spec, &["preemptionPolicy"]);
    if !policy.is_empty() && !said.is_empty() && said != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = &class {
        let name = fields::text(class, &["metadata", "name"]);
        spec.insert("priorityClassName", name.into());
    }
    spec.insert("priority", priority.into());
    if !policy.is_empty() {
        spec.insert("preemptionPolicy", policy.into());
    }
    Ok(())
}

/// Keeps the values that were filled in earlier if the client does not send them.
fn keep(new: &mut ObjectMap, old: &ObjectMap) {
    let (spec, old) = (fields::object_mut(new, "spec"), fields::object(old, "spec"));
    for name in ["priority", "preemptionPolicy"] {
        if spec.get(name).is_none_or(Value::is_null)
            && let Some(old) = old.filter(|old| old.contains_key(name))
        {
            fields::restore(spec, old, name);
        }
    }
}

/// Refuses a second class that is the default for Pods without a class.
fn only_default(view: &View<'_>, class: &ObjectMap) -> Result<(), String> {
    if class.get("globalDefault") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let name = fields::text(class, &["metadata", "name"]);
    match default_class(view, name) {
        Some(other) => Err(format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            fields::text(&other, &["metadata", "name"])
        )),
        None => Ok(()),
    }
}

/// The default class, if it is not the one of this name. Several can exist only after a race; then it is the one with the lowest value.
fn default_class(view: &View<'_>, other_than: &str) -> Option<ObjectMap> {
    let mut classes = view.mentioning(&CLASSES, "globalDefault");
    classes.retain(|class| fields::text(class, &["metadata", "name"]) != other_than);
    classes
        .into_iter()
        .filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)))
        .min_by_key(value)
}

fn value(class: &ObjectMap) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or_default()
}
