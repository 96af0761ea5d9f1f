//! PodDisruptionBudgets.

use crate::gotext;
use crate::kinds::apps::rollout::amount;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer_column, scalar_text, text_column};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::rules::{condition, selector};
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::prelude::*;
use crate::tree::json;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("poddisruptionbudgets", "PodDisruptionBudget")
        .short(&["pdb"])
        .sub(&["status"])
        .generation()
        .conditional(),
    strategy: Strategy {
        names: NameFormat::PathSegment,
        status: StatusRule::Reset(STATUS),
        hooks: &BudgetHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::timeless(create).with_status(status).without_finalizers().before_names(),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The requirement by which clients of `policy/v1` know that an empty selector of `policy/v1beta1` matches nothing.
const OLD_EMPTY: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

#[derive(Debug)]
struct BudgetHooks;

impl Hooks for BudgetHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        drop_old_requirement(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        let selector = |object: &'_ ObjectMap| At::member(object, "spec").get("selector").value().clone();
        if !same(&selector(new), &selector(old)) {
            drop_old_requirement(new);
        }
    }
}

/// Drops that requirement unless the selector consists of it.
fn drop_old_requirement(budget: &mut ObjectMap) {
    let Some(Value::Object(spec)) = budget.get_mut("spec") else { return };
    let Some(selector) = spec.get_mut("selector") else { return };
    let alone = json!({"matchExpressions": [{"key": OLD_EMPTY, "operator": "Exists"}]});
    if same(selector, &alone) {
        return;
    }
    if let Some(Value::Array(requirements)) = selector.get_mut("matchExpressions") {
        requirements.retain(|requirement| requirement.get("key").is_none_or(|key| key != OLD_EMPTY));
    }
}

/// The zero value of the status type, as `encoding/json` prints it.
const STATUS: &str = r#"{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}"#;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let (available, unavailable) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if available.is_set() && unavailable.is_set() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.invalid(&spec, internal(&spec), why);
    }
    for number in [available, unavailable] {
        if number.is_set() {
            let number = amount(number, 0);
            number.check(errors);
            number.at_most_all(errors);
        }
    }
    selector::validate(&spec.get("selector"), errors);
    let policy = spec.get("unhealthyPodEvictionPolicy");
    let text = policy.opt_text().unwrap_or("IfHealthyBudget");
    errors.one_of(&policy, text, &["AlwaysAllow", "IfHealthyBudget"]);
}

/// Upstream prints its internal struct.
fn internal(spec: &At<'_, '_>) -> Verbatim {
    let json = |name: &str| gotext::json(spec.get(name).value());
    Verbatim(format!(
        "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
        json("minAvailable"),
        selector::shown(&spec.get("selector")).0,
        json("maxUnavailable"),
        json("unhealthyPodEvictionPolicy")
    ))
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    errors
        .none_negative(&status, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
    condition::validate_all(&status.get("conditions"), errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Min Available", "Pods that must stay available.")
            .of(|object, _| bound(&object["spec"]["minAvailable"]).into()),
        text_column("Max Unavailable", "Pods that may be unavailable.")
            .of(|object, _| bound(&object["spec"]["maxUnavailable"]).into()),
        integer_column("Allowed Disruptions", "Pods that may be disrupted now.")
            .at("status.disruptionsAllowed"),
        AGE,
    ],
    ..PLAIN
};

fn bound(value: &Value) -> String {
    scalar_text(value).unwrap_or_else(|| "N/A".to_owned())
}
