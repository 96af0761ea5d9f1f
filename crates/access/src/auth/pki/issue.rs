//! Issues certificates, and checks whether existing ones still fit.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::files::{self, Access};
use super::inspect::{describe, first, is_signed_by, names_in, until, valid_at};
use super::{Error, ServingNames, certificates};
use crate::auth::jwt::keys::der;
use crate::user::{ADMIN, MASTERS};

/// The common name in the certificate of a front proxy; the same as kubeadm's.
pub(super) const FRONT_PROXY_CLIENT: &str = "front-proxy-client";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const CA_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long before its expiry a certificate is renewed: clients with a copy, for example of the admin's, need time to
/// fetch the next one.
const RENEW_BEFORE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Clients with slow clocks must not refuse a certificate that was just issued.
const CLOCK_SKEW: Duration = DAY;

/// The names by which pods and people reach an API server; 10.96.0.1 is `kubernetes.default.svc`.
const WELL_KNOWN_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
const WELL_KNOWN_ADDRESSES: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1)),
];

/// The purpose of a certificate.
pub(super) enum Profile<'a> {
    Serving(&'a ServingNames),
    Client(ClientSubject),
}

/// The subject of a client's certificate: the user's name and group.
#[derive(Clone, Copy, Debug)]
pub struct ClientSubject {
    pub common_name: &'static str,
    pub organization: Option<&'static str>,
}

pub(super) const ADMINISTRATOR: ClientSubject =
    ClientSubject { common_name: ADMIN, organization: Some(MASTERS) };
pub(super) const FRONT_PROXY: ClientSubject =
    ClientSubject { common_name: FRONT_PROXY_CLIENT, organization: None };

/// A key and its certificate, both in PEM.
pub(super) struct Leaf {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The files of a CA. The key may be kept elsewhere, where certificates are issued.
pub(super) struct CaFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl CaFiles {
    pub(super) fn named(dir: &Path, name: &str) -> Self {
        let [certificate, key] = ["crt", "key"].map(|suffix| dir.join(format!("{name}.{suffix}")));
        Self { certificate, key }
    }
}

pub(super) struct Ca {
    pub(super) der: CertificateDer<'static>,
    pub(super) pem: String,
    until: SystemTime,
    /// `None` if the key is kept elsewhere.
    issuer: Option<Issuer<'static, KeyPair>>,
    key_path: PathBuf,
}

impl Ca {
    /// Loads the CA. Creates it first, with this common name, if it does not exist.
    pub(super) fn ensure(files: &CaFiles, name: &str, now: SystemTime) -> Result<Self, Error> {
        let path = &files.certificate;
        if files::try_read(path)?.is_none() {
            let key = ensure_key(&files.key)?;
            let made = ca_params(name, now).self_signed(&key).map_err(|error| cannot_issue(path, &error))?;
            files::create(path, made.pem().as_bytes(), Access::Everybody)?;
        }
        Self::load(files, now)
    }

    /// Loads the CA, without its key if that is not there.
    pub(super) fn load(CaFiles { certificate: path, key }: &CaFiles, now: SystemTime) -> Result<Self, Error> {
        let key_path = key.clone();
        let pem = files::read(path)?;
        let der = first(certificates(path, &pem)?, path)?;
        let key = files::try_read(&key_path)?.map(|pem| key_of_pem(pem, &key_path)).transpose()?;
        check_ca(&der, key.as_ref(), now, path, &key_path)?;
        let until = describe(path, &pem)?.until;
        let issuer = key.map(|key| Issuer::from_ca_cert_der(&der, key)).transpose();
        let issuer = issuer.map_err(|error| cannot_issue(path, &error))?;
        Ok(Self { der, pem: String::from_utf8_lossy(&pem).into_owned(), until, issuer, key_path })
    }

    pub(super) fn has_key(&self) -> bool {
        self.issuer.is_some()
    }

    /// Whether a certificate that is valid until then should be issued again: where the key is, some time before its end,
    /// unless a new one would end as soon.
    pub(super) fn should_renew(&self, until: SystemTime, now: SystemTime) -> bool {
        self.has_key() && until < now + RENEW_BEFORE && until < self.until
    }

