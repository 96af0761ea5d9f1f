//! Counts of certificates that were requested for a time, and of those that are valid for about that time
//! (`pkg/registry/certificates/certificates/storage/metrics.go`).

use super::{Current, Write};
use crate::api::input::options::DryRun;
use crate::api::resource::Resource;
use crate::api::{Answer, Api, fields};
use crate::gotext::decode_base64;
use crate::kinds::behavior::part::Part;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::x509;

const REQUESTS: Gvr = Gvr::fixed("certificates.k8s.io/v1", "certificatesigningrequests");
/// The seconds by which certificates are dated back.
const BACKDATED: i64 = 300;

/// A request without a certificate that says for how long it wants one.
pub(super) struct Wanted {
    signer: String,
    seconds: i64,
}

impl Api {
    /// The certificate that may be missing before a write of a status.
    pub(super) fn wanted(&self, write: &Write<'_>, found: Option<&Current>) -> Option<Wanted> {
        if write.part != Part::Status || write.request.options.dry_run() != DryRun::No {
            return None;
        }
        let requests = self.resources.get(&REQUESTS)?;
        let request = &found.filter(|_| requests.id == write.request.target.resource.id)?.object;
        let is_issued = !fields::text(request, &["status", "certificate"]).is_empty();
        let seconds = fields::at(request, &["spec", "expirationSeconds"]).and_then(Value::as_i64)?;
        let signer = fields::text(request, &["spec", "signerName"]).to_owned();
        (!is_issued).then_some(Wanted { signer, seconds })
    }

    /// Counts the certificate, if it is in the answer.
    pub(super) fn count_issued(&self, resource: &Resource, wanted: &Wanted, answer: &Answer) {
        let Answer::Stored(stored) = answer else { return };
        let Ok(request) = resource.decode(stored) else { return };
        let Ok(text) = decode_base64(fields::text(&request, &["status", "certificate"])) else { return };
        if text.is_empty() {
            return;
        }
        let issued = x509::certificates(&text).ok().and_then(|chain| chain.into_iter().next());
        let is_honored = issued.is_some_and(|issued| {
            let difference = wanted.seconds - (issued.not_after - issued.not_before);
            // In twentieths: a part of the time that was wanted.
            20 * difference.abs() < 20 * BACKDATED + wanted.seconds
        });
        self.runtime.metrics.certificate_issued(&wanted.signer, is_honored);
    }
}
