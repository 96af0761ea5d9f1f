//! The user of a connection's client certificates, checked at present.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Tls;
use crate::auth::authn::user_of_certificate;
use crate::user::User;

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
    user: Option<Arc<User>>,
}

impl ClientCertificates {
    pub(super) fn new(tls: Tls, chain: Vec<CertificateDer<'static>>) -> Self {
        let verdict = ArcSwap::from_pointee(verify(&tls, &chain));
        Self { tls, chain, verdict }
    }

    /// The user of the certificates; `None` if no trusted CA has signed them, if they are not valid at present, or if
    /// they name nobody.
    pub fn user(&self) -> Option<Arc<User>> {
        let (now, generation) =
            (self.tls.shared.clock.seconds(), self.tls.shared.generation.load(Ordering::Acquire));
        let verdict = self.verdict.load();
        if verdict.generation == generation && verdict.holds.contains(&now) {
            return verdict.user.clone();
        }
        let fresh = Arc::new(verify(&self.tls, &self.chain));
        self.verdict.store(fresh.clone());
        fresh.user.clone()
    }
}

fn verify(tls: &Tls, chain: &[CertificateDer<'static>]) -> Verdict {
    let (current, now) = (tls.shared.current.load(), tls.shared.clock.seconds());
    let holds = unchanged_around(now, chain);
    let user = chain.split_first().and_then(|(end_entity, intermediates)| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(now));
        match current.clients.verify_client_cert(end_entity, intermediates, time) {
            Ok(_) => user_of_certificate(end_entity).map(Arc::new),
            Err(error) => {
                tracing::debug!(%error, "client certificate is not trusted");
                None
            }
        }
    });
    Verdict { generation: current.generation, holds, user }
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
