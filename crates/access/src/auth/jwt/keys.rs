//! Keys that sign tokens and verify them: RSA, and ECDSA on the curves P-256, P-384 and P-521.

pub(in crate::auth) mod der;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, SubjectPublicKeyInfo, X509Certificate};
use x509_parser::public_key::RSAPublicKey;

use super::encode;
use crate::tree::{Value, json};

/// Why there is no key in a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
}

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "ES512" => Self::Es512,
            _ => return None,
        })
    }

    fn verifier(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }

    fn family(self) -> Family {
        match self {
            Self::Es256 => Family::P256,
            Self::Es384 => Family::P384,
            Self::Es512 => Family::P521,
            _ => Family::Rsa,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Rsa,
    P256,
    P384,
    P521,
}

/// A key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Upstream's: the hash of the key in PKIX form.
    pub id: String,
    family: Family,
    /// For RSA a `RSAPublicKey` in DER, else the point on the curve.
    raw: Vec<u8>,
}

impl PublicKey {
    fn new(family: Family, raw: Vec<u8>) -> Self {
        let id = encode(&Sha256::digest(spki(family, &raw)));
        Self { id, family, raw }
    }

    /// The key of a modulus and an exponent, as key sets have them.
    pub fn of_rsa(modulus: &[u8], exponent: &[u8]) -> Self {
        Self::new(Family::Rsa, der::sequence(&[der::integer(modulus), der::integer(exponent)]))
    }

    /// The key of a point, as key sets have them; `None` for a curve that is not known here.
    pub fn of_point(curve: &str, x: &[u8], y: &[u8]) -> Option<Self> {
        let (family, size) = match curve {
            "P-256" => (Family::P256, 32),
            "P-384" => (Family::P384, 48),
            "P-521" => (Family::P521, 66),
            _ => return None,
        };
        (x.len() == size && y.len() == size).then(|| Self::new(family, [&[4], x, y].concat()))
    }

