//! Rights to write a policy or a binding with params: they take the right to read the params, since a policy can show
//! what is in them (`pkg/registry/admissionregistration/*/authz.go`).

use super::{Concern, Judged};
use crate::admission::{Attempt, Verdict};
use crate::auth::authorizer::{Attributes, Decision};
use crate::causes::Cause;
use crate::error::Error;
use crate::request::Request;
use crate::schema::names::{Gvk, Gvr};
use crate::schema::resource::ResourceDefinition;
use crate::user::{MASTERS, User};
use crate::{Cluster, ObjectMap, fields};

const GROUP: &str = "admissionregistration.k8s.io";
const VALIDATING: Gvr = Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicies");
const MUTATING: Gvr = Gvr::fixed("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies");

pub(super) struct Params;

impl Concern for Params {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.group().as_str() == GROUP
            && definition.plural.contains("policy") | definition.plural.contains("policies")
    }

    fn needs_confirmed_right(&self, request: &Request<'_>) -> bool {
        request.subresource.is_empty() && !request.user.is_in(MASTERS)
    }

    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, new, old, .. } = judged;
        match valid.is_ok() && self.needs_confirmed_right(attempt.request) {
            true => Verdict::Later(Box::pin(check(attempt, new, old))),
            false => Verdict::Now(valid),
        }
    }
}

/// 422 if a valid policy or binding has params that its writer may not read.
async fn check(attempt: &Attempt<'_>, new: &ObjectMap, old: Option<&ObjectMap>) -> Result<(), Error> {
    let checked = match &*attempt.request.target.resource.definition.plural {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            policy(attempt, new, old).await.map_err(|why| ("spec.paramKind", why))
        }
        "validatingadmissionpolicybindings" => {
            binding(attempt, new, &VALIDATING).await.map_err(|why| ("spec.paramRef", why))
        }
        "mutatingadmissionpolicybindings" => {
            binding(attempt, new, &MUTATING).await.map_err(|why| ("spec.paramRef", why))
        }
        _ => Ok(()),
    };
    checked.map_err(|(path, why)| attempt.target.invalid([Cause::forbidden(path, &why)]))
}

/// The resource that a `paramKind` names, as an authorizer is asked about it.
struct ParamResource {
    group: String,
    version: String,
    /// `*` if nobody serves the kind.
    plural: String,
}

impl ParamResource {
    fn of(cluster: &Cluster, kind: &Gvk) -> Self {
        let served = cluster.catalog.served().by_kind(kind).map(|found| found.definition.plural.to_string());
        Self {
            group: kind.group().to_string(),
            version: kind.version().to_owned(),
            plural: served.unwrap_or_else(|| "*".to_owned()),
        }
    }

    fn of_anything() -> Self {
        Self { group: "*".to_owned(), version: "*".to_owned(), plural: "*".to_owned() }
    }

    async fn may(&self, request: &Request<'_>, verb: &str, namespace: &str, name: &str) -> bool {
        let path = Attributes::of_path(request.user, verb, "");
        let Self { group, version, plural } = self;
        let attributes = Attributes { group, version, resource: plural, namespace, name, ..path };
        matches!(request.authorizer.decide(&attributes).decided().await, Decision::Allow(_))
    }
}

async fn policy(attempt: &Attempt<'_>, new: &ObjectMap, old: Option<&ObjectMap>) -> Result<(), String> {
    let kind_of = |policy| fields::object(fields::object(policy, "spec")?, "paramKind");
    let Some(kind) = kind_of(new) else { return Ok(()) };
    if old.and_then(kind_of) == Some(kind) {
        return Ok(());
    }
    let text = |field| fields::text(kind, &[field]);
    let resource = match Gvk::parse(text("apiVersion"), text("kind")) {
        Ok(kind) => ParamResource::of(attempt.cluster, &kind),
        Err(_) => ParamResource::of_anything(),
    };
    if resource.may(attempt.request, "get", "*", "*").await {
        return Ok(());
    }
    let (user, kind, version) = (shown(attempt.request.user), text("kind"), text("apiVersion"));
    Err(format!(
        "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
         apiVersion={version})"
    ))
}

/// Upstream compares pointers of the old and the new binding, so that it asks at every update.
async fn binding(attempt: &Attempt<'_>, new: &ObjectMap, policies: &Gvr) -> Result<(), String> {
    let spec = fields::object(new, "spec");
    let Some(reference) = spec.and_then(|spec| fields::object(spec, "paramRef")) else { return Ok(()) };
    let policy_name = fields::text(new, &["spec", "policyName"]);
    let policy = stored(attempt.cluster, policies, policy_name);
    let kind =
        policy.as_ref().and_then(|policy| fields::object(fields::object(policy, "spec")?, "paramKind"));
    let kind = kind.map(|kind| {
        let text = |field| fields::text(kind, &[field]);
        (Gvk::parse(text("apiVersion"), text("kind")).ok(), text("apiVersion"), text("kind"))
    });
    let resource = match &kind {
        Some((Some(kind), ..)) => ParamResource::of(attempt.cluster, kind),
        _ => ParamResource::of_anything(),
    };
    let text = |field| fields::text(reference, &[field]);
    let verb = if text("name").is_empty() { "list" } else { "get" };
    if resource.may(attempt.request, verb, text("namespace"), text("name")).await {
        return Ok(());
    }
    let user = shown(attempt.request.user);
    let minimum = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Err(match &kind {
        _ if policy.is_none() => format!("unable to get policy {policy_name} {minimum}"),
        Some((parsed, version, kind)) if parsed.is_none() || resource.plural == "*" => {
            let how = if parsed.is_none() { "parse" } else { "resolve" };
            format!("unable to {how} paramKind &{{{version} {kind}}} {minimum}")
        }
        // Upstream swaps the two.
        _ if *policies == MUTATING => {
            format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
        }
        _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    })
}

fn stored(cluster: &Cluster, policies: &Gvr, name: &str) -> Option<ObjectMap> {
    let resource = cluster.resources.get(policies)?;
    resource.decode(&*cluster.cache.any().get(resource.id, "", name)?).ok()
}

/// A user as Go prints the struct.
fn shown(user: &User) -> String {
    let extra = user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" ")));
    let mut extra: Vec<String> = extra.collect();
    extra.sort();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
