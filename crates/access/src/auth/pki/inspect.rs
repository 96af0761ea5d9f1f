//! Reads certificates, and checks whose they are.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{KeyPair, PublicKeyData as _};
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Error, ServingNames, certificates, files};

/// The end, subject and issuer of a certificate.
#[derive(Debug)]
pub struct Described {
    /// The end of its validity.
    pub until: SystemTime,
    pub subject: String,
    pub issuer: String,
}

/// Reads the first certificate of a PEM file.
pub(super) fn describe(path: &Path, pem: &[u8]) -> Result<Described, Error> {
    let der = first(certificates(path, pem)?, path)?;
    let bad = |reason: String| Error::BadCertificate { path: path.to_owned(), reason };
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| bad(error.to_string()))?;
    let until = until(&der).ok_or_else(|| bad("its end cannot be read".to_owned()))?;
    let [subject, issuer] = [certificate.subject(), certificate.issuer()].map(ToString::to_string);
    Ok(Described { until, subject, issuer })
}

/// The names in a server's certificate in PEM, for another one.
pub(super) fn serving_names(path: &Path, pem: &[u8]) -> Result<ServingNames, Error> {
    let der = first(certificates(path, pem)?, path)?;
    let parsed = X509Certificate::from_der(&der);
    let names = parsed.map(|(_, certificate)| names_in(&certificate).into_iter().collect());
    let bad =
        |error: &dyn fmt::Display| Error::BadCertificate { path: path.to_owned(), reason: error.to_string() };
    let extra = names.map_err(|error| bad(&error))?;
    Ok(ServingNames { extra, ..ServingNames::local() })
}

/// The hash of the key of the first certificate in PEM, `sha256:…` as `kubeadm join` takes it. `path` is what errors name.
pub fn public_key_pin(path: &Path, pem: &[u8]) -> Result<String, Error> {
    let der = first(certificates(path, pem)?, path)?;
    let bad = |reason| Error::BadCertificate { path: path.to_owned(), reason };
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| bad(error.to_string()))?;
    let hash = Sha256::digest(certificate.public_key().raw);
    Ok(hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}

/// Refuses a certificate in PEM of another key, or that the CA in this file has not signed.
pub(super) fn check_leaf(
    (path, pem): (&Path, &[u8]),
    (key_path, key): (&Path, &KeyPair),
    ca_path: &Path,
) -> Result<(), Error> {
    let bad = |path: &Path, error: &dyn fmt::Display| Error::BadCertificate {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let der = first(certificates(path, pem)?, path)?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| bad(path, &error))?;
    if certificate.public_key().raw != key.subject_public_key_info() {
        return Err(Error::Mismatch { certificate: path.to_owned(), key: key_path.to_owned() });
    }
    let ca_der = first(certificates(ca_path, &files::read(ca_path)?)?, ca_path)?;
    let (_, ca) = X509Certificate::from_der(&ca_der).map_err(|error| bad(ca_path, &error))?;
    match is_signed_by(&certificate, &ca) {
        true => Ok(()),
        false => Err(Error::Foreign { certificate: path.to_owned(), ca: ca_path.to_owned() }),
    }
}

pub(super) fn is_signed_by(certificate: &X509Certificate<'_>, ca: &X509Certificate<'_>) -> bool {
    certificate.issuer() == ca.subject() && certificate.verify_signature(Some(ca.public_key())).is_ok()
}

pub(super) fn names_in(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return BTreeSet::new() };
    extension.value.general_names.iter().filter_map(name_text).collect()
}

fn name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

pub(super) fn valid_at(certificate: &X509Certificate<'_>, time: SystemTime) -> bool {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    validity.not_before.timestamp() <= seconds && seconds <= validity.not_after.timestamp()
}

/// The end of a certificate's validity; `None` if it cannot be read.
pub fn until(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

pub(super) fn first(
    chain: Vec<CertificateDer<'static>>,
    path: &Path,
) -> Result<CertificateDer<'static>, Error> {
    chain.into_iter().next().ok_or_else(|| Error::BadCertificate {
        path: path.to_owned(),
        reason: "no PEM certificate in it".to_owned(),
    })
}
