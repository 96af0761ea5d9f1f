//! A certificate, read as Go's `ParseCertificate` reads it.

use std::ops::Range;

use crate::der::{BIT_STRING, Der, SEQUENCE, constructed, context, range_in};
use crate::error::Error;
use crate::extensions::Extensions;
use crate::key::PublicKey;
use crate::name::Name;
use crate::signature::{Algorithm, Sha1};

/// A certificate that Go parses. Whether it is to be believed, [`crate::verify()`] says.
#[derive(Clone, Debug)]
pub struct Certificate {
    raw: Vec<u8>,
    /// Places of parts in `raw`.
    signed: Range<usize>,
    issuer: Range<usize>,
    subject: Range<usize>,
    key_info: Range<usize>,
    signature: Vec<u8>,
    pub(crate) algorithm: Algorithm,
    /// 1 to 3.
    pub(crate) version: u8,
    /// Big-endian.
    pub serial: Vec<u8>,
    pub subject_name: Name,
    /// Seconds since the epoch.
    pub not_before: i64,
    pub not_after: i64,
    pub key: PublicKey,
    pub extensions: Extensions,
}

impl Certificate {
    /// Reads a certificate that nothing follows.
    pub fn parse(der: &[u8]) -> Result<Self, Error> {
        let mut input = Der(der);
        let whole = input.element(SEQUENCE).ok_or_else(|| Error::malformed("malformed certificate"))?;
        let parsed = Self::read(whole.raw, Der(whole.content))?;
        if input.is_empty() { Ok(parsed) } else { Err(Error::malformed("trailing data")) }
    }

    fn read(raw: &[u8], mut input: Der<'_>) -> Result<Self, Error> {
        let bad = |what: &str| Error::malformed(format!("malformed {what}"));
        let signed = input.element(SEQUENCE).ok_or_else(|| bad("tbs certificate"))?;
        let mut body = Der(signed.content);
        let version = match body.optional(constructed(0)).ok_or_else(|| bad("version"))? {
            Some(mut version) => version.small_integer().ok_or_else(|| bad("version"))?,
            None => 0,
        };
        if version < 0 {
            return Err(bad("version"));
        }
        let version = u8::try_from(version).ok().filter(|version| *version < 3);
        let version = 1 + version.ok_or_else(|| Error::malformed("invalid version"))?;
        let serial = body.integer().ok_or_else(|| bad("serial number"))?;
        if serial[0] >= 0x80 {
            return Err(Error::malformed("negative serial number"));
        }
        let inner = body.read(SEQUENCE).ok_or_else(|| bad("signature algorithm identifier"))?;
        let outer = input.read(SEQUENCE).ok_or_else(|| bad("algorithm identifier"))?;
        if inner != outer {
            return Err(Error::malformed("inner and outer signature algorithm identifiers don't match"));
        }
        let algorithm = Algorithm::read(inner)?;
        let issuer = body.element(SEQUENCE).ok_or_else(|| bad("issuer"))?;
        Name::read(Der(issuer.content))?;
        let mut validity = body.read(SEQUENCE).ok_or_else(|| bad("validity"))?;
        let mut time = || validity.time().ok_or_else(|| bad("time"));
        let (not_before, not_after) = (time()?, time()?);
        let subject = body.element(SEQUENCE).ok_or_else(|| bad("issuer"))?;
        let subject_name = Name::read(Der(subject.content))?;
        let key_info = body.element(SEQUENCE).ok_or_else(|| bad("spki"))?;
        let key = PublicKey::read(Der(key_info.content))?;
        let extensions = extensions(body, version)?;
        let signature = Der(input.0).bit_string().ok_or_else(|| bad("signature"))?;
        debug_assert!(input.peek(BIT_STRING));
        let place = |part: &[u8]| range_in(raw, part);
        Ok(Self {
            signed: place(signed.raw),
            issuer: place(issuer.raw),
            subject: place(subject.raw),
            key_info: place(key_info.raw),
            // No signature has bits that do not fill its last byte; an empty one fails.
            signature: if signature.unused == 0 { signature.bytes.to_vec() } else { Vec::new() },
            algorithm,
            version,
            serial: serial.to_vec(),
            subject_name,
            not_before,
            not_after,
            key,
            extensions,
            raw: raw.to_vec(),
        })
    }

    pub fn is_ca(&self) -> bool {
        self.extensions.basic_constraints.is_some_and(|constraints| constraints.is_ca)
    }

    /// The whole in DER.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    pub fn raw_issuer(&self) -> &[u8] {
        &self.raw[self.issuer.clone()]
    }

    pub fn raw_subject(&self) -> &[u8] {
        &self.raw[self.subject.clone()]
    }

    /// The `SubjectPublicKeyInfo`.
    pub fn raw_key(&self) -> &[u8] {
        &self.raw[self.key_info.clone()]
    }

    /// Checks that `parent` may sign certificates and has signed this one.
    pub(crate) fn check_signature_from(&self, parent: &Self) -> Result<(), Error> {
        let limits = &parent.extensions;
        let is_no_ca = match &limits.basic_constraints {
            Some(constraints) => !constraints.is_ca,
            None => parent.version == 3,
        };
        if is_no_ca || (limits.key_usage != 0 && !limits.may_sign_certificates()) {
            return Err(Error::ConstraintViolation);
        }
        if parent.key == PublicKey::Unknown {
            return Err(Error::UnsupportedAlgorithm);
        }
        let signed = &self.raw[self.signed.clone()];
        self.algorithm.verify(&parent.key, signed, &self.signature, Sha1::Refused)
    }

    /// The serial number in decimal digits.
    pub fn serial_text(&self) -> String {
        decimal(&self.serial)
    }

    /// How messages name this certificate among authorities.
    pub(crate) fn title(&self) -> String {
        let name = self.subject_name.common_name();
        let name =
            if name.is_empty() { self.subject_name.organizations().next().unwrap_or_default() } else { name };
        if name.is_empty() { format!("serial:{}", self.serial_text()) } else { name.to_owned() }
    }
}

/// The extensions that follow the key, if the version has them.
fn extensions(mut body: Der<'_>, version: u8) -> Result<Extensions, Error> {
    let bad = |what: &str| Error::malformed(format!("malformed {what}"));
    if version > 1 {
        body.optional(context(1)).ok_or_else(|| bad("issuerUniqueID"))?;
        body.optional(context(2)).ok_or_else(|| bad("subjectUniqueID"))?;
    }
    if version < 3 {
        return Ok(Extensions::default());
    }
    match body.optional(constructed(3)).ok_or_else(|| bad("extensions"))? {
        None => Ok(Extensions::default()),
        Some(mut list) => Extensions::read(list.read(SEQUENCE).ok_or_else(|| bad("extensions"))?),
    }
}

/// A positive number in decimal digits; one that is longer than any real serial number in hexadecimal ones, since the work for
/// decimal digits grows with the square of the length.
fn decimal(bytes: &[u8]) -> String {
    if bytes.len() > 64 {
        return bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    }
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let sum = u32::from(*digit) * 256 + carry;
            *digit = (sum % 10) as u8;
            carry = sum / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}
