//! DenyServiceExternalIPs: no Service gets an external address that it does not have already.

use super::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::fields;
use crate::request::Request;

pub(super) struct DenyServiceExternalIPs;

impl Admission for DenyServiceExternalIPs {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Service")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let addresses = |service| fields::items(service, &["spec", "externalIPs"]);
        let known = attempt.old.map(addresses).unwrap_or_default();
        let wanted = attempt.object.as_ref().map(addresses).unwrap_or_default();
        Verdict::Now(match wanted.iter().all(|address| known.contains(address)) {
            true => Ok(()),
            false => Err(attempt.refused("Use of external IPs is denied by admission control")),
        })
    }
}
