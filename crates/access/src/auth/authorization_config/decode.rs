//! Strict decoding of the file.

use crate::codec::yaml;
use crate::gotext::quote;
use crate::tree::{Map, Value};

const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
const KIND: &str = "AuthorizationConfiguration";

const WEBHOOK_FIELDS: [&str; 10] = [
    "authorizedTTL",
    "cacheAuthorizedRequests",
    "unauthorizedTTL",
    "cacheUnauthorizedRequests",
    "timeout",
    "subjectAccessReviewVersion",
    "matchConditionSubjectAccessReviewVersion",
    "failurePolicy",
    "connectionInfo",
    "matchConditions",
];

pub(super) fn decode(text: &[u8]) -> Result<Map, String> {
    let Value::Object(root) = yaml::parse(text)? else { return Err("the file holds no object".to_owned()) };
    let field = |name: &str| root.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (field("apiVersion"), field("kind"));
    if kind.is_empty() {
        return Err("Object 'Kind' is missing in the file".to_owned());
    }
    if kind != KIND || !VERSIONS.contains(&version) {
        return Err(format!("no kind {} is registered for version {}", quote(kind), quote(version)));
    }
    let mut problems = Vec::new();
    unknown(&root, "", &["apiVersion", "kind", "authorizers"], &mut problems);
    for (index, authorizer) in items(&root, "authorizers")?.iter().enumerate() {
        let at = format!("authorizers[{index}].");
        let authorizer = authorizer.as_object().ok_or_else(|| format!("{at} is no object"))?;
        unknown(authorizer, &at, &["type", "name", "webhook"], &mut problems);
        let Some(webhook) = object(authorizer, "webhook")? else { continue };
        unknown(webhook, &format!("{at}webhook."), &WEBHOOK_FIELDS, &mut problems);
        if let Some(connection) = object(webhook, "connectionInfo")? {
            let at = format!("{at}webhook.connectionInfo.");
            unknown(connection, &at, &["type", "kubeConfigFile"], &mut problems);
        }
        for (index, condition) in items(webhook, "matchConditions")?.iter().enumerate() {
            let at = format!("{at}webhook.matchConditions[{index}].");
            let condition = condition.as_object().ok_or_else(|| format!("{at} is no object"))?;
            unknown(condition, &at, &["expression"], &mut problems);
        }
    }
    if problems.is_empty() {
        Ok(root)
    } else {
        Err(format!("strict decoding error: {}", problems.join(", ")))
    }
}

fn unknown(object: &Map, at: &str, known: &[&str], problems: &mut Vec<String>) {
    let unknown = object.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    problems.extend(unknown.map(|(name, _)| format!("unknown field \"{at}{name}\"")));
}

pub(super) fn items<'a>(parent: &'a Map, name: &str) -> Result<&'a [Value], String> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{name} is no list")),
    }
}

pub(super) fn object<'a>(parent: &'a Map, name: &str) -> Result<Option<&'a Map>, String> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("{name} is no object")),
    }
}
