//! ServiceAccount: a Pod runs as an account of its namespace, whose token it finds in a volume
//! (`plugin/pkg/admission/serviceaccount`).

mod secrets;
#[cfg(test)]
mod tests;

use super::tolerations::list_mut;
use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict};
use crate::namespace_contents::{CA_KEY, DEFAULT_ACCOUNT, ROOT_CA};
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

const ACCOUNTS: Gvr = Gvr::fixed("v1", "serviceaccounts");
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The value that Go's `strconv.ParseBool` takes for true makes the account's lists of Secrets binding.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// An hour, and seven seconds by which the issuer knows tokens of this volume: it gives them a longer life.
const TOKEN_SECONDS: i64 = 3607;

pub(in crate::admission) struct ServiceAccount;

impl Admission for ServiceAccount {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let definition = &request.target.resource.definition;
        let is_pod = definition.kind_name() == "Pod" && definition.group().is_empty();
        match (operation, request.subresource) {
            (Operation::Create, "") | (Operation::Update, "ephemeralcontainers") => is_pod,
            _ => false,
        }
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match attempt.operation {
            Operation::Create => view::complete(attempt, complete),
            Operation::Update | Operation::Delete | Operation::Connect => Verdict::Now(Ok(())),
        }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match attempt.operation {
            Operation::Create => view::check(attempt, check),
            Operation::Update | Operation::Delete | Operation::Connect => {
                view::check(attempt, check_ephemeral)
            }
        }
    }
}

fn complete(view: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
    // A node compares a mirror Pod with its file, and would delete one that was changed.
    if is_mirror(pod) {
        return check(view, pod);
    }
    let spec = fields::object_mut(pod, "spec");
    if fields::text(spec, &["serviceAccountName"]).is_empty() {
        for name in ["serviceAccountName", "serviceAccount"] {
            spec.insert(name, DEFAULT_ACCOUNT.into());
        }
    }
    let account = account_of(view, spec)?;
    complete_by(&account, spec, |prefix| view.generate_name(prefix));
    check(view, pod)
}

/// Gives a Pod what its account has.
fn complete_by(account: &ObjectMap, spec: &mut ObjectMap, generate_name: impl Fn(&str) -> String) {
    let wants_token = [&*spec, account]
        .into_iter()
        .find_map(|holder| holder.get("automountServiceAccountToken").and_then(Value::as_bool));
    if wants_token.unwrap_or(true) {
        mount_token(spec, generate_name);
    }
    let pull_secrets = fields::items(account, &["imagePullSecrets"]);
    if fields::items(spec, &["imagePullSecrets"]).is_empty() && !pull_secrets.is_empty() {
        let names = pull_secrets.iter().map(|secret| json!({"name": secret["name"].clone()}));
        let names: Vec<Value> = names.collect();
        spec.insert("imagePullSecrets", names.into());
    }
}

fn check(view: &View<'_>, pod: &ObjectMap) -> Result<(), String> {
    if is_mirror(pod) {
        return check_mirror(pod);
    }
    let Some(account) = named_account(view, pod)? else { return Ok(()) };
    secrets::check_pod(&account, pod)
}

fn check_ephemeral(view: &View<'_>, pod: &ObjectMap) -> Result<(), String> {
    let Some(account) = named_account(view, pod)? else { return Ok(()) };
    secrets::check_ephemeral(&account, pod)
}

/// The Pod's account if its lists of Secrets are binding.
fn named_account(view: &View<'_>, pod: &ObjectMap) -> Result<Option<ObjectMap>, String> {
    let spec = fields::object(pod, "spec");
    let Some(spec) = spec.filter(|spec| !fields::text(spec, &["serviceAccountName"]).is_empty()) else {
        let name = fields::text(pod, &["metadata", "name"]);
        return Err(format!("no service account specified for pod {}/{name}", view.namespace()));
    };
    let account = account_of(view, spec)?;
    Ok(is_binding(&account).then_some(account))
}

/// Whether Pods may use no other Secrets than those of their account's lists.
fn is_binding(account: &ObjectMap) -> bool {
    let binding = fields::text(account, &["metadata", "annotations", ENFORCE]);
    ["1", "t", "T", "TRUE", "true", "True"].contains(&binding)
}

fn account_of(view: &View<'_>, spec: &ObjectMap) -> Result<ObjectMap, String> {
    let (namespace, name) = (view.namespace(), fields::text(spec, &["serviceAccountName"]));
    view.sibling(&ACCOUNTS, name).ok_or_else(|| {
        format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found")
    })
}

fn is_mirror(pod: &ObjectMap) -> bool {
    fields::at(pod, &["metadata", "annotations", MIRROR]).is_some()
}

fn check_mirror(pod: &ObjectMap) -> Result<(), String> {
    if !fields::text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    if secrets::names_any(pod) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let volumes = fields::items(pod, &["spec", "volumes"]).iter();
    let mut sources = volumes.filter_map(|volume| volume["projected"]["sources"].as_array()).flatten();
    if sources.any(|source| source["serviceAccountToken"].is_object()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

/// Mounts the token's volume in every container that mounts nothing at its path, and adds the volume if it is needed.
fn mount_token(spec: &mut ObjectMap, generate_name: impl Fn(&str) -> String) {
    let volumes = fields::items(spec, &["volumes"]).iter().filter_map(|volume| volume["name"].as_str());
    let existing = volumes.into_iter().find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let exists = existing.is_some();
    let volume = existing.unwrap_or_else(|| generate_name(VOLUME_PREFIX));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            let mounts = fields::items(container, &["volumeMounts"]);
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            let mount = json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH});
            list_mut(container, "volumeMounts").push(mount);
            mounted = true;
        }
    }
    if mounted && !exists {
        list_mut(spec, "volumes").push(token_volume(&volume));
    }
}

fn token_volume(name: &str) -> Value {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": ROOT_CA, "items": [{"key": CA_KEY, "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]}})
}
