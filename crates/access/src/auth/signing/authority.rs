//! An authority that signs what was asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, SigningKey as _,
};

use super::SigningRequest;
use crate::auth::jwt::keys::der;
use crate::x509;

/// Clients whose clocks are behind take a new certificate for valid.
const BACKDATE: Duration = Duration::from_secs(300);
/// The end of a certificate that lives so long is backdated, too.
const LONG: Duration = Duration::from_secs(8 * 3600);
const VERSION_3: &[u8] = &[0xa0, 3, 2, 1, 2];

const KEY_USAGES: [(&str, u32); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
/// In the order in which Go writes them.
const PURPOSES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 0x25, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x0a, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// A CA's certificate and its key.
pub struct Authority {
    /// The subject of its certificate, in DER.
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
    /// Seconds since the epoch.
    until: i64,
    key: KeyPair,
    /// How it signs, in DER.
    algorithm: Vec<u8>,
}

/// A CA whose files may change: they are read again for each certificate. While they cannot be, the CA is the one of
/// before.
pub struct FollowedAuthority {
    certificate: PathBuf,
    key: PathBuf,
    last: ArcSwap<Authority>,
}

impl FollowedAuthority {
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let last = ArcSwap::from_pointee(Authority::load(certificate, key)?);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), last })
    }

    /// The CA that the files hold now. Reads them, which takes a while.
    pub fn newest(&self) -> Arc<Authority> {
        match Authority::load(&self.certificate, &self.key) {
            Ok(authority) => self.last.store(Arc::new(authority)),
            Err(error) => tracing::warn!(%error, "cannot read a signing CA again, the one of before signs"),
        }
        self.last.load_full()
    }
}

