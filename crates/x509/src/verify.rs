//! Chains from a certificate to an authority that is trusted (Go's `Certificate.Verify`).
//!
//! An authority is not believed for standing in a file: it has to be valid itself, to be a CA, and to be one for the
//! purpose. A leaf that is itself in the pool needs no issuer.

use jiff::Timestamp;

use crate::certificate::Certificate;
use crate::constrained_chain::check_chain;
use crate::error::Error;
use crate::policies;

/// Signatures that are checked for one certificate at most.
const SIGNATURE_CHECKS: u32 = 100;
/// anyExtendedKeyUsage.
const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0];

/// The use that a certificate is shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Client,
    Server,
}

impl Purpose {
    fn oid(self) -> &'static [u8] {
        match self {
            Self::Server => &[0x2b, 6, 1, 5, 5, 7, 3, 1],
            Self::Client => &[0x2b, 6, 1, 5, 5, 7, 3, 2],
        }
    }
}

/// The settings of a verification.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Certificates that the other side has shown beside its own.
    pub intermediates: &'a Pool,
    pub roots: &'a Pool,
    pub purpose: Purpose,
    /// The host that was called.
    pub host: Option<&'a str>,
    /// Seconds since the epoch.
    pub now: i64,
}

/// Certificates, each once.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    certificates: Vec<Certificate>,
}

impl Pool {
    pub fn add(&mut self, certificate: Certificate) {
        if !self.contains(&certificate) {
            self.certificates.push(certificate);
        }
    }

    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    fn contains(&self, certificate: &Certificate) -> bool {
        self.certificates.iter().any(|one| one.raw() == certificate.raw())
    }

    /// Certificates that may have issued another one by their names, those with the right key first.
    fn issuers_of(&self, child: &Certificate) -> Vec<&Certificate> {
        let wanted = &child.extensions.authority_key;
        let by_name = self.certificates.iter().filter(|one| one.raw_subject() == child.raw_issuer());
        let mut found: Vec<&Certificate> = by_name.collect();
        found.sort_by_key(|one| {
            let own = &one.extensions.subject_key;
            if own == wanted { 0 } else { 1 + u8::from(own.is_empty() == wanted.is_empty()) }
        });
        found
    }
}

impl FromIterator<Certificate> for Pool {
    fn from_iter<I: IntoIterator<Item = Certificate>>(certificates: I) -> Self {
        let mut pool = Self::default();
        certificates.into_iter().for_each(|certificate| pool.add(certificate));
        pool
    }
}

