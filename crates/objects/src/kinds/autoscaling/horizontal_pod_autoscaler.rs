//! HorizontalPodAutoscalers. The rules are for `autoscaling/v2`.

pub mod columns;

use crate::kinds::autoscaling::conversion::{OF_V1, OF_V2};
use crate::kinds::behavior::conversion::OtherVersion;
use crate::kinds::behavior::definition::Definition;
use crate::kinds::behavior::format::{dns1123_label, path_segment};
use crate::kinds::behavior::rules::resource;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::prelude::*;

pub static V1: BuiltIn =
    built_in(autoscaler().shared("autoscaling/v2"), r#"{"currentReplicas":0,"desiredReplicas":0}"#, OF_V1);

pub static V2: BuiltIn = built_in(autoscaler(), r#"{"desiredReplicas":0,"currentMetrics":null}"#, OF_V2);

const fn autoscaler() -> Definition {
    namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .category("all")
        .sub(&["status"])
        .generation()
}

/// The kind in one version; the versions differ only in these parameters.
const fn built_in(definition: Definition, status_of_new: &'static str, other: OtherVersion) -> BuiltIn {
    BuiltIn {
        definition,
        strategy: Strategy { status: StatusRule::Reset(status_of_new), ..Strategy::PLAIN },
        rules: Rules::new(create, update).with_status(status),
        warnings: KindWarnings::NONE,
        columns: &columns::COLUMNS,
        fields: SelectableFields::metadata,
        other_version: Some(other),
    }
}

const MAX_WINDOW: i64 = 3600;

const MAX_PERIOD: i64 = 1800;

const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Violations that an existing object may keep.
#[derive(Clone, Copy)]
struct Tolerated {
    target_version: bool,
    metric_version: bool,
}

const NOTHING: Tolerated = Tolerated { target_version: false, metric_version: false };

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    in_v2(object, |object| spec(&At::member(object, "spec"), NOTHING, errors));
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    in_v2(new, |new| {
        let new = At::member(new, "spec");
        let mut tolerated = NOTHING;
        in_v2(old, |old| tolerated = of_old(&new, &At::member(old, "spec")));
        spec(&new, tolerated, errors);
    });
}

fn of_old(new: &At<'_, '_>, old: &At<'_, '_>) -> Tolerated {
    let target = |spec: &At<'_, '_>, name: &str| spec.get("scaleTargetRef").get(name).text().to_owned();
    Tolerated {
        target_version: ["apiVersion", "kind"].iter().all(|name| target(new, name) == target(old, name)),
        metric_version: old.get("metrics").items().any(|metric| {
            let version = metric.dig(&["object", "describedObject", "apiVersion"]);
            metric.get("type").text() == "Object" && api_version(version.text(), true).is_err()
        }),
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    errors.not_negative(&status.get("currentReplicas"));
    errors.not_negative(&status.get("desiredReplicas"));
}

/// Converts an object of v1 to v2, for which upstream's rules are, and checks it. An object of v2 is not copied.
fn in_v2(object: &ObjectMap, check: impl FnOnce(&ObjectMap)) {
    if object.get("apiVersion").is_some_and(|version| version == OF_V2.api_version) {
        check(&OF_V1.convert_to(object.clone()));
    } else {
        check(object);
    }
}

fn spec(spec: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let min_number = min.opt_int().unwrap_or(1);
    if max.int() < min_number {
        errors.invalid(&max, max.int(), "must be greater than or equal to `minReplicas`");
    }
    let target = spec.get("scaleTargetRef");
    // The only kind with a scale in the core group.
    let core = target.get("kind").text() == "ReplicationController";
    let version = if tolerated.target_version { None } else { Some(core) };
    reference(&target, version, errors);
    metrics(&spec.get("metrics"), min_number, tolerated.metric_version, errors);
    for name in ["scaleUp", "scaleDown"] {
        let rules = spec.get("behavior");
        let rules = rules.get(name);
        if rules.is_set() {
            scaling(&rules, errors);
        }
    }
}

/// Validates a reference. `version` is whether apiVersion may have no group; `None` accepts anything.
fn reference(at: &At<'_, '_>, version: Option<bool>, errors: &mut Errors) {
    for name in ["kind", "name"] {
        errors.required_in_format(&at.get(name), path_segment);
    }
    let field = at.get("apiVersion");
    if let Some(core) = version
        && let Err(why) = api_version(field.text(), core)
    {
        errors.invalid(&field, field.text(), &why);
    }
}

fn api_version(text: &str, core: bool) -> Result<(), String> {
    match text.matches('/').count() {
        0 if !core => Err("apiVersion must specify API group".to_owned()),
        0 => Ok(()),
        1 if !core && text.starts_with('/') && text != "/" => {
            Err("apiVersion must specify API group".to_owned())
        }
        1 => Ok(()),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

fn metrics(list: &At<'_, '_>, min: i64, any_version: bool, errors: &mut Errors) {
    let mut can_be_idle = false;
    for metric in list.items() {
        one_metric(&metric, any_version, errors);
        can_be_idle |= matches!(metric.get("type").text(), "Object" | "External");
    }
    if min == 0 && !can_be_idle {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(list, why);
    }
}

fn one_metric(metric: &At<'_, '_>, any_version: bool, errors: &mut Errors) {
    let kind = metric.get("type");
    errors.present(&kind, "must specify a metric source type");
    errors.one_of(&kind, kind.text(), &METRICS);
    const SOURCES: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    let mut present: Vec<&str> = SOURCES.iter().copied().filter(|name| metric.get(name).is_set()).collect();
    if let Some(first) = present.first() {
        let source = metric.get(first);
        match *first {
            "object" => object_source(&source, any_version, errors),
            "external" => external_source(&source, errors),
            "pods" => pods_source(&source, errors),
            "resource" => resource_source(&source, errors),
            _ => container_source(&source, errors),
        }
    }
    let expected = match kind.text() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if !expected.is_empty() && !metric.get(expected).is_set() {
        errors.required(&metric.get(expected), "must populate information for the given metric source");
    }
    if present.len() != 1 {
        present.retain(|name| *name != expected);
        for name in present {
            errors.forbidden(&metric.get(name), "must populate the given metric source only");
        }
    }
}

fn object_source(at: &At<'_, '_>, any_version: bool, errors: &mut Errors) {
    reference(&at.get("describedObject"), (!any_version).then_some(true), errors);
    let sought = at.get("target");
    identified(at, &sought, errors);
    if !sought.get("value").is_set() && !sought.get("averageValue").is_set() {
        errors.required(&sought.get("averageValue"), "must set either a target value or averageValue");
    }
}

fn external_source(at: &At<'_, '_>, errors: &mut Errors) {
    let sought = at.get("target");
    identified(at, &sought, errors);
    match (sought.get("value").is_set(), sought.get("averageValue").is_set()) {
        (false, false) => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.required(&sought.get("averageValue"), why);
        }
        (true, true) => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&sought.get("value"), why);
        }
        _ => {}
    }
}

fn pods_source(at: &At<'_, '_>, errors: &mut Errors) {
    let sought = at.get("target");
    identified(at, &sought, errors);
    if !sought.get("averageValue").is_set() {
        errors.required(&sought.get("averageValue"), "must specify a positive target averageValue");
    }
}

fn identified(at: &At<'_, '_>, sought: &At<'_, '_>, errors: &mut Errors) {
    let name = at.dig(&["metric", "name"]);
    if errors.present(&name, "must specify a metric name") {
        errors.in_format(&name, path_segment);
    }
    target(sought, errors);
}

fn resource_source(at: &At<'_, '_>, errors: &mut Errors) {
    errors.present(&at.get("name"), "must specify a resource name");
    of_resource(&at.get("target"), errors);
}

fn container_source(at: &At<'_, '_>, errors: &mut Errors) {
    let (name, container) = (at.get("name"), at.get("container"));
    if errors.present(&name, "must specify a resource name") {
        resource::container_name(&name, name.text(), errors);
    }
    if errors.present(&container, "must specify a container") {
        errors.in_format(&container, dns1123_label);
    }
    of_resource(&at.get("target"), errors);
}

fn of_resource(at: &At<'_, '_>, errors: &mut Errors) {
    target(at, errors);
    let (utilization, value) = (at.get("averageUtilization"), at.get("averageValue"));
    match (utilization.is_set(), value.is_set()) {
        (false, false) => {
            errors.required(&utilization, "must set either a target raw value or a target utilization");
        }
        (true, true) => {
            errors.forbidden(&value, "may not set both a target raw value and a target utilization")
        }
        _ => {}
    }
}

fn target(at: &At<'_, '_>, errors: &mut Errors) {
    let (kind, utilization) = (at.get("type"), at.get("averageUtilization"));
    errors.present(&kind, "must specify a metric target type");
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        errors.invalid(&kind, kind.text(), "must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        let amount = at.get(name);
        if amount.is_set() && resource::nanos(&amount) <= 0 {
            errors.invalid(&amount, &*resource::shown(&amount), "must be positive");
        }
    }
    if utilization.opt_int().is_some_and(|percentage| percentage < 1) {
        errors.invalid(&utilization, utilization.int(), "must be greater than 0");
    }
}

fn scaling(rules: &At<'_, '_>, errors: &mut Errors) {
    let window = rules.get("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.invalid(&window, window.int(), "must be greater than or equal to zero");
    }
    if window.int() > MAX_WINDOW {
        errors.invalid(&window, window.int(), &format!("must be less than or equal to {MAX_WINDOW}"));
    }
    let select = rules.get("selectPolicy");
    errors.one_of(&select, select.opt_text().unwrap_or("Max"), &["Disabled", "Max", "Min"]);
    let policies = rules.get("policies");
    // The default applies to an absent list, not to an empty one.
    if policies.is_set() && policies.is_empty() {
        errors.required(&policies, "must specify at least one Policy");
    }
    for policy in policies.items() {
        let kind = policy.get("type");
        errors.one_of(&kind, kind.text(), &["Percent", "Pods"]);
        let (value, period) = (policy.get("value"), policy.get("periodSeconds"));
        errors.positive(&value);
        errors.positive(&period);
        if period.int() > MAX_PERIOD {
            errors.invalid(&period, period.int(), &format!("must be less than or equal to {MAX_PERIOD}"));
        }
    }
    let tolerance = rules.get("tolerance");
    if tolerance.is_set() && resource::nanos(&tolerance) < 0 {
        errors.invalid(&tolerance, &*resource::shown(&tolerance), "must be greater than or equal to 0");
    }
}