impl Authority {
    /// Reads both files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let bad = |path: &Path, why: String| format!("{}: {why}", path.display());
        let key_pair = KeyPair::from_pem(&read(key)?).map_err(|error| bad(key, error.to_string()))?;
        let text = read(certificate)?;
        let found =
            x509::certificates(text.as_bytes()).map_err(|error| bad(certificate, error.to_string()))?;
        let found = found.into_iter().next();
        let found = found.ok_or_else(|| bad(certificate, "no certificate in PEM".to_owned()))?;
        Ok(Self {
            name: found.raw_subject().to_vec(),
            key_id: Some(found.extensions.subject_key.clone()).filter(|id| !id.is_empty()),
            until: found.not_after,
            algorithm: algorithm(&key_pair).ok_or_else(|| bad(key, "a key of an unknown sort".to_owned()))?,
            key: key_pair,
        })
    }

    /// A certificate in PEM. Its names are written anew from those that were read and checked: what else stands in the
    /// request (attributes, names of other sorts, other extensions) is not in the certificate.
    pub fn sign(
        &self,
        request: &SigningRequest,
        usages: &[&str],
        lifetime: Duration,
        now: SystemTime,
    ) -> Result<String, String> {
        let proof = request.request.check_signature();
        proof.map_err(|error| format!("unable to verify certificate request signature: {error}"))?;
        let seconds = |length: Duration| i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
        let now = Timestamp::try_from(now).map_err(|error| error.to_string())?.as_second();
        let from = now.saturating_sub(seconds(BACKDATE));
        let back = if lifetime < LONG { 0 } else { seconds(BACKDATE) };
        let until = now.saturating_add(seconds(lifetime)).saturating_sub(back).min(self.until);
        if now >= self.until {
            return Err("the signer has expired".to_owned());
        }
        let body = der::sequence(&[
            VERSION_3.to_vec(),
            der::integer(&serial()),
            self.algorithm.clone(),
            self.name.clone(),
            der::sequence(&[time(from)?, time(until)?]),
            request.subject().to_der(),
            request.request.raw_key.clone(),
            der::tagged(0xa3, &self.extensions(request, usages)?),
        ]);
        let signature =
            self.key.sign(&body).map_err(|error| format!("failed to sign certificate: {error}"))?;
        let certificate = der::sequence(&[body, self.algorithm.clone(), der::bit_string(&signature)]);
        Ok(pem::encode(&pem::Pem::new("CERTIFICATE", certificate)).replace("\r\n", "\n"))
    }

    fn extensions(&self, request: &SigningRequest, usages: &[&str]) -> Result<Vec<u8>, String> {
        let known = |usage: &str| {
            KEY_USAGES.iter().any(|(name, _)| *name == usage)
                || PURPOSES.iter().any(|(name, _)| *name == usage)
        };
        if let Some(unknown) = usages.iter().find(|usage| !known(usage)) {
            return Err(format!("unrecognized usage values: [{}]", crate::gotext::quote(unknown)));
        }
        let mut extensions = Vec::new();
        let bits = KEY_USAGES.iter().filter(|(name, _)| usages.contains(name));
        let bits = bits.fold(0u16, |bits, (_, bit)| bits | 0x8000 >> bit);
        if bits != 0 {
            extensions.push(extension(KEY_USAGE, Critical::Yes, &named_bits(bits)));
        }
        let mut purposes: Vec<Vec<u8>> = PURPOSES
            .iter()
            .filter(|(name, _)| usages.contains(name))
            .map(|(_, id)| der::tagged(6, id))
            .collect();
        purposes.dedup();
        if !purposes.is_empty() {
            extensions.push(extension(EXTENDED_KEY_USAGE, Critical::No, &der::sequence(&purposes)));
        }
        extensions.push(extension(BASIC_CONSTRAINTS, Critical::Yes, &der::sequence(&[])));
        if let Some(id) = &self.key_id {
            let value = der::sequence(&[der::tagged(0x80, id)]);
            extensions.push(extension(AUTHORITY_KEY, Critical::No, &value));
        }
        if !request.request.names.is_empty() {
            // Whom the certificate is for is said here alone if the subject is empty.
            let is_nameless = request.subject().to_der() == der::sequence(&[]);
            let critical = if is_nameless { Critical::Yes } else { Critical::No };
            extensions.push(extension(ALTERNATIVE_NAMES, critical, &request.request.names.to_der()));
        }
        Ok(der::sequence(&extensions))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Critical {
    Yes,
    No,
}

fn extension(id: &[u8], critical: Critical, value: &[u8]) -> Vec<u8> {
    let flag = if critical == Critical::Yes { der::tagged(1, &[0xff]) } else { Vec::new() };
    der::sequence(&[der::tagged(6, id), flag, der::octet_string(value)])
}

/// A list of flags, the first one in the highest bit.
fn named_bits(bits: u16) -> Vec<u8> {
    let [high, low] = bits.to_be_bytes();
    let bytes = if low == 0 { vec![high] } else { vec![high, low] };
    let unused = bytes.last().map_or(0, |last| last.trailing_zeros() as u8);
    der::tagged(3, &[&[unused], bytes.as_slice()].concat())
}

fn serial() -> [u8; 16] {
    #[expect(clippy::disallowed_methods, reason = "no two certificates may have one serial number")]
    let mut serial = rand::random::<[u8; 16]>();
    serial[0] &= 0x7f;
    serial
}

/// The form for years before 2050, or the one for later years.
fn time(seconds: i64) -> Result<Vec<u8>, String> {
    let at = Timestamp::from_second(seconds).map_err(|error| error.to_string())?.to_zoned(TimeZone::UTC);
    let rest = at.strftime("%m%d%H%M%SZ").to_string();
    Ok(match at.year() {
        year @ 1950..2050 => der::tagged(0x17, format!("{:02}{rest}", year % 100).as_bytes()),
        year => der::tagged(0x18, format!("{year:04}{rest}").as_bytes()),
    })
}

fn algorithm(key: &KeyPair) -> Option<Vec<u8>> {
    let algorithm = key.algorithm();
    let id: &[u8] = if *algorithm == PKCS_ECDSA_P256_SHA256 {
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]
    } else if *algorithm == PKCS_ECDSA_P384_SHA384 {
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]
    } else if *algorithm == PKCS_ECDSA_P521_SHA512 {
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]
    } else if *algorithm == PKCS_RSA_SHA256 {
        &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11, 5, 0]
    } else if *algorithm == PKCS_ED25519 {
        &[6, 3, 0x2b, 0x65, 0x70]
    } else {
        return None;
    };
    Some(der::sequence(&[id.to_vec()]))
}