/// Verifies that a certificate is for the host, and that a chain leads from it to one of the roots.
pub fn verify(leaf: &Certificate, options: &Options<'_>) -> Result<(), Error> {
    let Options { intermediates, roots, purpose, host, now } = *options;
    is_valid(leaf, Role::Leaf, &[], now)?;
    if let Some(host) = host {
        leaf.check_host(host)?;
    }
    let mut search = Search { intermediates, roots, now, checks: 0 };
    let chains = match roots.contains(leaf) {
        true => vec![vec![leaf]],
        false => search.chains(&[leaf])?,
    };
    let (mut refused_name, mut without_policy, mut for_others) = (None, 0, 0);
    for chain in &chains {
        if !policies::are_valid(chain) {
            without_policy += 1;
        } else if !serves(chain, purpose) {
            for_others += 1;
        } else if let Err(why) = check_chain(chain) {
            refused_name = refused_name.or(Some(why));
        } else {
            return Ok(());
        }
    }
    Err(match (refused_name, for_others, without_policy) {
        (Some(why), ..) => Error::NotAuthorizedForName(why),
        (None, 1.., 0) => Error::IncompatibleUsage,
        (None, 0, _) => {
            Error::NoValidChains(format!("{without_policy} candidate chains with invalid policies"))
        }
        (None, ..) => Error::NoValidChains(format!(
            "{for_others} candidate chains with incompatible key usage, {without_policy} candidate chains with invalid policies"
        )),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Leaf,
    Intermediate,
    Root,
}

struct Search<'a> {
    intermediates: &'a Pool,
    roots: &'a Pool,
    now: i64,
    checks: u32,
}

impl<'a> Search<'a> {
    /// All chains that continue this one, the leaf first.
    fn chains(&mut self, chain: &[&'a Certificate]) -> Result<Vec<Vec<&'a Certificate>>, Error> {
        let Some(child) = chain.last().copied() else { return Ok(Vec::new()) };
        let (mut found, mut failed, mut hint) = (Vec::new(), None, None);
        let (roots, intermediates) = (self.roots, self.intermediates);
        let candidates = roots.issuers_of(child).into_iter().map(|one| (Role::Root, one));
        let others = intermediates.issuers_of(child).into_iter().map(|one| (Role::Intermediate, one));
        for (role, candidate) in candidates.chain(others) {
            self.checks += 1;
            if self.checks > SIGNATURE_CHECKS {
                failed = Some(Error::TooManySignatureChecks);
                break;
            }
            if candidate.key == crate::PublicKey::Unknown || is_in(chain, candidate) {
                continue;
            }
            let mut refuse = |why: Error| {
                hint.get_or_insert_with(|| Box::new((why, candidate.title())));
            };
            if let Err(why) = child.check_signature_from(candidate) {
                refuse(why);
                continue;
            }
            if let Err(why) = is_valid(candidate, role, chain, self.now) {
                refuse(why.clone());
                failed = Some(why);
                continue;
            }
            failed = None;
            let longer: Vec<&Certificate> = chain.iter().copied().chain([candidate]).collect();
            match role {
                Role::Root => found.push(longer),
                _ => match self.chains(&longer) {
                    Ok(chains) => found.extend(chains),
                    Err(why) => failed = Some(why),
                },
            }
            if failed == Some(Error::TooManySignatureChecks) {
                break;
            }
        }
        if found.is_empty() { Err(failed.unwrap_or(Error::UnknownAuthority(hint))) } else { Ok(found) }
    }
}

/// Checks what a certificate says of itself, as the next one of a chain.
fn is_valid(certificate: &Certificate, role: Role, chain: &[&Certificate], now: i64) -> Result<(), Error> {
    if certificate.extensions.has_unhandled {
        return Err(Error::UnhandledCriticalExtension);
    }
    let shown = |time: i64| Timestamp::from_second(time).map(|time| time.to_string()).unwrap_or_default();
    if now < certificate.not_before {
        let (now, from) = (shown(now), shown(certificate.not_before));
        return Err(Error::Expired(format!("current time {now} is before {from}")));
    }
    if now > certificate.not_after {
        let (now, until) = (shown(now), shown(certificate.not_after));
        return Err(Error::Expired(format!("current time {now} is after {until}")));
    }
    let constraints = certificate.extensions.basic_constraints;
    if role == Role::Intermediate && !constraints.is_some_and(|constraints| constraints.is_ca) {
        return Err(Error::NotAuthorizedToSign);
    }
    let below = chain.len().saturating_sub(1) as u64;
    if constraints.and_then(|constraints| constraints.longest_path).is_some_and(|longest| below > longest) {
        return Err(Error::TooManyIntermediates);
    }
    Ok(())
}

/// Whether a chain has a certificate of the same subject, key and alternative names: chains run in no circles.
fn is_in(chain: &[&Certificate], candidate: &Certificate) -> bool {
    for one in chain {
        if candidate.raw_subject() != one.raw_subject() || candidate.raw_key() != one.raw_key() {
            continue;
        }
        match (&candidate.extensions.raw_names, &one.extensions.raw_names) {
            (None, None) => return true,
            (Some(own), Some(other)) if own == other => return true,
            (Some(_), Some(_)) => {}
            _ => return false,
        }
    }
    false
}

/// Whether each certificate of a chain that names purposes names this one, or any.
fn serves(chain: &[&Certificate], purpose: Purpose) -> bool {
    chain.iter().all(|certificate| {
        let purposes = &certificate.extensions.purposes;
        purposes.is_empty() || purposes.iter().any(|one| one == ANY_PURPOSE || one == purpose.oid())
    })
}
