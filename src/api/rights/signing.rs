//! The right to sign certificates: it is one to a signer, or to all signers of a domain.

use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::{ObjectMap, fields};
use crate::auth::authorizer::{Attributes, Decision};
use crate::causes::Cause;
use crate::gotext::quote;
use crate::tree::Value;

const GROUP: &str = "certificates.k8s.io";

/// Whether the user may do this for a signer.
pub(in crate::api) async fn may(request: &Request<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let path = Attributes::of_path(request.user, verb, "");
        let attributes = Attributes { group: GROUP, version: "*", resource: "signers", name, ..path };
        if matches!(request.authorizer.decide(&attributes).decided().await, Decision::Allow(_)) {
            return true;
        }
    }
    false
}

/// Whether a write may issue the certificate of a Pod.
pub(in crate::api) fn concerns(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    request.subresource == "status"
        && definition.plural == *"podcertificaterequests"
        && definition.group() == GROUP
}

/// 422 if the status of a PodCertificateRequest changes and the user may not sign for its signer.
pub(in crate::api) async fn check(
    request: &Request<'_>,
    new: &ObjectMap,
    old: Option<&ObjectMap>,
) -> Result<(), Error> {
    let Some(old) = old else { return Ok(()) };
    let status = |object: &'_ ObjectMap| object.get("status").filter(|value| !is_empty(value)).cloned();
    let signer = fields::text(old, &["spec", "signerName"]);
    if status(new) == status(old) || may(request, "sign", signer).await {
        return Ok(());
    }
    let user = quote(&request.user.name);
    let why = format!("User {user} is not permitted to \"sign\" for signer {}", quote(signer));
    let (kind, name) = (request.target.resource.group_kind(), request.target.name.to_owned());
    Err(Error::Invalid { kind, name, causes: vec![Cause::forbidden("spec.signerName", &why)] })
}

/// Whether a value says as much as none.
pub(in crate::api) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}
