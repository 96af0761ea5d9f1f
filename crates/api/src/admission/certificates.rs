//! Certificate requests and trust bundles: the rights to approve, sign and attest for a signer, and the subjects that
//! nobody may ask for (`plugin/pkg/admission/certificates`).

use super::{Admission, Attempt, Operation, Verdict};
use crate::auth::signing::{API_CLIENTS, SigningRequest};
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::rights::{is_empty, may_sign, only_collected};
use crate::user::MASTERS;
use crate::{ObjectMap, fields};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";

/// Whether a request is about such objects.
pub(super) fn is_about(request: &Request<'_>, plural: &str, subresource: &str) -> bool {
    let definition = &request.target.resource.definition;
    request.subresource == subresource && definition.plural == *plural && definition.group() == GROUP
}

fn signer_of(object: Option<&ObjectMap>) -> &str {
    object.map_or("", |object| fields::text(object, &["spec", "signerName"]))
}

/// 403 with this text unless the user may do this for the signer.
fn demand<'a>(
    attempt: &'a Attempt<'_>,
    verb: &'static str,
    signer: &'a str,
    why: &'static str,
) -> Verdict<'a> {
    Verdict::Later(Box::pin(async move {
        match may_sign(attempt.request, verb, signer).await {
            true => Ok(()),
            false => {
                Err(attempt.refused(format!("user not permitted to {why} signerName {}", quote(signer))))
            }
        }
    }))
}

/// Approving and denying a request takes the right to `approve` for its signer.
pub(super) struct CertificateApproval;

impl Admission for CertificateApproval {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Update && is_about(request, REQUESTS, "approval")
    }

    /// The stored signer counts, whatever the request says.
    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        demand(attempt, "approve", signer_of(attempt.old), "approve requests with")
    }
}

/// Setting a certificate takes the right to `sign` for the request's signer.
pub(super) struct CertificateSigning;

impl Admission for CertificateSigning {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Update && is_about(request, REQUESTS, "status")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let status = |object: Option<&'a ObjectMap>, field: &str| {
            fields::at(object?, &["status", field]).filter(|value| !is_empty(value))
        };
        let is_same = |field: &str| status(attempt.object.as_ref(), field) == status(attempt.old, field);
        if is_same("certificate") && is_same("conditions") {
            return Verdict::Now(Ok(()));
        }
        demand(attempt, "sign", signer_of(attempt.old), "sign requests with")
    }
}

/// Nobody gets a certificate of a member of `system:masters` from the signer of clients.
pub(super) struct CertificateSubjectRestriction;

impl Admission for CertificateSubjectRestriction {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && is_about(request, REQUESTS, "")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(restrict(attempt))
    }
}

fn restrict(attempt: &Attempt<'_>) -> Result<(), Error> {
    let Some(object) = &attempt.object else { return Ok(()) };
    if signer_of(Some(object)) != API_CLIENTS {
        return Ok(());
    }
    let asked = SigningRequest::of_base64(fields::text(object, &["spec", "request"]));
    let asked = asked.map_err(|why| attempt.refused(format!("failed to parse CSR: {why}")))?;
    if asked.subject().organizations().any(|one| one == MASTERS) {
        let why = format!("use of {API_CLIENTS} signer with {MASTERS} group is not allowed");
        return Err(attempt.refused(why));
    }
    Ok(())
}

/// A bundle of a signer takes the right to `attest` for it.
pub(super) struct ClusterTrustBundleAttest;

impl Admission for ClusterTrustBundleAttest {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && is_about(request, BUNDLES, "")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let Some(object) = &attempt.object else { return Verdict::Now(Ok(())) };
        let signer = signer_of(Some(object));
        if signer.is_empty() || only_collected(object, attempt.old) {
            return Verdict::Now(Ok(()));
        }
        demand(attempt, "attest", signer, "attest for")
    }
}