    /// All keys of a file in PEM, public ones and those that belong to private ones. Blocks of other things are passed over.
    pub fn of_pem(text: &[u8]) -> Result<Vec<Self>, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPublicKey)?;
        let mut keys = Vec::new();
        for block in &blocks {
            keys.extend(Self::of_block(block)?);
        }
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(keys) }
    }

    fn of_block(block: &pem::Pem) -> Result<Option<Self>, KeyError> {
        Ok(match block.tag() {
            "PUBLIC KEY" => Self::of_spki(block.contents())?,
            "RSA PUBLIC KEY" => Some(Self::new(Family::Rsa, block.contents().to_vec())),
            "CERTIFICATE" => {
                let parsed = X509Certificate::from_der(block.contents()).ok();
                match parsed {
                    Some((_, certificate)) => Self::of_spki(certificate.public_key().raw)?,
                    None => None,
                }
            }
            _ => SigningKey::of_block(block)?.map(|key| key.public),
        })
    }

    /// A public key in PKIX form; `None` if it is of a type or a curve with which no token can be signed.
    pub fn of_pkix(bytes: &[u8]) -> Option<Self> {
        Self::of_spki(bytes).ok().flatten()
    }

    fn of_spki(bytes: &[u8]) -> Result<Option<Self>, KeyError> {
        let Ok((_, info)) = SubjectPublicKeyInfo::from_der(bytes) else { return Ok(None) };
        let raw = info.subject_public_key.data.to_vec();
        Ok(match info.algorithm.algorithm.to_id_string().as_str() {
            der::RSA_ID => Some(Self::new(Family::Rsa, raw)),
            der::EC_ID => {
                let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
                match curve.map(|curve| curve.to_id_string()).as_deref() {
                    Some(der::P256_ID) => Some(Self::new(Family::P256, raw)),
                    Some(der::P384_ID) => Some(Self::new(Family::P384, raw)),
                    Some(der::P521_ID) => Some(Self::new(Family::P521, raw)),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(algorithm.verifier(), &self.raw);
        algorithm.family() == self.family && key.verify(message, signature).is_ok()
    }

    /// The algorithm that key sets name.
    pub fn algorithm(&self) -> &'static str {
        match self.family {
            Family::Rsa => "RS256",
            Family::P256 => "ES256",
            Family::P384 => "ES384",
            Family::P521 => "ES512",
        }
    }

    /// In PKIX form, as a block of PEM.
    pub fn to_pem(&self) -> String {
        pem::encode(&pem::Pem::new("PUBLIC KEY", spki(self.family, &self.raw))).replace("\r\n", "\n")
    }

    /// The key as an element of a key set. `None` for an RSA key that cannot be read.
    pub fn to_jwk(&self) -> Option<Value> {
        let (id, algorithm) = (&self.id, self.algorithm());
        let curve = match self.family {
            Family::P256 => "P-256",
            Family::P384 => "P-384",
            Family::P521 => "P-521",
            Family::Rsa => {
                let (_, key) = RSAPublicKey::from_der(&self.raw).ok()?;
                let number = |bytes: &[u8]| {
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    encode(&bytes[zeros..])
                };
                let (n, e) = (number(key.modulus), number(key.exponent));
                return Some(
                    json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": n, "e": e}),
                );
            }
        };
        let point = self.raw.strip_prefix(&[4])?;
        let (x, y) = point.split_at_checked(point.len() / 2)?;
        let (x, y) = (encode(x), encode(y));
        Some(json!({"use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y}))
    }
}

/// The key in PKIX form.
fn spki(family: Family, raw: &[u8]) -> Vec<u8> {
    der::sequence(&[algorithm_identifier(family), der::bit_string(raw)])
}

fn algorithm_identifier(family: Family) -> Vec<u8> {
    match family {
        Family::Rsa => der::sequence(&[der::RSA.to_vec(), der::NULL.to_vec()]),
        Family::P256 => der::sequence(&[der::EC.to_vec(), der::P256.to_vec()]),
        Family::P384 => der::sequence(&[der::EC.to_vec(), der::P384.to_vec()]),
        Family::P521 => der::sequence(&[der::EC.to_vec(), der::P521.to_vec()]),
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: Pair,
    pub public: PublicKey,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.public.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// The first private key of a file in PEM.
    pub fn of_pem(text: &[u8]) -> Result<Self, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPrivateKey)?;
        for block in &blocks {
            if let Some(key) = Self::of_block(block)? {
                return Ok(key);
            }
        }
        Err(KeyError::NoPrivateKey)
    }

    fn of_block(block: &pem::Pem) -> Result<Option<Self>, KeyError> {
        let bytes = block.contents();
        Ok(match block.tag() {
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(bytes).ok().map(Self::of_rsa),
            "PRIVATE KEY" => {
                RsaKeyPair::from_pkcs8(bytes).ok().map(Self::of_rsa).or_else(|| Self::of_ec(bytes))
            }
            "EC PRIVATE KEY" => Self::of_ec(bytes),
            _ => None,
        })
    }

    fn of_rsa(pair: RsaKeyPair) -> Self {
        let public = PublicKey::new(Family::Rsa, pair.public_key().as_ref().to_vec());
        Self { pair: Pair::Rsa(Box::new(pair)), public }
    }

    /// A key on a curve, in PKCS#8 or in SEC 1.
    fn of_ec(bytes: &[u8]) -> Option<Self> {
        let curves = [
            (Family::P256, &ECDSA_P256_SHA256_FIXED_SIGNING),
            (Family::P384, &ECDSA_P384_SHA384_FIXED_SIGNING),
            (Family::P521, &ECDSA_P521_SHA512_FIXED_SIGNING),
        ];
        curves.into_iter().find_map(|(family, algorithm)| {
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, bytes).ok()?;
            let public = PublicKey::new(family, pair.public_key().as_ref().to_vec());
            Some(Self { pair: Pair::Ecdsa(Box::new(pair)), public })
        })
    }

    /// A compact token with these claims; `None` if the system has no random numbers.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": self.public.algorithm(), "kid": self.public.id});
        let mut token =
            format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => pair.sign(&random, token.as_bytes()).ok()?.as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature).ok()?;
                signature
            }
        };
        token.push('.');
        token.push_str(&encode(&signature));
        Some(token)
    }
}
