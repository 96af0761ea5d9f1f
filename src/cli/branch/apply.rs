//! Changes of a branch, made in its cluster by ordinary requests. Each expects the object to be as it was when the branch was
//! made. Whatever has changed meanwhile is left, and told.

use std::process::ExitCode;

use axum::http::{Method, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::connection::{Connection, told};
use super::fields::{is_applied, merge_patch};
use super::report::{items, name};
use crate::api::fields::text;
use crate::cli::error::Error;
use crate::cli::output::print;
use crate::server::replacements::MARK;
use crate::tree::{Map, Value, json};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
/// The manager of what a change of a branch writes.
const MANAGER: &str = "rowplane-branch";

/// The outcome of a change.
enum Outcome {
    Applied,
    /// The cluster has it already.
    Done,
    /// The object is not as it was when the branch was made.
    Conflict(String),
    Failed(String),
}

/// Makes all changes in the cluster, in the order in which they were made on the branch, deletions last. Returns the exit
/// status: 1 if one was left.
pub async fn all(connection: &Connection, changes: &Map) -> Result<ExitCode, Error> {
    let (mut left, mut made) = (0, 0);
    for change in items(changes) {
        let outcome = one(connection, change).await?;
        let line = match outcome {
            Outcome::Applied => format!("applied   {}\n", name(change)),
            Outcome::Done => format!("unchanged {}\n", name(change)),
            Outcome::Conflict(why) => format!("conflict  {}: {why}\n", name(change)),
            Outcome::Failed(why) => format!("failed    {}: {why}\n", name(change)),
        };
        match line.starts_with("applied") || line.starts_with("unchanged") {
            true => made += 1,
            false => left += 1,
        }
        print(&line)?;
    }
    print(&format!("{made} made, {left} left\n"))?;
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn one(connection: &Connection, change: &Map) -> Result<Outcome, Error> {
    let object = |side: &str| change.get(side).and_then(Value::as_object);
    let path = format!("{}/{}", collection(change), text(change, &["name"]));
    let (status, current) = connection.ask(Method::GET, &path, None).await?;
    let current = match status {
        StatusCode::OK => Some(current),
        StatusCode::NOT_FOUND => None,
        _ => return Ok(Outcome::Failed(told(status, &current))),
    };
    match (object("before"), object("after")) {
        (None, Some(after)) => create(connection, change, after, current).await,
        (Some(before), Some(after)) => update(connection, &path, (before, after), current).await,
        (Some(before), None) => delete(connection, &path, before, current).await,
        (None, None) => Ok(Outcome::Failed("the object cannot be read".to_owned())),
    }
}

async fn create(
    connection: &Connection,
    change: &Map,
    after: &Map,
    current: Option<Map>,
) -> Result<Outcome, Error> {
    let new = new_object(after);
    if let Some(current) = current {
        let wanted = merge_patch(&Map::default(), &new);
        return Ok(match is_applied(&wanted, &current) {
            true => Outcome::Done,
            false => Outcome::Conflict("it has come meanwhile".to_owned()),
        });
    }
    let new = Value::Object(new);
    if has_replaced(&new) {
        return Ok(Outcome::Failed(REPLACED.to_owned()));
    }
    let path = format!("{}?fieldManager={MANAGER}", collection(change));
    let (status, answer) = connection.ask(Method::POST, &path, Some((JSON, &new))).await?;
    Ok(outcome(status, &answer))
}

async fn update(
    connection: &Connection,
    path: &str,
    (before, after): (&Map, &Map),
    current: Option<Map>,
) -> Result<Outcome, Error> {
    let mut patch = merge_patch(before, after);
    let Some(current) = current else { return Ok(Outcome::Conflict("it has gone meanwhile".to_owned())) };
    if is_applied(&patch, &current) {
        return Ok(Outcome::Done);
    }
    if version(&current) != version(before) {
        return Ok(Outcome::Conflict("it has changed meanwhile".to_owned()));
    }
    let mut metadata = patch.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    metadata.insert("resourceVersion", version(before).into());
    patch.insert("metadata", Value::Object(metadata));
    let patch = Value::Object(patch);
    if has_replaced(&patch) {
        return Ok(Outcome::Failed(REPLACED.to_owned()));
    }
    let path = format!("{path}?fieldManager={MANAGER}");
    let (status, answer) = connection.ask(Method::PATCH, &path, Some((MERGE, &patch))).await?;
    Ok(outcome(status, &answer))
}

async fn delete(
    connection: &Connection,
    path: &str,
    before: &Map,
    current: Option<Map>,
) -> Result<Outcome, Error> {
    let Some(current) = current else { return Ok(Outcome::Done) };
    if !text(&current, &["metadata", "deletionTimestamp"]).is_empty() {
        return Ok(Outcome::Done);
    }
    if version(&current) != version(before) {
        return Ok(Outcome::Conflict("it has changed meanwhile".to_owned()));
    }
    let uid = text(before, &["metadata", "uid"]);
    let options = json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid, "resourceVersion": version(before)},
    });
    let (status, answer) = connection.ask(Method::DELETE, path, Some((JSON, &options))).await?;
    // An owner's deletion may have taken it along.
    Ok(if status == StatusCode::NOT_FOUND { Outcome::Done } else { outcome(status, &answer) })
}

