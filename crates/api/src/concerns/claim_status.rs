//! Rights to write the status of a ResourceClaim: the right to `resourceclaims/status` lets nobody bind a claim, nor
//! speak for a driver (`pkg/registry/resource/utils.go`).

use std::collections::{BTreeMap, BTreeSet};

use super::{Concern, Judged};
use crate::admission::Verdict;
use crate::auth::authorizer::{Attributes, Decision};
use crate::auth::service_accounts::USER_PREFIX;
use crate::causes::Cause;
use crate::error::Error;
use crate::request::Request;
use crate::rights::is_empty;
use crate::schema::resource::ResourceDefinition;
use crate::tree::{Map, Value};
use crate::user::User;
use crate::{ObjectMap, fields};

const GROUP: &str = "resource.k8s.io";
/// The drivers that are asked about: a valid claim has 32 devices, before and after.
const MOST_DRIVERS: usize = 64;
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

pub(super) struct ClaimStatus;

impl Concern for ClaimStatus {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"resourceclaims" && definition.group() == GROUP
    }

    fn needs_confirmed_right(&self, request: &Request<'_>) -> bool {
        request.subresource == "status"
    }

    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, new, old, .. } = judged;
        match attempt.request.subresource == "status" {
            true => Verdict::Later(Box::pin(check(attempt.request, new, old, valid))),
            false => Verdict::Now(valid),
        }
    }
}

/// The verdict of validation, with what the user may not change in front of it (422).
async fn check(
    request: &Request<'_>,
    new: &ObjectMap,
    old: Option<&ObjectMap>,
    validated: Result<(), Error>,
) -> Result<(), Error> {
    let mut causes = Vec::new();
    if let Some(old) = old {
        causes.extend(binding(request, new, old).await);
        if told(new, "allocation").is_some() {
            causes.extend(devices(request, new, old).await);
        }
    }
    let (kind, name) = match validated {
        Err(Error::Invalid { kind, name, causes: more }) => {
            causes.extend(more);
            (kind, name)
        }
        Err(error) => return Err(error),
        Ok(()) if causes.is_empty() => return Ok(()),
        Ok(()) => (request.target.resource.group_kind(), request.target.name.to_owned()),
    };
    Err(Error::Invalid { kind, name, causes })
}

/// A field of the status, unless it says as much as none.
fn told<'a>(claim: &'a ObjectMap, field: &str) -> Option<&'a Value> {
    fields::at(claim, &["status", field]).filter(|value| !is_empty(value))
}

async fn binding(request: &Request<'_>, new: &ObjectMap, old: &ObjectMap) -> Option<Cause> {
    if ["allocation", "reservedFor"].iter().all(|field| told(new, field) == told(old, field)) {
        return None;
    }
    let verb = request.verb.as_str();
    let asked = Attributes { subresource: "binding", ..attributes(request.user, verb) };
    let why = refusal(request, &asked).await?;
    let right = format!("resource=\"resourceclaims/binding\", verb=\"{verb}\"");
    let why = format!("changing status.allocation or status.reservedFor requires {right} permission: {why}");
    Some(Cause::forbidden("status.allocation", &why))
}

/// A cause for each driver whose devices change and for which the user may not speak: by the right to speak for a driver on the
/// node that an account belongs to, or on any node.
async fn devices(request: &Request<'_>, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    let verb = request.verb.as_str();
    let is_near = node_of_allocation(new).is_some_and(|node| node_of(request.user) == Some(node));
    let prefixes =
        if is_near { &["associated-node:", "arbitrary-node:"][..] } else { &["arbitrary-node:"][..] };
    let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}{verb}")).collect();
    let mut causes = Vec::new();
    for name in changed_drivers(new, old).into_iter().take(MOST_DRIVERS) {
        let mut first = None;
        for verb in &verbs {
            let namespace = request.target.namespace;
            let asked =
                Attributes { subresource: "driver", namespace, name, ..attributes(request.user, verb) };
            let Some(why) = refusal(request, &asked).await else {
                first = None;
                break;
            };
            first = first.or(Some(why));
        }
        if let Some(why) = first {
            let right = format!("resource=\"resourceclaims/driver\", verb=\"[{}]\"", verbs.join(" "));
            let why = format!("changing status.devices requires {right} permission: {why}");
            causes.push(Cause::forbidden("status.devices", &why));
        }
    }
    causes
}

fn attributes<'a>(user: &'a User, verb: &'a str) -> Attributes<'a> {
    let path = Attributes::of_path(user, verb, "");
    Attributes { group: GROUP, version: "v1", resource: "resourceclaims", ..path }
}

/// Why the authorizers do not allow this; `None` if they do.
async fn refusal(request: &Request<'_>, asked: &Attributes<'_>) -> Option<String> {
    let reason = match request.authorizer.decide(asked).decided().await {
        Decision::Allow(_) => return None,
        Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
    };
    let text = reason.text(asked);
    let why = match reason.error() {
        Some(error) if text.is_empty() => error,
        Some(error) => format!("{error}: {text}"),
        None => text,
    };
    Some(asked.forbidden(&why).to_string())
}

/// The drivers of devices whose status was added, changed or taken away.
fn changed_drivers<'a>(new: &'a ObjectMap, old: &'a ObjectMap) -> BTreeSet<&'a str> {
    let mut before: BTreeMap<[&str; 4], &Map> = devices_of(old).map(|device| (key(device), device)).collect();
    let added = devices_of(new).filter(|device| before.remove(&key(device)) != Some(*device));
    let mut drivers: BTreeSet<&str> = added.map(|device| fields::text(device, &["driver"])).collect();
    drivers.extend(before.keys().map(|[driver, ..]| *driver));
    drivers
}

fn devices_of(claim: &ObjectMap) -> impl Iterator<Item = &Map> {
    fields::items(claim, &["status", "devices"]).iter().filter_map(Value::as_object)
}

fn key(device: &Map) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| fields::text(device, &[field]))
}

/// The only node that devices are allocated on.
fn node_of_allocation(claim: &ObjectMap) -> Option<&str> {
    let [term] = fields::items(claim, &["status", "allocation", "nodeSelector", "nodeSelectorTerms"]) else {
        return None;
    };
    let term = term.as_object()?;
    let [field] = fields::items(term, &["matchFields"]) else { return None };
    let field = field.as_object().filter(|_| fields::items(term, &["matchExpressions"]).is_empty())?;
    let [value] = fields::items(field, &["values"]) else { return None };
    let is_name =
        fields::text(field, &["key"]) == "metadata.name" && fields::text(field, &["operator"]) == "In";
    value.as_str().filter(|node| is_name && !node.is_empty())
}

/// The node that a ServiceAccount's token was made for.
fn node_of(user: &User) -> Option<&str> {
    let account = user.name.strip_prefix(USER_PREFIX)?;
    let nodes = account.split_once(':').and_then(|_| user.extra.get(NODE_NAME))?;
    nodes.first().filter(|_| nodes.len() == 1).map(|node| &**node)
}
