//! Identities that the client certificates of a connection prove at present.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rustls::DistinguishedName;
use rustls::pki_types::CertificateDer;

use super::{Authorities, Error, Verifier};
use crate::auth::authn::{Certified, certificate_identifier, user_of_certificate};
use crate::wall_clock::WallClock;
use crate::x509::{Certificate, Pool};

/// The CAs with which a cluster checks the certificates of clients. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientTrust {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: WallClock,
    judges: ArcSwap<Judges>,
    /// A copy of `judges.generation` that can be read without a lock.
    generation: AtomicU64,
}

/// The verifiers of one set of CAs.
#[derive(Debug)]
pub(super) struct Judges {
    users: Verifier,
    /// The verifier of proxies, with the common names that they may have.
    proxies: Option<(Verifier, Vec<String>)>,
    /// No other set of CAs in the process has this number.
    generation: u64,
}

/// The number of sets of CAs that this process has had.
static GENERATIONS: AtomicU64 = AtomicU64::new(0);

impl ClientTrust {
    pub fn new(authorities: &Authorities, clock: WallClock) -> Result<Self, Error> {
        let judges = Judges::new(authorities)?;
        let generation = AtomicU64::new(judges.generation);
        Ok(Self { shared: Arc::new(Shared { clock, judges: ArcSwap::from_pointee(judges), generation }) })
    }

    /// Trusts other CAs from now on, for all connections. If they cannot be used, nothing changes.
    pub fn replace(&self, authorities: &Authorities) -> Result<(), Error> {
        self.install(Judges::new(authorities)?);
        Ok(())
    }

    pub(super) fn install(&self, judges: Judges) {
        let generation = judges.generation;
        self.shared.judges.store(Arc::new(judges));
        self.shared.generation.store(generation, Ordering::Release);
    }

    /// The names of all CAs, which a handshake announces.
    pub(super) fn names(&self) -> Vec<DistinguishedName> {
        self.shared.judges.load().names()
    }
}

impl Judges {
    pub(super) fn new(authorities: &Authorities) -> Result<Self, Error> {
        let Authorities { users, proxies } = authorities;
        let proxies = match proxies {
            Some(proxies) => Some((Verifier::new(&proxies.authorities)?, proxies.names.clone())),
            None => None,
        };
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Self { users: Verifier::new(users)?, proxies, generation })
    }

    pub(super) fn names(&self) -> Vec<DistinguishedName> {
        let of_proxies = self.proxies.iter().flat_map(|(verifier, _)| verifier.names());
        self.users.names().chain(of_proxies).collect()
    }
}

/// The most clusters whose verdict on a connection's certificates is kept.
const VERDICTS: usize = 8;

/// Certificates that a client has shown and whose key it has. The results of checking them are cached until they may
/// change.
#[derive(Debug)]
pub struct ClientCertificates {
    chain: Vec<CertificateDer<'static>>,
    /// The newest one first.
    verdicts: ArcSwap<Vec<Arc<Verdict>>>,
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
    pub(super) fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self { chain, verdicts: ArcSwap::default() }
    }

    /// The user that the certificates name, if a CA has signed them that is trusted here, and they are valid at present.
    pub fn certified(&self, trust: &ClientTrust) -> Certified {
        let (now, generation) =
            (trust.shared.clock.seconds(), trust.shared.generation.load(Ordering::Acquire));
        let verdicts = self.verdicts.load();
        let known = verdicts.iter().find(|verdict| verdict.generation == generation);
        if let Some(verdict) = known
            && verdict.holds.contains(&now)
        {
            return verdict.certified.clone();
        }
        let fresh = Arc::new(verify(trust, &self.chain));
        let others = verdicts.iter().filter(|verdict| verdict.generation != fresh.generation).cloned();
        self.verdicts.store(Arc::new([fresh.clone()].into_iter().chain(others).take(VERDICTS).collect()));
        fresh.certified.clone()
    }

    /// The seconds until the client's own certificate expires; negative if it has. Known once the certificates were checked.
    pub fn left(&self, trust: &ClientTrust) -> Option<i64> {
        let now = i64::try_from(trust.shared.clock.seconds()).unwrap_or(i64::MAX);
        Some(self.verdicts.load().first()?.expires.saturating_sub(now))
    }
}

fn verify(trust: &ClientTrust, chain: &[CertificateDer<'static>]) -> Verdict {
    let (current, now) = (trust.shared.judges.load(), trust.shared.clock.seconds());
    let shown: Vec<Certificate> = chain.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
    let proxies = current.proxies.iter().map(|(verifier, _)| verifier);
    let authorities =
        [&current.users].into_iter().chain(proxies).flat_map(|verifier| verifier.roots.certificates());
    let holds = unchanged_around(now, shown.iter().chain(authorities));
    let expires = shown.first().map_or(0, |leaf| leaf.not_after);
    Verdict { generation: current.generation, holds, expires, certified: certified(&current, shown, now) }
}

fn certified(current: &Judges, mut shown: Vec<Certificate>, now: u64) -> Certified {
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
