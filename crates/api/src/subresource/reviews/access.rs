//! Reviews of permissions (`pkg/registry/authorization/*`, `pkg/apis/authorization/validation`).

use super::{Sources, like};
use crate::auth::authorizer::{Attributes, Authorizer, Decision, aggregate};
use crate::auth::rbac::PolicyRule;
use crate::causes::Cause;
use crate::codec::managed;
use crate::error::Error;
use crate::gotext;
use crate::kinds::behavior::format::{label_key, label_value};
use crate::options::selector::attributes::ReviewSelectors;
use crate::schema::names::GroupKind;
use crate::tree::{Map, Value, json};
use crate::user::User;
use crate::{ObjectMap, fields};

const RESOURCE: &str = "resourceAttributes";
const PATH: &str = "nonResourceAttributes";

pub(super) fn check_subject(question: &ObjectMap) -> Result<(), Error> {
    let mut causes = attribute_causes(question);
    causes.extend(subject_cause(question));
    causes.extend(selector_causes(question));
    causes.extend(metadata_cause(question, &[], "must be empty"));
    refuse(causes)
}

pub(super) fn check_self(question: &ObjectMap) -> Result<(), Error> {
    let mut causes = attribute_causes(question);
    causes.extend(selector_causes(question));
    causes.extend(metadata_cause(question, &[], "must be empty"));
    refuse(causes)
}

pub(super) fn check_local(question: &ObjectMap) -> Result<(), Error> {
    let mut causes = attribute_causes(question);
    causes.extend(subject_cause(question));
    causes.extend(selector_causes(question));
    causes.extend(metadata_cause(question, &["namespace"], "must be empty except for namespace"));
    causes.extend(local_causes(question));
    refuse(causes)
}

pub(super) fn check_rules(question: &ObjectMap) -> Result<(), Error> {
    if fields::text(question, &["spec", "namespace"]).is_empty() {
        return Err(Error::bad_request("no namespace on request"));
    }
    Ok(())
}

/// The rules of the asking user in a namespace. Upstream's authorizer of `system:masters` tells no rules; roles do.
pub(super) fn rules(question: &ObjectMap, sources: &Sources<'_>) -> ObjectMap {
    let namespace = fields::text(question, &["spec", "namespace"]);
    let found = sources.authorizer.rules(sources.user, namespace);
    let only = |rule: &PolicyRule, parts: &[&str]| {
        let mut value = rule.to_value();
        if let Value::Object(members) = &mut value {
            members.retain(|name, _| parts.contains(&name.as_str()));
        }
        value
    };
    let of_resources = found.rules.iter().filter(|rule| !rule.resources.is_empty());
    let of_paths = found.rules.iter().filter(|rule| !rule.urls.is_empty());
    let resource_parts = ["verbs", "apiGroups", "resources", "resourceNames"];
    let mut status = json!({
        "resourceRules": of_resources.map(|rule| only(rule, &resource_parts)).collect::<Vec<_>>(),
        "nonResourceRules": of_paths.map(|rule| only(rule, &["verbs", "nonResourceURLs"])).collect::<Vec<_>>(),
        "incomplete": found.incomplete,
    });
    if let Some(error) = aggregate(found.errors) {
        status["evaluationError"] = error.into();
    }
    let mut answer = like(question);
    answer.insert("spec", Value::Object(Map::new()));
    answer.insert("status", status);
    answer
}

/// The 422. Upstream's internal objects have lost their kind by then, so its message names only the group.
fn refuse(causes: Vec<Cause>) -> Result<(), Error> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid { kind: GroupKind::new("authorization.k8s.io", ""), name: String::new(), causes })
}

fn attributes<'a>(question: &'a ObjectMap, which: &str) -> Option<&'a ObjectMap> {
    fields::object(question, "spec").and_then(|spec| fields::object(spec, which))
}

fn attribute_causes(question: &ObjectMap) -> Vec<Cause> {
    let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    match (attributes(question, RESOURCE), attributes(question, PATH)) {
        (Some(_), Some(path)) => vec![Cause::invalid("spec", go_path_attributes(path), why)],
        (None, None) => vec![Cause::invalid("spec", "null", why)],
        _ => Vec::new(),
    }
}

/// The violations of the rules of selectors.
fn selector_causes(question: &ObjectMap) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(resource) = attributes(question, RESOURCE) else { return causes };
    for name in ["fieldSelector", "labelSelector"] {
        let Some(selector) = fields::object(resource, name) else { continue };
        let at = format!("spec.{RESOURCE}.{name}");
        let (raw, requirements) =
            (fields::text(selector, &["rawSelector"]), fields::items(selector, &["requirements"]));
        match (raw.is_empty(), requirements.is_empty()) {
            (false, false) => {
                let why = "may not specified at the same time as requirements";
                causes.push(Cause::invalid(format!("{at}.rawSelector"), gotext::quote(raw), why));
            }
            (true, true) => {
                let why = format!("when {at} is specified, requirements or rawSelector is required");
                causes.push(Cause::required(format!("{at}.requirements"), &why));
            }
            _ => {}
        }
        for (index, requirement) in requirements.iter().filter_map(Value::as_object).enumerate() {
            let at = format!("{at}.requirements[{index}]");
            causes.extend(requirement_causes(&at, requirement, name == "labelSelector"));
        }
    }
    causes
}