    /// Loads `<name>.key` and `<name>.crt`, and issues the certificate if it is missing or does not fit.
    pub(super) fn leaf(
        &self,
        dir: &Path,
        name: &str,
        profile: &Profile<'_>,
        now: SystemTime,
    ) -> Result<Leaf, Error> {
        let (key_path, path) = (dir.join(format!("{name}.key")), dir.join(format!("{name}.crt")));
        let key = match self.has_key() {
            true => ensure_key_as(&key_path, sec1)?,
            false => read_key(&key_path)?,
        };
        if let Some(certificate) = files::try_read(&path)?
            && self.still_fits(&certificate, &key, profile, now)
        {
            let certificate = String::from_utf8_lossy(&certificate).into_owned();
            return Ok(Leaf { certificate, key: sec1(&key) });
        }
        let certificate = self.issue(&key, profile, &path, now)?;
        files::replace(&path, certificate.as_bytes(), Access::Everybody)?;
        Ok(Leaf { certificate, key: sec1(&key) })
    }

    /// A new certificate in PEM for a key. `path` is what errors name.
    pub(super) fn issue(
        &self,
        key: &KeyPair,
        profile: &Profile<'_>,
        path: &Path,
        now: SystemTime,
    ) -> Result<String, Error> {
        let Some(issuer) = &self.issuer else {
            return Err(Error::NoCaKey { path: path.to_owned(), key: self.key_path.clone() });
        };
        let mut params = leaf_params(profile, now).map_err(|error| cannot_issue(path, &error))?;
        params.not_after = params.not_after.min(self.until.into());
        let made = params.signed_by(key, issuer).map_err(|error| cannot_issue(path, &error))?;
        Ok(made.pem())
    }

    fn still_fits(&self, pem: &[u8], key: &KeyPair, profile: &Profile<'_>, now: SystemTime) -> bool {
        let Ok(chain) = certificates(Path::new(""), pem) else { return false };
        let Some(der) = chain.first() else { return false };
        let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
        let Ok((_, ca)) = X509Certificate::from_der(&self.der) else { return false };
        certificate.public_key().raw == key.subject_public_key_info()
            && valid_at(&certificate, now)
            && !until(der).is_some_and(|until| self.should_renew(until, now))
            && is_signed_by(&certificate, &ca)
            // Where nothing can be issued, the names are up to whoever has issued this one.
            && (!self.has_key() || profile.covered_by(&certificate))
    }
}

impl Profile<'_> {
    fn covered_by(&self, certificate: &X509Certificate<'_>) -> bool {
        match self {
            Profile::Client(_) => true,
            Profile::Serving(names) => alternative_names(names).is_subset(&names_in(certificate)),
        }
    }
}

/// Creates a key exclusively, then always reads it back: of two processes that start at the same time, one creates the
/// key, and both use it.
pub(super) fn ensure_key(path: &Path) -> Result<KeyPair, Error> {
    ensure_key_as(path, KeyPair::serialize_pem)
}

pub(super) fn ensure_key_as(path: &Path, pem: fn(&KeyPair) -> String) -> Result<KeyPair, Error> {
    if files::try_read(path)?.is_none() {
        let key = new_key(path)?;
        files::create(path, pem(&key).as_bytes(), Access::Owner)?;
    }
    read_key(path)
}

/// A key in PEM, in the form of SEC 1 (`EC PRIVATE KEY`) if it is one on a curve: clients of Java (fabric8) know no other form
/// of such keys.
pub(super) fn sec1(key: &KeyPair) -> String {
    match to_sec1(&key.serialize_der()) {
        Some(der) => pem::encode(&pem::Pem::new("EC PRIVATE KEY", der)).replace("\r\n", "\n"),
        None => key.serialize_pem(),
    }
}

