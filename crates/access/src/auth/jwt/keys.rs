//! Keys that sign tokens and verify them: RSA, and ECDSA on the curves P-256, P-384 and P-521.

pub(in crate::auth) mod der;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use rowplane_x509::{self as x509, Certificate, Curve, Hash, Padding, RsaKey};
use sha2::{Digest as _, Sha256};

use super::encode;
use crate::tree::{Value, json};

/// Why there is no key in a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// A private RSA key that verifies at most.
    #[error("RSA keys of 2048 to 8192 bits can sign tokens, this one has {bits} bits")]
    Size { bits: usize },
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

    fn scheme(self) -> Scheme {
        match self {
            Self::Rs256 => Scheme::Rsa(Padding::Pkcs1, Hash::Sha256),
            Self::Rs384 => Scheme::Rsa(Padding::Pkcs1, Hash::Sha384),
            Self::Rs512 => Scheme::Rsa(Padding::Pkcs1, Hash::Sha512),
            Self::Ps256 => Scheme::Rsa(Padding::PssOfAnySalt, Hash::Sha256),
            Self::Ps384 => Scheme::Rsa(Padding::PssOfAnySalt, Hash::Sha384),
            Self::Ps512 => Scheme::Rsa(Padding::PssOfAnySalt, Hash::Sha512),
            Self::Es256 => Scheme::Ecdsa(Curve::P256, &signature::ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Scheme::Ecdsa(Curve::P384, &signature::ECDSA_P384_SHA384_FIXED),
            Self::Es512 => Scheme::Ecdsa(Curve::P521, &signature::ECDSA_P521_SHA512_FIXED),
        }
    }
}

#[derive(Clone, Copy)]
enum Scheme {
    Rsa(Padding, Hash),
    Ecdsa(Curve, &'static dyn VerificationAlgorithm),
}

/// A key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Upstream's: the hash of the key in PKIX form.
    pub id: String,
    key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Rsa(RsaKey),
    P256(Vec<u8>),
    P384(Vec<u8>),
    P521(Vec<u8>),
}

impl Key {
    /// `None` for a key that no tokens are signed with.
    fn new(key: x509::PublicKey) -> Option<Self> {
        Some(match key {
            x509::PublicKey::Rsa(key) => Self::Rsa(key),
            x509::PublicKey::Ec(Curve::P256, point) => Self::P256(point),
            x509::PublicKey::Ec(Curve::P384, point) => Self::P384(point),
            x509::PublicKey::Ec(Curve::P521, point) => Self::P521(point),
            _ => return None,
        })
    }

    /// The key in PKIX form.
    fn spki(&self) -> Vec<u8> {
        match self {
            Self::Rsa(key) => spki(&[der::RSA, der::NULL], &key.pkcs1),
            Self::P256(point) => spki(&[der::EC, der::P256], point),
            Self::P384(point) => spki(&[der::EC, der::P384], point),
            Self::P521(point) => spki(&[der::EC, der::P521], point),
        }
    }
}

impl PublicKey {
    fn new(key: Key) -> Self {
        Self { id: encode(&Sha256::digest(key.spki())), key }
    }

    /// The key of a modulus and an exponent, as key sets have them; `None` if they are none.
    pub fn of_rsa(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        Self::of_pkcs1(&der::sequence(&[der::integer(modulus), der::integer(exponent)]))
    }

    fn of_pkcs1(key: &[u8]) -> Option<Self> {
        Self::of_pkix(&spki(&[der::RSA, der::NULL], key))
    }

    /// The key of a point, as key sets have them; `None` for a curve that is not known here, and for a point beside it.
    pub fn of_point(curve: &str, x: &[u8], y: &[u8]) -> Option<Self> {
        let (curve, size) = match curve {
            "P-256" => (der::P256, 32),
            "P-384" => (der::P384, 48),
            "P-521" => (der::P521, 66),
            _ => return None,
        };
        let has_size = x.len() == size && y.len() == size;
        has_size.then(|| Self::of_pkix(&spki(&[der::EC, curve], &[&[4], x, y].concat()))).flatten()
    }

