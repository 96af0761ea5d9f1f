//! What a connection's client certificates say at present.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Current, Tls, Verifier};
use crate::auth::authn::{Certified, certificate_identifier, common_name_of, user_of_certificate};

/// Certificates that a client has shown and whose key it has. The result of checking them is cached until it may
/// change.
#[derive(Debug)]
pub struct ClientCertificates {
    tls: Tls,
    chain: Vec<CertificateDer<'static>>,
    verdict: ArcSwap<Verdict>,
}

/// The result of the check with the CAs of one generation, and the range of seconds since the epoch in which it is
/// valid: no certificate of the chain becomes valid or expires in it.
#[derive(Debug)]
struct Verdict {
    generation: u64,
    holds: Range<u64>,
    certified: Certified,
}

impl ClientCertificates {
    pub(super) fn new(tls: Tls, chain: Vec<CertificateDer<'static>>) -> Self {
        let verdict = ArcSwap::from_pointee(verify(&tls, &chain));
        Self { tls, chain, verdict }
    }

    /// The user that the certificates name, if a trusted CA has signed them and they are valid at present.
    pub fn certified(&self) -> Certified {
        let (now, generation) =
            (self.tls.shared.clock.seconds(), self.tls.shared.generation.load(Ordering::Acquire));
        let verdict = self.verdict.load();
        if verdict.generation == generation && verdict.holds.contains(&now) {
            return verdict.certified.clone();
        }
        let fresh = Arc::new(verify(&self.tls, &self.chain));
        self.verdict.store(fresh.clone());
        fresh.certified.clone()
    }
}

fn verify(tls: &Tls, chain: &[CertificateDer<'static>]) -> Verdict {
    let (current, now) = (tls.shared.current.load(), tls.shared.clock.seconds());
    let holds = unchanged_around(now, chain);
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now));
    Verdict { generation: current.generation, holds, certified: certified(&current, chain, time) }
}

fn certified(current: &Current, chain: &[CertificateDer<'static>], time: UnixTime) -> Certified {
    let check = |verifier: &Verifier| -> Result<&CertificateDer<'static>, Arc<str>> {
        let (leaf, intermediates) = chain.split_first().ok_or("no certificate")?;
        match verifier.verify(leaf, intermediates, time) {
            Ok(()) => Ok(leaf),
            Err(error) => {
                Err(format!("verifying certificate {} failed: {error}", certificate_identifier(leaf)).into())
            }
        }
    };
    let user = check(&current.users).and_then(|leaf| Ok(user_of_certificate(leaf)?.map(Arc::new)));
    let proxy = current.proxies.as_ref().map(|(verifier, names)| {
        let name = common_name_of(check(verifier)?);
        match names.is_empty() || names.contains(&name) {
            true => Ok(()),
            false => Err(format!("x509: subject with cn={name} is not in the allowed list").into()),
        }
    });
    Certified { user, proxy }
}

/// The range of seconds around `now` in which the same certificates are valid.
fn unchanged_around(now: u64, chain: &[CertificateDer<'_>]) -> Range<u64> {
    let parsed = chain.iter().filter_map(|der| X509Certificate::from_der(der).ok());
    let bounds = parsed.flat_map(|(_, certificate)| {
        let validity = certificate.validity();
        // A certificate is valid until the end of its last second.
        [validity.not_before.timestamp(), validity.not_after.timestamp().saturating_add(1)]
    });
    bounds.filter_map(|bound| u64::try_from(bound).ok()).fold(0..u64::MAX, |around, bound| {
        if bound <= now { around.start.max(bound)..around.end } else { around.start..around.end.min(bound) }
    })
}
