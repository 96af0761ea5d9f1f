//! Whether a PodDisruptionBudget allows an eviction.

use super::still_processed;
use crate::cache::{Range, State};
use crate::causes::Cause;
use crate::causes::CauseReason;
use crate::error::Error;
use crate::options::selector::label::LabelSelector;
use crate::resource::Resource;
use crate::schema::names::GroupResource;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// The most evictions that may wait for the budget's controller.
const DISRUPTED_MAX: usize = 2000;
const CONDITION: &str = "DisruptionAllowed";

pub(super) struct Budget {
    object: ObjectMap,
}

/// The budgets that select a pod.
pub(super) fn matching(
    state: &State,
    budgets: &Resource,
    namespace: &str,
    pod: &ObjectMap,
) -> Result<Vec<Budget>, Error> {
    let label = |key: &str| fields::at(pod, &["metadata", "labels", key]).and_then(Value::as_str);
    let mut found = Vec::new();
    for stored in state.objects(budgets.id).range(&Range::of(Some(namespace))) {
        let object = budgets.decode(stored)?;
        let selector = LabelSelector::of_object(fields::at(&object, &["spec", "selector"]));
        if selector.is_some_and(|selector| selector.matches(label)) {
            found.push(Budget::of(object));
        }
    }
    Ok(found)
}

impl Budget {
    pub fn of(object: ObjectMap) -> Self {
        Self { object }
    }

    pub fn name(&self) -> &str {
        fields::text(&self.object, &["metadata", "name"])
    }

    fn number(&self, path: &[&str]) -> i64 {
        fields::at(&self.object, path).and_then(Value::as_i64).unwrap_or(0)
    }

    /// Whether pods that are not ready may be evicted without using up a disruption.
    pub fn lets_unready_go(&self) -> bool {
        let wanted = self.number(&["status", "desiredHealthy"]);
        let enough = self.number(&["status", "currentHealthy"]) >= wanted && wanted > 0;
        fields::text(&self.object, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" || enough
    }

    /// The budget with one disruption less, and with the pod's name for the budget's controller.
    pub fn disrupted(self, pod: &str, now: &str) -> Result<ObjectMap, Error> {
        let allowed = self.allowed()?;
        let mut object = self.object;
        let observed = fields::at(&object, &["status", "observedGeneration"]).cloned();
        let status = fields::object_mut(&mut object, "status");
        status.insert("disruptionsAllowed", (allowed - 1).into());
        if allowed == 1 {
            set_exhausted(status, observed, now);
        }
        fields::object_mut(status, "disruptedPods").insert(pod, now.into());
        Ok(object)
    }

    /// How many disruptions are left: at least one, otherwise an error.
    fn allowed(&self) -> Result<i64, Error> {
        if self.number(&["status", "observedGeneration"]) < self.number(&["metadata", "generation"]) {
            return Err(still_processed(self.name()));
        }
        let forbidden = |reason: &str| Error::Forbidden {
            resource: GroupResource::new("policy", "poddisruptionbudget"),
            name: self.name().to_owned(),
            reason: reason.to_owned(),
        };
        let disrupted = fields::at(&self.object, &["status", "disruptedPods"]).and_then(Value::as_object);
        match self.number(&["status", "disruptionsAllowed"]) {
            ..0 => Err(forbidden("pdb disruptions allowed is negative")),
            _ if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MAX) => Err(forbidden(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            )),
            0 => Err(self.exhausted()),
            allowed => Ok(allowed),
        }
    }

    fn exhausted(&self) -> Error {
        let name = self.name();
        let (wanted, healthy) =
            (self.number(&["status", "desiredHealthy"]), self.number(&["status", "currentHealthy"]));
        let (reason, told) = self.condition().unwrap_or_default();
        // While the controller fails, it does not count healthy pods.
        let message = if !told.is_empty() && reason == "SyncFailed" {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {told}"
            )
        } else if healthy <= wanted {
            format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
        } else if !told.is_empty() {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {told}")
        } else {
            format!("The disruption budget {name} does not allow evicting pods currently")
        };
        Error::Disruption { cause: Cause::new(CauseReason::DisruptionBudget, "", message), retry_after: 0 }
    }

    /// Reason and message of the condition, if it is false.
    fn condition(&self) -> Option<(&str, &str)> {
        let conditions = fields::items(&self.object, &["status", "conditions"]);
        let mut conditions = conditions.iter().filter_map(Value::as_object);
        let condition = conditions.find(|condition| fields::text(condition, &["type"]) == CONDITION)?;
        (fields::text(condition, &["status"]) == "False")
            .then(|| (fields::text(condition, &["reason"]), fields::text(condition, &["message"])))
    }
}

/// Sets the condition after the last disruption was used up.
fn set_exhausted(status: &mut ObjectMap, observed: Option<Value>, now: &str) {
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let known = conditions.iter_mut().find(|known| known.get("type").is_some_and(|kind| kind == CONDITION));
    let since = known.as_ref().filter(|known| known.get("status").is_some_and(|status| status == "False"));
    let since =
        since.and_then(|known| known.get("lastTransitionTime")).and_then(Value::as_str).unwrap_or(now);
    let mut set = json!({
        "type": CONDITION,
        "status": "False",
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    });
    if let Some(observed) = observed {
        set["observedGeneration"] = observed;
    }
    match known {
        Some(known) => *known = set,
        None => conditions.push(set),
    }
}
