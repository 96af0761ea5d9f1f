//! JSON Web Tokens: the three parts of a compact token, and whether a key has signed it. What the claims mean is decided by
//! those who know the issuer.

pub mod keys;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use self::keys::{Algorithm, PublicKey};

/// A token whose signature nobody has checked yet.
pub struct Compact<'a> {
    /// The header and the claims as they were signed.
    signed: &'a str,
    pub header: Header,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Header {
    /// The name of the algorithm, such as `ES256`.
    pub alg: String,
    #[serde(default)]
    pub kid: String,
}

/// The text of upstream's library for a signature that does not fit.
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

impl<'a> Compact<'a> {
    /// `None` if the text is no signed token.
    pub fn parse(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let header = serde_json::from_slice(&decode(header)?).ok()?;
        Some(Self { signed, header, payload: decode(payload)?, signature: decode(signature)? })
    }

    /// The claims, which may be forged until [`Compact::verify`] says otherwise.
    pub fn claims<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.payload).ok()
    }

    /// Whether one of the keys has signed the token.
    pub fn verify<'k>(&self, keys: impl Iterator<Item = &'k PublicKey>) -> Result<(), &'static str> {
        let algorithm = Algorithm::of_name(&self.header.alg).ok_or(BAD_SIGNATURE)?;
        let mut keys = keys;
        let has_signed = |key: &PublicKey| key.verify(algorithm, self.signed.as_bytes(), &self.signature);
        if keys.any(has_signed) { Ok(()) } else { Err(BAD_SIGNATURE) }
    }
}

/// The bytes of a part of a token.
pub fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

/// A part of a token.
pub fn encode(part: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(part)
}

/// The issuer that a token names, before anything is known of its signature.
pub fn claimed_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        #[serde(default)]
        iss: String,
    }
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice::<Issuer>(&decode(payload)?).ok().map(|claims| claims.iss)
}

/// `aud`: one text or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience(pub Vec<String>);

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Several(Vec<String>),
            None(()),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(one) => vec![one],
            Form::Several(several) => several,
            Form::None(()) => Vec::new(),
        }))
    }
}

/// Seconds since the epoch; a fraction of a second does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(pub i64);

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Every value becomes one of the nearest 64-bit numbers.
        Ok(Self(seconds as i64))
    }
}
