//! OwnerReferencesPermissionEnforcement: who sets an owner could delete the object, and who makes an owner wait for the
//! object could keep the owner himself (`plugin/pkg/admission/gc`).

use super::{Admission, Attempt, Operation, Verdict};
use crate::auth::authorizer::{Attributes, Decision, NoSelectors};
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::schema::names::Gvk;
use crate::schema::resource::ResourceDefinition;
use crate::tree::Value;
use crate::{ObjectMap, fields};

pub(super) struct OwnerReferencesPermissionEnforcement;

impl Admission for OwnerReferencesPermissionEnforcement {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let definition = &request.target.resource.definition;
        let is_pod_status = definition.kind_name() == "Pod"
            && definition.group().is_empty()
            && request.subresource == "status";
        matches!(operation, Operation::Create | Operation::Update) && !is_pod_status
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let owners = |object: Option<&'a ObjectMap>| object.map(references).unwrap_or_default();
        let (old, new) = (owners(attempt.old), owners(attempt.object.as_ref()));
        if old == new {
            return Verdict::Now(Ok(()));
        }
        Verdict::Later(Box::pin(judge(attempt, old, new)))
    }
}

fn references(object: &ObjectMap) -> &[Value] {
    fields::items(object, &["metadata", "ownerReferences"])
}

async fn judge(attempt: &Attempt<'_>, old: &[Value], new: &[Value]) -> Result<(), Error> {
    let request = attempt.request;
    let definition = &request.target.resource.definition;
    let asked = |verb| Attributes { name: attempt.target.name, ..of(request, definition, verb) };
    if attempt.operation != Operation::Create {
        let asked = Attributes { subresource: request.subresource, ..asked("delete") };
        let why = "cannot set an ownerRef on a resource you can't delete";
        allowed(attempt, &asked, why).await?;
    }
    let is_blocking = |owner: &Value| owner["blockOwnerDeletion"] == Value::Bool(true);
    let was_blocking =
        |owner: &Value| old.iter().rfind(|other| other["uid"] == owner["uid"]).is_some_and(is_blocking);
    let blocking: Vec<&Value> =
        new.iter().filter(|owner| is_blocking(owner) && !was_blocking(owner)).collect();
    if blocking.is_empty() {
        return Ok(());
    }
    let any = "*";
    let everything = Attributes {
        group: any,
        version: any,
        resource: any,
        subresource: "finalizers",
        namespace: "",
        name: any,
        ..asked("update")
    };
    if matches!(request.authorizer.decide(&everything).decided().await, Decision::Allow(_)) {
        return Ok(());
    }
    for owner in blocking {
        check_owner(attempt, owner).await?;
    }
    Ok(())
}

/// Asks whether the user may change the finalizers of an owner.
async fn check_owner(attempt: &Attempt<'_>, owner: &Value) -> Result<(), Error> {
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let served = attempt.cluster.catalog.served();
    let gvk = Gvk::parse(version, kind).ok();
    let Some(resource) = gvk.and_then(|gvk| served.by_kind(&gvk).cloned()) else {
        let why = format!("no matches for kind {} in version {}", quote(kind), quote(version));
        return Err(attempt.refused(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} \
             Kind {kind}: {why}"
        )));
    };
    let definition = &resource.definition;
    let namespace = if definition.namespaced() { attempt.target.namespace } else { "" };
    let asked = Attributes {
        subresource: "finalizers",
        name: text("name"),
        namespace,
        ..of(attempt.request, definition, "update")
    };
    let why =
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on";
    allowed(attempt, &asked, why).await
}

fn of<'a>(request: &Request<'a>, definition: &'a ResourceDefinition, verb: &'a str) -> Attributes<'a> {
    Attributes {
        user: request.user,
        verb,
        group: definition.group(),
        version: definition.version(),
        resource: &definition.plural,
        subresource: "",
        namespace: request.target.namespace,
        name: "",
        path: "",
        selectors: &NoSelectors,
    }
}

/// 403 with the reason and the error of the authorizer, unless it allows this.
async fn allowed(attempt: &Attempt<'_>, asked: &Attributes<'_>, why: &str) -> Result<(), Error> {
    match attempt.request.authorizer.decide(asked).decided().await {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) | Decision::NoOpinion(reason) => {
            let error = reason.error().unwrap_or_else(|| "<nil>".to_owned());
            Err(attempt.refused(format!("{why}: {}, {error}", reason.text(asked))))
        }
    }
}
