//! Reviews of permissions (`pkg/registry/authorization/*`, `pkg/apis/authorization/validation`).

use super::{Sources, like};
use crate::api::error::Error;
use crate::api::{ObjectMap, fields};
use crate::auth::authorizer::{Attributes, Authorizer, Decision};
use crate::causes::Cause;
use crate::gotext;
use crate::schema::names::GroupKind;
use crate::tree::{Map, Value, json};
use crate::user::{MASTERS, User};

const RESOURCE: &str = "resourceAttributes";
const PATH: &str = "nonResourceAttributes";

pub(super) fn review_subject(question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
    let mut causes = attribute_causes(&question);
    causes.extend(subject_cause(&question));
    causes.extend(metadata_cause(&question, &[], "must be empty"));
    refuse(causes)?;
    let user = subject(&question);
    Ok(decided(question, &user, sources.authorizer))
}

pub(super) fn review_self(question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
    let mut causes = attribute_causes(&question);
    causes.extend(metadata_cause(&question, &[], "must be empty"));
    refuse(causes)?;
    Ok(decided(question, sources.user, sources.authorizer))
}

pub(super) fn review_local(question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
    let mut causes = attribute_causes(&question);
    causes.extend(subject_cause(&question));
    causes.extend(metadata_cause(&question, &["namespace"], "must be empty except for namespace"));
    causes.extend(local_causes(&question));
    refuse(causes)?;
    let user = subject(&question);
    Ok(decided(question, &user, sources.authorizer))
}

/// The rules of the asking user in a namespace. Members of `system:masters` bypass the authorizer and may do
/// everything; for others no rules are known, since there is no rule resolver yet.
pub(super) fn review_rules(question: &ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
    if fields::text(question, &["spec", "namespace"]).is_empty() {
        return Err(Error::bad_request("no namespace on request"));
    }
    let status = if sources.user.is_in(MASTERS) {
        json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        })
    } else {
        json!({"resourceRules": [], "nonResourceRules": [], "incomplete": false})
    };
    let mut answer = like(question);
    answer.insert("spec", Value::Object(Map::new()));
    answer.insert("status", status);
    Ok(answer)
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
    match (attributes(question, RESOURCE), attributes(question, PATH)) {
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            vec![Cause::invalid(format!("spec.{PATH}"), go_path_attributes(path), why)]
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![Cause::invalid(format!("spec.{RESOURCE}"), "null", why)]
        }
        _ => Vec::new(),
    }
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
    filled.then(|| Cause::invalid("metadata", gotext::json(&Value::Object(metadata.clone())), why))
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
fn subject(question: &ObjectMap) -> User {
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

/// The review with the authorizer's decision. A refusal is never a veto, so `denied` is not set.
fn decided(mut question: ObjectMap, user: &User, authorizer: &dyn Authorizer) -> ObjectMap {
    let decision = authorizer.decide(&request(&question, user));
    let status = match decision {
        Decision::Allow => json!({"allowed": true}),
        Decision::Deny { reason } if reason.is_empty() => json!({"allowed": false}),
        Decision::Deny { reason } => json!({"allowed": false, "reason": reason}),
    };
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
