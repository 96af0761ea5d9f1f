//! Signatures of certificates, requests and handshakes.

use aws_lc_rs::signature::{self as aws, UnparsedPublicKey, VerificationAlgorithm};
use rsa::{BoxedUint, Pkcs1v15Sign, Pss};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::der::{Der, SEQUENCE, constructed};
use crate::error::Error;
use crate::key::{Curve, NULL, PublicKey, RsaKey, algorithm};

/// How something is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Pkcs1(Hash),
    Pss(Hash),
    Ecdsa(Hash),
    Ed25519,
    Md5,
    /// DSA, and all that Go does not know.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// Whether signatures over SHA-1 are taken, as Go does in requests and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sha1 {
    Taken,
    Refused,
}

const PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];
const MGF1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8];

impl Algorithm {
    /// Reads the content of an `AlgorithmIdentifier`.
    pub(crate) fn read(content: Der<'_>) -> Result<Self, Error> {
        let (oid, parameters) = algorithm(content)?;
        Ok(match oid {
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4] => Self::Md5,
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5] | [0x2b, 0x0e, 3, 2, 0x1d] => {
                Self::Pkcs1(Hash::Sha1)
            }
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11] => Self::Pkcs1(Hash::Sha256),
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12] => Self::Pkcs1(Hash::Sha384),
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13] => Self::Pkcs1(Hash::Sha512),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => Self::Ecdsa(Hash::Sha1),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => Self::Ecdsa(Hash::Sha256),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => Self::Ecdsa(Hash::Sha384),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => Self::Ecdsa(Hash::Sha512),
            [0x2b, 0x65, 0x70] if parameters.is_empty() => Self::Ed25519,
            PSS => pss(parameters).map_or(Self::Unknown, Self::Pss),
            _ => Self::Unknown,
        })
    }

    /// Verifies a signature over `message`.
    pub(crate) fn verify(
        self,
        key: &PublicKey,
        message: &[u8],
        signature: &[u8],
        sha1: Sha1,
    ) -> Result<(), Error> {
        match (self, key) {
            (Self::Md5, _) => Err(Error::InsecureAlgorithm("MD5-RSA")),
            (Self::Pkcs1(Hash::Sha1), _) if sha1 == Sha1::Refused => {
                Err(Error::InsecureAlgorithm("SHA1-RSA"))
            }
            (Self::Ecdsa(Hash::Sha1), _) if sha1 == Sha1::Refused => {
                Err(Error::InsecureAlgorithm("ECDSA-SHA1"))
            }
            (Self::Unknown, _) | (_, PublicKey::Other | PublicKey::Unknown) => {
                Err(Error::UnsupportedAlgorithm)
            }
            (Self::Pkcs1(hash), PublicKey::Rsa(key)) => rsa(key, Padding::Pkcs1, hash, message, signature),
            (Self::Pss(hash), PublicKey::Rsa(key)) => rsa(key, Padding::Pss, hash, message, signature),
            (Self::Ecdsa(hash), PublicKey::Ec(curve, point)) => {
                let failed = Error::Signature("x509: ECDSA verification failure");
                let verifier = ecdsa(*curve, hash).ok_or(Error::Unsupported("this curve with this hash"))?;
                UnparsedPublicKey::new(verifier, point).verify(message, signature).map_err(|_| failed)
            }
            (Self::Ed25519, PublicKey::Ed25519(key)) => {
                let failed = Error::Signature("x509: Ed25519 verification failure");
                UnparsedPublicKey::new(&aws::ED25519, key).verify(message, signature).map_err(|_| failed)
            }
            _ => Err(Error::Signature("x509: signature algorithm specifies a public key of another type")),
        }
    }
}

/// The hash of PSS parameters: the same for the mask, a salt as long as the hash, and the usual trailer.
fn pss(parameters: &[u8]) -> Option<Hash> {
    let hash_of = |content: Der<'_>| {
        let (oid, parameters) = algorithm(content).ok()?;
        if !parameters.is_empty() && parameters != NULL {
            return None;
        }
        match oid {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Some((Hash::Sha256, 32)),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Some((Hash::Sha384, 48)),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Some((Hash::Sha512, 64)),
            _ => None,
        }
    };
    let mut fields = Der(parameters).read(SEQUENCE)?;
    let (hash, size) = hash_of(fields.read(constructed(0))?.read(SEQUENCE)?)?;
    let (mask, of_mask) = algorithm(fields.read(constructed(1))?.read(SEQUENCE)?).ok()?;
    let (mask_hash, _) = hash_of(Der(of_mask).read(SEQUENCE)?)?;
    let salt = fields.read(constructed(2))?.small_integer()?;
    let trailer = match fields.optional(constructed(3))? {
        Some(mut trailer) => trailer.small_integer()?,
        None => 1,
    };
    (mask == MGF1 && mask_hash == hash && salt == size && trailer == 1).then_some(hash)
}

/// Padding of an RSA signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    Pkcs1,
    /// PSS with a salt as long as the hash, as certificates and handshakes have it.
    Pss,
    /// PSS with a salt of any length, as Go verifies tokens.
    PssOfAnySalt,
}

impl RsaKey {
    /// Verifies a signature over `message`. Keys have 1024 to 8192 bits; over SHA-1 there is PKCS #1 alone.
    pub fn verify(
        &self,
        padding: Padding,
        hash: Hash,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        rsa(self, padding, hash, message, signature)
    }
}