fn requirement_causes(at: &str, requirement: &ObjectMap, is_label: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (key, values) = (fields::text(requirement, &["key"]), fields::items(requirement, &["values"]));
    if !is_label && key.is_empty() {
        causes.push(Cause::required(format!("{at}.key"), "must be specified"));
    }
    match fields::text(requirement, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(format!("{at}.values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(format!("{at}.values"), why));
        }
        // Clients of another version may know more of them.
        _ => {}
    }
    if is_label {
        let wrong = |at: String, text: &str, whys: Vec<String>| {
            let quoted = gotext::quote(text);
            whys.into_iter().map(move |why| Cause::invalid(at.clone(), &quoted, &why)).collect::<Vec<_>>()
        };
        causes.extend(wrong(format!("{at}.key"), key, label_key(key)));
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            causes.extend(wrong(format!("{at}.values[{index}]"), value, label_value(value)));
        }
    }
    causes
}

fn subject_cause(question: &ObjectMap) -> Option<Cause> {
    let named = !fields::text(question, &["spec", "user"]).is_empty();
    let grouped = !fields::items(question, &["spec", "groups"]).is_empty();
    let why = "at least one of user or group must be specified";
    (!named && !grouped).then(|| Cause::invalid("spec.user", r#""""#, why))
}

fn metadata_cause(question: &ObjectMap, allowed: &[&str], why: &str) -> Option<Cause> {
    let metadata = fields::object(question, "metadata")?;
    let ignored = |key: &str| key == "managedFields" || allowed.contains(&key);
    let filled = metadata.iter().any(|(key, value)| !ignored(key) && !is_empty(value));
    filled.then(|| {
        let shown = managed::opened(question);
        let metadata = shown.get("metadata").unwrap_or(&Value::Null);
        Cause::invalid("metadata", gotext::json(metadata), why)
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn local_causes(question: &ObjectMap) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(resource) = attributes(question, RESOURCE) {
        let namespace = fields::text(resource, &["namespace"]);
        if namespace != fields::text(question, &["metadata", "namespace"]) {
            let field = format!("spec.{RESOURCE}.namespace");
            causes.push(Cause::invalid(field, gotext::quote(namespace), "must match metadata.namespace"));
        }
    }
    if let Some(path) = attributes(question, PATH) {
        let why = "disallowed on this kind of request";
        causes.push(Cause::invalid(format!("spec.{PATH}"), go_path_attributes(path), why));
    }
    causes
}

/// The path attributes as upstream's internal Go type prints them, which has no JSON names.
fn go_path_attributes(path: &ObjectMap) -> String {
    gotext::json(&json!({"Path": fields::text(path, &["path"]), "Verb": fields::text(path, &["verb"])}))
}

/// The user that the review asks about. No groups are added: upstream uses exactly those of the review.
pub(super) fn subject(question: &ObjectMap) -> User {
    let texts = |items: &[Value]| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let extra = fields::at(question, &["spec", "extra"]).and_then(Value::as_object).into_iter().flatten();
    User {
        name: fields::text(question, &["spec", "user"]).to_owned(),
        uid: fields::text(question, &["spec", "uid"]).to_owned(),
        groups: texts(fields::items(question, &["spec", "groups"])),
        extra: extra
            .map(|(key, values)| (key.to_string(), texts(values.as_array().map_or(&[], Vec::as_slice))))
            .collect(),
    }
}

/// The review with the authorizer's decision.
pub(super) async fn decided(mut question: ObjectMap, user: &User, authorizer: &dyn Authorizer) -> ObjectMap {
    let selectors = attributes(&question, RESOURCE).map(ReviewSelectors::of).unwrap_or_default();
    let attributes = Attributes { selectors: &selectors, ..request(&question, user) };
    let decision = authorizer.decide(&attributes).decided().await;
    let (allowed, denied, reason) = match &decision {
        Decision::Allow(reason) => (true, false, reason),
        Decision::Deny(reason) => (false, true, reason),
        Decision::NoOpinion(reason) => (false, false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if denied {
        status["denied"] = true.into();
    }
    let text = reason.text(&attributes);
    if !text.is_empty() {
        status["reason"] = text.into();
    }
    let problems: Vec<String> = reason.error().into_iter().chain(selectors.left_out.clone()).collect();
    if !problems.is_empty() {
        status["evaluationError"] = problems.join("; ").into();
    }
    question.insert("status", status);
    question
}

fn request<'a>(question: &'a ObjectMap, user: &'a User) -> Attributes<'a> {
    if let Some(resource) = attributes(question, RESOURCE) {
        let text = |field| fields::text(resource, &[field]);
        return Attributes {
            group: text("group"),
            // An empty version means any (`authorizationutil.matchAllVersionIfEmpty`).
            version: Some(text("version")).filter(|version| !version.is_empty()).unwrap_or("*"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            ..Attributes::of_path(user, text("verb"), "")
        };
    }
    let text = |field| attributes(question, PATH).map_or("", |path| fields::text(path, &[field]));
    Attributes::of_path(user, text("verb"), text("path"))
}