fn outcome(status: StatusCode, answer: &Map) -> Outcome {
    match status {
        status if status.is_success() => Outcome::Applied,
        StatusCode::CONFLICT => Outcome::Conflict(told(status, answer)),
        _ => Outcome::Failed(told(status, answer)),
    }
}

fn version(object: &Map) -> &str {
    text(object, &["metadata", "resourceVersion"])
}

/// The path of the collection of a changed object, in the version that it is stored in.
fn collection(change: &Map) -> String {
    let of = |field: &str| text(change, &[field]);
    let version = match of("apiVersion") {
        core if !core.contains('/') => format!("/api/{core}"),
        named => format!("/apis/{named}"),
    };
    match of("namespace") {
        "" => format!("{version}/{}", of("plural")),
        namespace => format!("{version}/namespaces/{namespace}/{}", of("plural")),
    }
}

/// An object of a branch as it is created elsewhere: without what a server sets, or draws for it.
fn new_object(object: &Map) -> Map {
    let mut new = object.clone();
    new.shift_remove("status");
    let is_wanted = |field: &str| {
        let managed = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
        managed.is_some_and(|managed| managed.to_string().contains(&format!("\"f:{field}\"")))
    };
    if let Some(Value::Object(metadata)) = new.get_mut("metadata") {
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"]
        {
            metadata.shift_remove(field);
        }
    }
    if text(object, &["kind"]) == "Service"
        && let Some(Value::Object(spec)) = new.get_mut("spec")
    {
        for field in ["clusterIP", "clusterIPs"] {
            if !is_wanted(field) && spec.get(field).is_some_and(|value| !value.to_string().contains("None")) {
                spec.shift_remove(field);
            }
        }
        if !is_wanted("nodePort")
            && let Some(Value::Array(ports)) = spec.get_mut("ports")
        {
            ports
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|port| drop(port.shift_remove("nodePort")));
        }
    }
    new
}

const REPLACED: &str =
    "it holds a value that stands for a Secret's on the branch; make the branch with --keep-secrets";

/// Whether an object holds a value that stands for a Secret's, also in base64.
fn has_replaced(object: &Value) -> bool {
    let text = object.to_string();
    let shifted = (0..3).map(|before| {
        let encoded = BASE64_STANDARD.encode([&b"xx"[..before.min(2)], MARK.as_bytes()].concat());
        // The characters that depend on the mark alone.
        let (start, end) = ((before * 8).div_ceil(6), (before + MARK.len()) * 8 / 6);
        encoded[start..end].to_owned()
    });
    text.contains(MARK) || shifted.into_iter().any(|shifted| text.contains(&shifted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_stand_for_others_are_found_wherever_they_are() {
        let value = format!("{MARK}0123456789abcdef");
        assert!(has_replaced(&json!({"data": {"a": value.clone()}})));
        for before in ["", "p", "pa", "pas", "password: "] {
            let encoded = BASE64_STANDARD.encode(format!("{before}{value}\n"));
            assert!(has_replaced(&json!({"data": {"a": encoded}})), "{before:?}");
        }
        assert!(!has_replaced(
            &json!({"data": {"a": "replaced", "b": BASE64_STANDARD.encode("replaced-in")}})
        ));
    }

    #[test]
    fn a_service_is_created_without_what_the_branch_has_drawn() {
        let service = json!({
            "kind": "Service",
            "metadata": {"name": "a", "uid": "u", "managedFields": [{"fieldsV1": {"f:spec": {"f:ports": {}}}}]},
            "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 1, "nodePort": 30007}]},
            "status": {},
        });
        let new = Value::Object(new_object(service.as_object().expect("an object")));
        assert_eq!(
            new,
            json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}})
        );
        let headless = json!({"kind": "Service", "spec": {"clusterIP": "None"}});
        assert_eq!(Value::Object(new_object(headless.as_object().expect("an object"))), headless);
    }
}