fn rsa(key: &RsaKey, padding: Padding, hash: Hash, message: &[u8], signature: &[u8]) -> Result<(), Error> {
    let failed = Error::Signature("crypto/rsa: verification error");
    match key.bits() {
        ..1024 => Err(Error::Signature(
            "crypto/rsa: keys of less than 1024 bits are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)",
        )),
        1024..2048 if hash != Hash::Sha1 => plain_rsa(key, padding, hash, message, signature).ok_or(failed),
        1024..=8192 if padding == Padding::PssOfAnySalt => {
            plain_rsa(key, padding, hash, message, signature).ok_or(failed)
        }
        1024..=8192 => {
            let verifier: &dyn VerificationAlgorithm = match (padding, hash) {
                (Padding::Pkcs1, Hash::Sha1) => &aws::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
                (Padding::Pkcs1, Hash::Sha256) => &aws::RSA_PKCS1_2048_8192_SHA256,
                (Padding::Pkcs1, Hash::Sha384) => &aws::RSA_PKCS1_2048_8192_SHA384,
                (Padding::Pkcs1, Hash::Sha512) => &aws::RSA_PKCS1_2048_8192_SHA512,
                (Padding::Pss, Hash::Sha256) => &aws::RSA_PSS_2048_8192_SHA256,
                (Padding::Pss, Hash::Sha384) => &aws::RSA_PSS_2048_8192_SHA384,
                (Padding::Pss, Hash::Sha512) => &aws::RSA_PSS_2048_8192_SHA512,
                (Padding::Pss, Hash::Sha1) | (Padding::PssOfAnySalt, _) => {
                    return Err(Error::UnsupportedAlgorithm);
                }
            };
            UnparsedPublicKey::new(verifier, &key.pkcs1).verify(message, signature).map_err(|_| failed)
        }
        _ => Err(Error::Unsupported("an RSA key of more than 8192 bits")),
    }
}

/// Signatures that aws-lc does not verify: those of keys of 1024 to 2047 bits, and PSS with a salt of any length. `None` if
/// the signature is wrong.
fn plain_rsa(key: &RsaKey, padding: Padding, hash: Hash, message: &[u8], signature: &[u8]) -> Option<()> {
    let modulus = BoxedUint::from_be_slice_vartime(&key.modulus);
    let key = rsa::PublicKey::new(modulus, BoxedUint::from(key.exponent)).ok()?;
    let hashed = match hash {
        Hash::Sha1 => return None,
        Hash::Sha256 => Sha256::digest(message).to_vec(),
        Hash::Sha384 => Sha384::digest(message).to_vec(),
        Hash::Sha512 => Sha512::digest(message).to_vec(),
    };
    let verified = match (padding, hash) {
        (Padding::Pkcs1, Hash::Sha256) => key.verify(Pkcs1v15Sign::new::<Sha256>(), &hashed, signature),
        (Padding::Pkcs1, Hash::Sha384) => key.verify(Pkcs1v15Sign::new::<Sha384>(), &hashed, signature),
        (Padding::Pkcs1, Hash::Sha512) => key.verify(Pkcs1v15Sign::new::<Sha512>(), &hashed, signature),
        (Padding::Pss, Hash::Sha256) => key.verify(Pss::<Sha256>::new_with_salt(32), &hashed, signature),
        (Padding::Pss, Hash::Sha384) => key.verify(Pss::<Sha384>::new_with_salt(48), &hashed, signature),
        (Padding::Pss, Hash::Sha512) => key.verify(Pss::<Sha512>::new_with_salt(64), &hashed, signature),
        (Padding::PssOfAnySalt, Hash::Sha256) => key.verify(any_salt::<Sha256>(), &hashed, signature),
        (Padding::PssOfAnySalt, Hash::Sha384) => key.verify(any_salt::<Sha384>(), &hashed, signature),
        (Padding::PssOfAnySalt, Hash::Sha512) => key.verify(any_salt::<Sha512>(), &hashed, signature),
        (_, Hash::Sha1) => return None,
    };
    verified.ok()
}

fn any_salt<D: sha2::Digest>() -> Pss<D> {
    Pss { salt_len: None, ..Pss::new() }
}

fn ecdsa(curve: Curve, hash: Hash) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (curve, hash) {
        (Curve::P256, Hash::Sha1) => &aws::ECDSA_P256_SHA1_ASN1,
        (Curve::P256, Hash::Sha256) => &aws::ECDSA_P256_SHA256_ASN1,
        (Curve::P256, Hash::Sha384) => &aws::ECDSA_P256_SHA384_ASN1,
        (Curve::P256, Hash::Sha512) => &aws::ECDSA_P256_SHA512_ASN1,
        (Curve::P384, Hash::Sha256) => &aws::ECDSA_P384_SHA256_ASN1,
        (Curve::P384, Hash::Sha384) => &aws::ECDSA_P384_SHA384_ASN1,
        (Curve::P384, Hash::Sha512) => &aws::ECDSA_P384_SHA512_ASN1,
        (Curve::P521, Hash::Sha1) => &aws::ECDSA_P521_SHA1_ASN1,
        (Curve::P521, Hash::Sha256) => &aws::ECDSA_P521_SHA256_ASN1,
        (Curve::P521, Hash::Sha384) => &aws::ECDSA_P521_SHA384_ASN1,
        (Curve::P521, Hash::Sha512) => &aws::ECDSA_P521_SHA512_ASN1,
        (Curve::P384, Hash::Sha1) | (Curve::P224, _) => return None,
    })
}
