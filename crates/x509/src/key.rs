//! Public keys of certificates.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ParsedPublicKey,
    VerificationAlgorithm,
};

use crate::der::{Der, SEQUENCE, number};
use crate::error::Error;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1];
pub(crate) const NULL: &[u8] = &[5, 0];

/// A key, checked as far as Go does when it reads a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    Rsa(RsaKey),
    /// A point that is not compressed.
    Ec(Curve, Vec<u8>),
    Ed25519(Vec<u8>),
    /// A key that Go reads and that signs nothing here (X25519, DSA).
    Other,
    /// A key of an algorithm that Go does not know.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaKey {
    /// An `RSAPublicKey` in DER.
    pub pkcs1: Vec<u8>,
    /// Big-endian, without zeros at the front.
    pub modulus: Vec<u8>,
    pub exponent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl RsaKey {
    pub fn bits(&self) -> usize {
        let zeros = self.modulus.first().map_or(0, |first| first.leading_zeros() as usize);
        self.modulus.len() * 8 - zeros
    }
}

impl Curve {
    /// Bytes of a coordinate, and a verifier that knows which points are on the curve.
    fn rules(self) -> (usize, Option<&'static dyn VerificationAlgorithm>) {
        match self {
            Self::P224 => (28, None),
            Self::P256 => (32, Some(&ECDSA_P256_SHA256_ASN1)),
            Self::P384 => (48, Some(&ECDSA_P384_SHA384_ASN1)),
            Self::P521 => (66, Some(&ECDSA_P521_SHA512_ASN1)),
        }
    }

    fn of(oid: &[u8]) -> Option<Self> {
        Some(match oid {
            [0x2b, 0x81, 4, 0, 0x21] => Self::P224,
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => Self::P256,
            [0x2b, 0x81, 4, 0, 0x22] => Self::P384,
            [0x2b, 0x81, 4, 0, 0x23] => Self::P521,
            _ => return None,
        })
    }
}

/// An `AlgorithmIdentifier`: the object identifier, and the encoded parameters (empty if there are none).
pub(crate) fn algorithm(mut content: Der<'_>) -> Result<(&[u8], &[u8]), Error> {
    let oid = content.oid().ok_or_else(|| Error::malformed("malformed OID"))?;
    if content.is_empty() {
        return Ok((oid, &[]));
    }
    let parameters = content.any().ok_or_else(|| Error::malformed("malformed parameters"))?;
    Ok((oid, parameters.raw))
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo` that nothing follows (Go's `ParsePKIXPublicKey`).
    pub fn of_spki(der: &[u8]) -> Result<Self, Error> {
        let mut input = Der(der);
        let info = input.read(SEQUENCE).ok_or_else(|| Error::malformed("malformed spki"))?;
        if input.is_empty() { Self::read(info) } else { Err(Error::malformed("trailing data")) }
    }

    /// Reads the content of a `SubjectPublicKeyInfo`.
    pub(crate) fn read(mut info: Der<'_>) -> Result<Self, Error> {
        let identifier = info.read(SEQUENCE);
        let identifier =
            identifier.ok_or_else(|| Error::malformed("malformed public key algorithm identifier"))?;
        let (oid, parameters) = algorithm(identifier)?;
        let bits = info.bit_string().ok_or_else(|| Error::malformed("malformed subjectPublicKey"))?;
        // Bits that do not fill their last byte are the bits of no key.
        let data = if bits.unused == 0 { bits.bytes } else { &[] };
        match oid {
            RSA => rsa(parameters, data),
            EC => ec(parameters, data),
            ED25519 | X25519 if !parameters.is_empty() => {
                Err(Error::malformed("Ed25519 key encoded with illegal parameters"))
            }
            ED25519 | X25519 if data.len() != 32 => Err(Error::malformed("wrong Ed25519 public key size")),
            ED25519 => Ok(Self::Ed25519(data.to_vec())),
            X25519 => Ok(Self::Other),
            DSA => dsa(parameters, data),
            _ => Ok(Self::Unknown),
        }
    }
}

fn positive(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| *byte != 0) && bytes[0] < 0x80
}

fn rsa(parameters: &[u8], data: &[u8]) -> Result<PublicKey, Error> {
    if parameters != NULL {
        return Err(Error::malformed("RSA key missing NULL parameters"));
    }
    let mut outer = Der(data);
    let element = outer.element(SEQUENCE).ok_or_else(|| Error::malformed("invalid RSA public key"))?;
    let mut key = Der(element.content);
    let modulus = key.integer().ok_or_else(|| Error::malformed("invalid RSA modulus"))?;
    let exponent = key.integer().and_then(number);
    let exponent = exponent.ok_or_else(|| Error::malformed("invalid RSA public exponent"))?;
    if !positive(modulus) {
        return Err(Error::malformed("RSA modulus is not a positive number"));
    }
    let exponent = u64::try_from(exponent).ok().filter(|exponent| *exponent > 0);
    let exponent =
        exponent.ok_or_else(|| Error::malformed("RSA public exponent is not a positive number"))?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    Ok(PublicKey::Rsa(RsaKey { pkcs1: element.raw.to_vec(), modulus: modulus[zeros..].to_vec(), exponent }))
}

fn ec(parameters: &[u8], data: &[u8]) -> Result<PublicKey, Error> {
    let curve = Der(parameters).oid().ok_or_else(|| Error::malformed("invalid ECDSA parameters"))?;
    let curve = Curve::of(curve).ok_or_else(|| Error::malformed("unsupported elliptic curve"))?;
    let (size, verifier) = curve.rules();
    let is_uncompressed = data.first() == Some(&4) && data.len() == 1 + 2 * size;
    let is_point = verifier.is_none_or(|verifier| ParsedPublicKey::new(verifier, data).is_ok());
    if !is_uncompressed || !is_point {
        return Err(Error::malformed("invalid elliptic curve public key"));
    }
    Ok(PublicKey::Ec(curve, data.to_vec()))
}

fn dsa(parameters: &[u8], data: &[u8]) -> Result<PublicKey, Error> {
    let y = Der(data).integer().ok_or_else(|| Error::malformed("invalid DSA public key"))?;
    let mut numbers = Der(parameters).read(SEQUENCE).unwrap_or(Der(&[]));
    let parts = [numbers.integer(), numbers.integer(), numbers.integer()];
    let [Some(p), Some(q), Some(g)] = parts else {
        return Err(Error::malformed("invalid DSA parameters"));
    };
    match [y, p, q, g].into_iter().all(positive) {
        true => Ok(PublicKey::Other),
        false => Err(Error::malformed("zero or negative DSA parameter")),
    }
}
