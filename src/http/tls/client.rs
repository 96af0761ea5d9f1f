//! Identities that the client certificates of a connection prove at present.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;

use super::{Current, Tls, Verifier};
use crate::auth::authn::{Certified, certificate_identifier, user_of_certificate};
use crate::x509::{Certificate, Pool};

/// Certificates that a client has shown and whose key it has. The result of checking them is cached until it may
/// change.
#[derive(Debug)]
pub struct ClientCertificates {
    tls: Tls,
    chain: Vec<CertificateDer<'static>>,
    verdict: ArcSwap<Verdict>,
}

/// The result of the check with the CAs of one generation, and the range of seconds since the epoch in which it is
/// valid: no certificate of the chain, and no CA, becomes valid or expires in it.
#[derive(Debug)]
struct Verdict {
    generation: u64,
    holds: Range<u64>,
    /// When the client's own certificate expires, in seconds since the epoch.
    expires: i64,
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

    /// The seconds until the client's own certificate expires; negative if it has.
    pub fn left(&self) -> i64 {
        let now = i64::try_from(self.tls.shared.clock.seconds()).unwrap_or(i64::MAX);
        self.verdict.load().expires.saturating_sub(now)
    }
}

fn verify(tls: &Tls, chain: &[CertificateDer<'static>]) -> Verdict {
    let (current, now) = (tls.shared.current.load(), tls.shared.clock.seconds());
    let shown: Vec<Certificate> = chain.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
    let proxies = current.proxies.iter().map(|(verifier, _)| verifier);
    let authorities =
        [&current.users].into_iter().chain(proxies).flat_map(|verifier| verifier.roots.certificates());
    let holds = unchanged_around(now, shown.iter().chain(authorities));
    let expires = shown.first().map_or(0, |leaf| leaf.not_after);
    Verdict { generation: current.generation, holds, expires, certified: certified(&current, shown, now) }
}

fn certified(current: &Current, mut shown: Vec<Certificate>, now: u64) -> Certified {
    // The handshake has let in only what can be read.
    let intermediates: Pool = shown.drain(1.min(shown.len())..).collect();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let check = |verifier: &Verifier| -> Result<&Certificate, Arc<str>> {
        let leaf = shown.first().ok_or("no certificate")?;
        match verifier.verify(leaf, &intermediates, now) {
            Ok(()) => Ok(leaf),
            Err(error) => {
                Err(format!("verifying certificate {} failed: {error}", certificate_identifier(leaf)).into())
            }
        }
    };
    let user = check(&current.users).and_then(|leaf| Ok(user_of_certificate(leaf)?.map(Arc::new)));
    let proxy = current.proxies.as_ref().map(|(verifier, names)| {
        let name = check(verifier)?.subject_name.common_name();
        match names.is_empty() || names.iter().any(|allowed| allowed == name) {
            true => Ok(()),
            false => Err(format!("x509: subject with cn={name} is not in the allowed list").into()),
        }
    });
    Certified { user, proxy }
}

/// The range of seconds around `now` in which the same certificates are valid.
fn unchanged_around<'a>(now: u64, certificates: impl Iterator<Item = &'a Certificate>) -> Range<u64> {
    // A certificate is valid until the end of its last second.
    let bounds = certificates.flat_map(|one| [one.not_before, one.not_after.saturating_add(1)]);
    bounds.filter_map(|bound| u64::try_from(bound).ok()).fold(0..u64::MAX, |around, bound| {
        if bound <= now { around.start.max(bound)..around.end } else { around.start..around.end.min(bound) }
    })
}
