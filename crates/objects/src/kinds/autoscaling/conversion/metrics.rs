//! Metrics of autoscalers: nested in `autoscaling/v2`, flat in the annotations of `autoscaling/v1`
//! (`pkg/apis/autoscaling/v1/conversion.go`).

use crate::fields;
use crate::kinds::prelude::*;

/// A source of metrics, and for each of its fields the name in the flat form and the path in the nested one.
type Shape = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const NAME: (&str, &[&str]) = ("name", &["name"]);

const CONTAINER: (&str, &[&str]) = ("container", &["container"]);

const METRIC_NAME: (&str, &[&str]) = ("metricName", &["metric", "name"]);

const SELECTOR: (&str, &[&str]) = ("selector", &["metric", "selector"]);

const METRIC_SELECTOR: (&str, &[&str]) = ("metricSelector", &["metric", "selector"]);

const DESCRIBED: (&str, &[&str]) = ("target", &["describedObject"]);

const TARGET_VALUE: (&str, &[&str]) = ("targetValue", &["target", "value"]);

const TARGET_AVERAGE: (&str, &[&str]) = ("targetAverageValue", &["target", "averageValue"]);

const TARGET_UTILIZATION: (&str, &[&str]) = ("targetAverageUtilization", &["target", "averageUtilization"]);

const SPECS: &[Shape] = &[
    (
        "object",
        &[DESCRIBED, METRIC_NAME, TARGET_VALUE, SELECTOR, ("averageValue", &["target", "averageValue"])],
    ),
    ("pods", &[METRIC_NAME, TARGET_AVERAGE, SELECTOR]),
    ("resource", &[NAME, TARGET_UTILIZATION, TARGET_AVERAGE]),
    ("containerResource", &[NAME, TARGET_UTILIZATION, TARGET_AVERAGE, CONTAINER]),
    ("external", &[METRIC_NAME, METRIC_SELECTOR, TARGET_VALUE, TARGET_AVERAGE]),
];

const CURRENT_VALUE: (&str, &[&str]) = ("currentValue", &["current", "value"]);

const CURRENT_AVERAGE: (&str, &[&str]) = ("currentAverageValue", &["current", "averageValue"]);

const CURRENT_UTILIZATION: (&str, &[&str]) =
    ("currentAverageUtilization", &["current", "averageUtilization"]);

const STATUSES: &[Shape] = &[
    (
        "object",
        &[DESCRIBED, METRIC_NAME, CURRENT_VALUE, SELECTOR, ("averageValue", &["current", "averageValue"])],
    ),
    ("pods", &[METRIC_NAME, CURRENT_AVERAGE, SELECTOR]),
    ("resource", &[NAME, CURRENT_UTILIZATION, CURRENT_AVERAGE]),
    ("containerResource", &[NAME, CURRENT_UTILIZATION, CURRENT_AVERAGE, CONTAINER]),
    ("external", &[METRIC_NAME, METRIC_SELECTOR, CURRENT_VALUE, CURRENT_AVERAGE]),
];

/// The flat form of metrics. Upstream writes absent quantities as `"0"`; they are left out here, which its decoder
/// treats the same.
pub fn flat_specs(metrics: &[Value]) -> Value {
    each(metrics, |metric| flat(metric, SPECS))
}

pub fn flat_statuses(metrics: &[Value]) -> Value {
    each(metrics, |metric| flat(metric, STATUSES))
}

pub fn nested_specs(metrics: &[Value]) -> Vec<Value> {
    metrics.iter().filter_map(Value::as_object).map(|metric| nested_spec(metric).into()).collect()
}

pub fn nested_statuses(metrics: &[Value]) -> Vec<Value> {
    let nested_status = |metric| nested(metric, STATUSES, "current").into();
    metrics.iter().filter_map(Value::as_object).map(nested_status).collect()
}

/// The value of the only metric for which `autoscaling/v1` has a field: CPU utilization.
pub fn cpu_utilization<'a>(metric: &'a Value, place: &str) -> Option<&'a Value> {
    let resource = metric.get("resource")?;
    let is_cpu = metric.get("type")? == "Resource" && resource.get("name")? == "cpu";
    resource.get(place)?.get("averageUtilization").filter(|value| is_cpu && !value.is_null())
}

fn each(metrics: &[Value], convert: impl Fn(&ObjectMap) -> ObjectMap) -> Value {
    metrics.iter().filter_map(Value::as_object).map(|metric| Value::Object(convert(metric))).collect()
}

fn flat(metric: &ObjectMap, shapes: &[Shape]) -> ObjectMap {
    let mut out = metric.clone();
    for (source, fields) in shapes {
        let Some(nested) = fields::object(metric, source) else { continue };
        let present = fields.iter().filter_map(|(name, path)| Some((*name, fields::at(nested, path)?)));
        let flat: ObjectMap =
            present.filter(|(_, value)| !value.is_null()).map(|(n, v)| (n.to_owned(), v.clone())).collect();
        out.insert((*source).to_owned(), Value::Object(flat));
    }
    out
}

/// The nested form of a metric. The member `place` is present even if it is empty.
fn nested(metric: &ObjectMap, shapes: &[Shape], place: &str) -> ObjectMap {
    let mut out = metric.clone();
    for (source, fields) in shapes {
        let Some(flat) = fields::object(metric, source) else { continue };
        let mut nested = ObjectMap::new();
        for (name, path) in fields.iter() {
            if let Some(value) = flat.get(name).filter(|value| !value.is_null()) {
                set(&mut nested, path, value.clone());
            }
        }
        let values = fields::object_mut(&mut nested, place);
        // Upstream's flat form has "0" where the nested form has no value.
        if values.contains_key("averageValue") && values.get("value").is_some_and(|value| value == "0") {
            values.shift_remove("value");
        }
        out.insert((*source).to_owned(), Value::Object(nested));
    }
    out
}

/// The nested form with types of targets, which the flat form lacks; each follows from the values.
fn nested_spec(metric: &ObjectMap) -> ObjectMap {
    let mut out = nested(metric, SPECS, "target");
    for (name, _) in SPECS {
        let Some(source) = out.get_mut(name).and_then(Value::as_object_mut) else { continue };
        let target = fields::object_mut(source, "target");
        let kind = if target.contains_key("averageUtilization") {
            "Utilization"
        } else if *name == "object" && target.contains_key("averageValue") {
            "AverageValue"
        } else if target.contains_key("value") {
            "Value"
        } else {
            "AverageValue"
        };
        target.insert("type", kind.into());
    }
    out
}

fn set(object: &mut ObjectMap, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            object.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => set(fields::object_mut(object, first), rest, value),
    }
}