    /// All keys of a file in PEM, public ones and those that belong to private ones. Blocks of other things are passed over.
    pub fn of_pem(text: &[u8]) -> Result<Vec<Self>, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPublicKey)?;
        let keys: Vec<Self> = blocks.iter().filter_map(Self::of_block).collect();
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(keys) }
    }

    fn of_block(block: &pem::Pem) -> Option<Self> {
        let bytes = block.contents();
        match block.tag() {
            "PUBLIC KEY" => Self::of_pkix(bytes),
            "RSA PUBLIC KEY" => Self::of_pkcs1(bytes),
            "CERTIFICATE" => Key::new(Certificate::parse(bytes).ok()?.key).map(Self::new),
            _ => match SigningKey::of_block(block) {
                Ok(key) => key.map(|key| key.public),
                Err(_) => Self::of_private_rsa(block),
            },
        }
    }

    /// The public half of a private RSA key, in PKCS #1 or #8.
    fn of_private_rsa(block: &pem::Pem) -> Option<Self> {
        let mut bytes = block.contents();
        if block.tag() == "PRIVATE KEY" {
            let (_, fields) = der::take(2, der::take(0x30, bytes)?.0)?;
            let (_, fields) = der::take(0x30, fields)?;
            bytes = der::take(4, fields)?.0;
        }
        let (_, fields) = der::take(2, der::take(0x30, bytes)?.0)?;
        let (modulus, fields) = der::take(2, fields)?;
        let (exponent, _) = der::take(2, fields)?;
        Self::of_rsa(modulus, exponent)
    }

    /// A public key in PKIX form; `None` if it is of a type or a curve with which no token can be signed.
    pub fn of_pkix(bytes: &[u8]) -> Option<Self> {
        x509::PublicKey::of_spki(bytes).ok().and_then(Key::new).map(Self::new)
    }

    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.key, algorithm.scheme()) {
            (Key::Rsa(key), Scheme::Rsa(padding, hash)) => {
                key.verify(padding, hash, message, signature).is_ok()
            }
            (Key::P256(point), Scheme::Ecdsa(Curve::P256, verifier))
            | (Key::P384(point), Scheme::Ecdsa(Curve::P384, verifier))
            | (Key::P521(point), Scheme::Ecdsa(Curve::P521, verifier)) => {
                UnparsedPublicKey::new(verifier, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }

    /// The algorithm that key sets name.
    pub fn algorithm(&self) -> &'static str {
        match self.key {
            Key::Rsa(_) => "RS256",
            Key::P256(_) => "ES256",
            Key::P384(_) => "ES384",
            Key::P521(_) => "ES512",
        }
    }

    /// In PKIX form, as a block of PEM.
    pub fn to_pem(&self) -> String {
        pem::encode(&pem::Pem::new("PUBLIC KEY", self.key.spki())).replace("\r\n", "\n")
    }

    /// The key as an element of a key set.
    pub fn to_jwk(&self) -> Value {
        let (id, algorithm) = (&self.id, self.algorithm());
        let (curve, point) = match &self.key {
            Key::P256(point) => ("P-256", point),
            Key::P384(point) => ("P-384", point),
            Key::P521(point) => ("P-521", point),
            Key::Rsa(key) => {
                let exponent = key.exponent.to_be_bytes();
                let zeros = exponent.iter().take_while(|byte| **byte == 0).count();
                let (n, e) = (encode(&key.modulus), encode(&exponent[zeros..]));
                return json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": n, "e": e});
            }
        };
        // The first byte says that the point is not compressed.
        let (x, y) = point[1..].split_at(point.len() / 2);
        let (x, y) = (encode(x), encode(y));
        json!({"use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": x, "y": y})
    }
}

/// A `SubjectPublicKeyInfo` of an algorithm's identifier, its parameters and a key.
fn spki(algorithm: &[&[u8]; 2], key: &[u8]) -> Vec<u8> {
    der::sequence(&[der::sequence(&[algorithm.concat()]), der::bit_string(key)])
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

    /// `None` for a block of something else.
    fn of_block(block: &pem::Pem) -> Result<Option<Self>, KeyError> {
        let bytes = block.contents();
        let (rsa, ec) = match block.tag() {
            "RSA PRIVATE KEY" => (RsaKeyPair::from_der(bytes).ok(), None),
            "PRIVATE KEY" => (RsaKeyPair::from_pkcs8(bytes).ok(), Self::of_ec(bytes)),
            "EC PRIVATE KEY" => (None, Self::of_ec(bytes)),
            _ => return Ok(None),
        };
        if let Some(key) = rsa.and_then(Self::of_rsa).or(ec) {
            return Ok(Some(key));
        }
        match PublicKey::of_private_rsa(block).map(|public| public.key) {
            Some(Key::Rsa(key)) if !(2048..=8192).contains(&key.bits()) => {
                Err(KeyError::Size { bits: key.bits() })
            }
            _ => Ok(None),
        }
    }

    fn of_rsa(pair: RsaKeyPair) -> Option<Self> {
        let public = PublicKey::of_pkcs1(pair.public_key().as_ref())?;
        Some(Self { pair: Pair::Rsa(Box::new(pair)), public })
    }

    /// A key on a curve, in PKCS#8 or in SEC 1.
    fn of_ec(bytes: &[u8]) -> Option<Self> {
        type OfPoint = fn(Vec<u8>) -> Key;
        let curves: [(OfPoint, _); 3] = [
            (Key::P256, &ECDSA_P256_SHA256_FIXED_SIGNING),
            (Key::P384, &ECDSA_P384_SHA384_FIXED_SIGNING),
            (Key::P521, &ECDSA_P521_SHA512_FIXED_SIGNING),
        ];
        curves.into_iter().find_map(|(of_point, algorithm)| {
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, bytes).ok()?;
            let public = PublicKey::new(of_point(pair.public_key().as_ref().to_vec()));
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
