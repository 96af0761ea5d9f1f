//! Counts of certificates that were requested for a time, and of those that are valid for about that time
//! (`pkg/registry/certificates/certificates/storage/metrics.go`).

use super::{Committed, Concern, Following};
use crate::gotext::decode_base64;
use crate::kinds::behavior::part::Part;
use crate::schema::resource::ResourceDefinition;
use crate::tree::Value;
use crate::x509;
use crate::{Cluster, ObjectMap, fields};

/// The seconds by which certificates are dated back.
const BACKDATED: i64 = 300;

pub(super) struct CertificateDurations;

impl Concern for CertificateDurations {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"certificatesigningrequests" && definition.group() == "certificates.k8s.io"
    }

    fn committed<'a>(&'a self, cluster: &'a Cluster, written: Committed<'a>) -> Option<Following<'a>> {
        let Committed { target, part: Part::Status, old: Some(old), new: Some(new) } = written else {
            return None;
        };
        let (old, new) = (target.resource.decode(old).ok()?, target.resource.decode(new).ok()?);
        let seconds = fields::at(&old, &["spec", "expirationSeconds"]).and_then(Value::as_i64)?;
        if certificate(&old).is_none()
            && let Some(issued) = certificate(&new)
        {
            let signer = fields::text(&old, &["spec", "signerName"]);
            cluster.runtime.metrics.certificate_issued(signer, is_honored(seconds, &issued));
        }
        None
    }
}

/// The text of the certificate in a request's status.
fn certificate(request: &ObjectMap) -> Option<Vec<u8>> {
    let text = decode_base64(fields::text(request, &["status", "certificate"])).ok()?;
    (!text.is_empty()).then_some(text)
}

fn is_honored(wanted: i64, issued: &[u8]) -> bool {
    let issued = x509::certificates(issued).ok().and_then(|chain| chain.into_iter().next());
    issued.is_some_and(|issued| {
        let difference = wanted - (issued.not_after - issued.not_before);
        // In twentieths: a part of the time that was wanted.
        20 * difference.abs() < 20 * BACKDATED + wanted
    })
}
