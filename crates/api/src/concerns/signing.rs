//! Rights to issue certificates of Pods: whoever writes the status of a PodCertificateRequest needs the right to sign for its
//! signer.

use super::{Concern, Judged};
use crate::admission::Verdict;
use crate::causes::Cause;
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::rights::{is_empty, may_sign};
use crate::schema::resource::ResourceDefinition;
use crate::{ObjectMap, fields};

pub(super) struct Signing;

impl Concern for Signing {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"podcertificaterequests" && definition.group() == "certificates.k8s.io"
    }

    fn needs_confirmed_right(&self, request: &Request<'_>) -> bool {
        request.subresource == "status"
    }

    /// 422 if the status changes and the user may not sign for its signer.
    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, new, old, .. } = judged;
        match old {
            Some(old) if valid.is_ok() && attempt.request.subresource == "status" => {
                Verdict::Later(Box::pin(check(attempt.request, new, old)))
            }
            _ => Verdict::Now(valid),
        }
    }
}

async fn check(request: &Request<'_>, new: &ObjectMap, old: &ObjectMap) -> Result<(), Error> {
    let status = |object: &'_ ObjectMap| object.get("status").filter(|value| !is_empty(value)).cloned();
    let signer = fields::text(old, &["spec", "signerName"]);
    if status(new) == status(old) || may_sign(request, "sign", signer).await {
        return Ok(());
    }
    let user = quote(&request.user.name);
    let why = format!("User {user} is not permitted to \"sign\" for signer {}", quote(signer));
    Err(request.target.invalid([Cause::forbidden("spec.signerName", &why)]))
}