/// The `ECPrivateKey` in a `PrivateKeyInfo`, with the name of the curve, which stands outside of it there.
fn to_sec1(bytes: &[u8]) -> Option<Vec<u8>> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 2;
    const OCTET_STRING: u8 = 4;
    let (info, _) = der::take(SEQUENCE, bytes)?;
    let (_version, rest) = der::take(INTEGER, info)?;
    if der::take(OCTET_STRING, rest).is_some() {
        // rcgen gives a key back in the form in which it was read.
        return Some(bytes.to_vec());
    }
    let (algorithm, rest) = der::take(SEQUENCE, rest)?;
    let curve = algorithm.strip_prefix(der::EC)?;
    let (key, _) = der::take(SEQUENCE, der::take(OCTET_STRING, rest)?.0)?;
    let (_version, rest) = der::take(INTEGER, key)?;
    let (number, rest) = der::take(OCTET_STRING, rest)?;
    // The curve may be named here as well; the public key follows.
    let rest = der::take(0xa0, rest).map_or(rest, |(_, rest)| rest);
    let public = der::take(0xa1, rest).map(|(public, _)| der::tagged(0xa1, public)).unwrap_or_default();
    let parts = [der::integer(&[1]), der::octet_string(number), der::tagged(0xa0, curve), public];
    Some(der::sequence(&parts))
}

/// `path` is what errors name.
pub(super) fn new_key(path: &Path) -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(|error| cannot_issue(path, &error))
}

pub(super) fn read_key(path: &Path) -> Result<KeyPair, Error> {
    key_of_pem(files::read(path)?, path)
}

/// `path` is what errors name.
pub(super) fn key_of_pem(pem: Vec<u8>, path: &Path) -> Result<KeyPair, Error> {
    let bad = |reason: String| Error::BadKey { path: path.to_owned(), reason };
    let pem = String::from_utf8(pem).map_err(|error| bad(error.to_string()))?;
    KeyPair::from_pem(&pem).map_err(|error| bad(error.to_string()))
}

fn check_ca(
    der: &CertificateDer<'_>,
    key: Option<&KeyPair>,
    now: SystemTime,
    path: &Path,
    key_path: &Path,
) -> Result<(), Error> {
    let path = path.to_owned();
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|error| Error::BadCertificate { path: path.clone(), reason: error.to_string() })?;
    if key.is_some_and(|key| certificate.public_key().raw != key.subject_public_key_info()) {
        return Err(Error::Mismatch { certificate: path, key: key_path.to_owned() });
    }
    if !certificate.is_ca() {
        return Err(Error::BadCertificate { path, reason: "it is not a CA's".to_owned() });
    }
    if !valid_at(&certificate, now) {
        return Err(Error::Expired { path });
    }
    Ok(())
}

fn ca_params(name: &str, now: SystemTime) -> CertificateParams {
    let mut params = params(now, CA_LIFETIME);
    params.distinguished_name.push(DnType::CommonName, name);
    // The CA signs servers and clients, but no other CA.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf_params(profile: &Profile<'_>, now: SystemTime) -> Result<CertificateParams, rcgen::Error> {
    let mut leaf = params(now, LEAF_LIFETIME);
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    match profile {
        Profile::Serving(names) => {
            let names: Vec<String> = alternative_names(names).into_iter().collect();
            leaf.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
            leaf.distinguished_name.push(DnType::CommonName, "kube-apiserver");
            leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }
        Profile::Client(client) => {
            if let Some(organization) = client.organization {
                leaf.distinguished_name.push(DnType::OrganizationName, organization);
            }
            leaf.distinguished_name.push(DnType::CommonName, client.common_name);
            leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        }
    }
    Ok(leaf)
}

#[expect(clippy::disallowed_methods, reason = "no two certificates may have one serial number")]
fn params(now: SystemTime, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + lifetime).into();
    // By default the serial number is derived from the key, and a renewed certificate would have the same one.
    params.serial_number = Some(SerialNumber::from(rand::random::<u64>()));
    params
}

/// Names and addresses as text; rcgen distinguishes them again.
fn alternative_names(names: &ServingNames) -> BTreeSet<String> {
    let addresses = WELL_KNOWN_ADDRESSES.iter().chain([&names.bind_address]).map(IpAddr::to_string);
    let hosts = names.hostname.iter().chain(&names.extra).filter(|name| is_host(name)).cloned();
    WELL_KNOWN_NAMES.iter().map(|name| (*name).to_owned()).chain(addresses).chain(hosts).collect()
}

/// Whether a certificate can contain this name or address.
fn is_host(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._*:".contains(&b))
}

fn cannot_issue(path: &Path, error: &rcgen::Error) -> Error {
    Error::Issue { path: path.to_owned(), reason: error.to_string() }
}
