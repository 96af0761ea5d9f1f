//! An external signer: a service beside the server that has the keys of tokens, so that no server has them
//! (`k8s.io/externaljwt`, v1). Tokens are verified here, with the public keys that the service names.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::auth::jwt::keys::PublicKey;
use crate::auth::jwt::{decode, encode};
use crate::grpc::{CallError, Client, decoded};
use crate::protowire::write::Writer;
use crate::protowire::{self, Field, each_field, text};
use crate::runtime::Runtime;
use crate::tree::Value;

const SERVICE: &str = "v1.ExternalJWTSigner";
/// How long a call for keys, or for a signature, may take.
const CALL_TIME: Duration = Duration::from_secs(60);
/// The same for the question what the service can do.
const METADATA_TIME: Duration = Duration::from_secs(10);
/// The pause after a failed call for keys.
const RETRY: Duration = Duration::from_secs(10);
/// In bytes.
const LONGEST_KEY_ID: usize = 1024;
/// The service has to sign tokens of this life, in seconds.
const SHORTEST_LIFE: i64 = 600;

/// Why the service cannot be used, in upstream's words.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SignerError {
    #[error("{what}: {source}")]
    Call { what: &'static str, source: CallError },
    #[error("{0}")]
    Answer(String),
}

impl SignerError {
    /// The label of metrics.
    fn code(&self) -> &'static str {
        match self {
            Self::Call { source, .. } => source.code.name(),
            Self::Answer(_) => "unknown-non-grpc",
        }
    }
}

/// The service, and the keys that it has named last.
#[derive(Debug)]
pub struct Signer {
    client: Client,
    keys: ArcSwap<KeySet>,
    /// The result of the last call for keys, which is made once for all who wait for it.
    last: tokio::sync::Mutex<Result<(), SignerError>>,
    /// How many of these calls have ended.
    calls: AtomicU64,
    runtime: Runtime,
}

#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<Key>,
    /// When the service wants to be asked again.
    refresh_at: Timestamp,
}

#[derive(Debug)]
struct Key {
    public: PublicKey,
    /// Whether the key verifies old tokens alone, and no document shows it.
    is_hidden: bool,
}

impl Signer {
    /// Asks the service at an address for its keys, and for the longest life of its tokens in seconds.
    pub async fn start(address: &str, runtime: Runtime) -> Result<(Self, i64), SignerError> {
        let signer = Self {
            client: Client::new(address, SERVICE),
            keys: ArcSwap::default(),
            last: tokio::sync::Mutex::new(Ok(())),
            calls: AtomicU64::new(0),
            runtime,
        };
        signer.refresh().await.map_err(|error| {
            let before = "while initially filling key cache: while performing initial cache fill";
            SignerError::Answer(format!("{before}: {error}"))
        })?;
        let longest = signer.longest_life().await?;
        Ok((signer, longest))
    }

    /// Asks for the keys whenever the service wants that.
    pub async fn follow(&self) {
        loop {
            let wait = self.seconds_left().max(1).unsigned_abs();
            tokio::time::sleep(Duration::from_secs(wait)).await;
            while let Err(error) = self.refresh().await {
                tracing::error!(%error, "the keys of tokens cannot be read again; those before stay in force");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// For how many seconds the keys are known; 0 if they should have been asked for by now.
    pub fn seconds_left(&self) -> i64 {
        let left: SignedDuration = self.keys.load().refresh_at.duration_since(self.runtime.clock.timestamp());
        left.as_secs().max(0)
    }

    /// Asks for the keys, or waits for the answer if somebody has asked already.
    pub async fn refresh(&self) -> Result<(), SignerError> {
        let calls = self.calls.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if self.calls.load(Ordering::Acquire) == calls {
            *last = self.fetch().await;
            self.calls.fetch_add(1, Ordering::Release);
        }
        last.clone()
    }

    /// The keys with this id; all if the id is empty.
    pub(super) fn find(&self, id: &str) -> Vec<PublicKey> {
        let keys = self.keys.load();
        let found = keys.keys.iter().filter(|key| id.is_empty() || key.public.id == id);
        found.map(|key| key.public.clone()).collect()
    }

    pub(super) fn is_known(&self, id: &str) -> bool {
        self.keys.load().keys.iter().any(|key| key.public.id == id)
    }

    /// The keys that documents show.
    pub(super) fn shown(&self) -> Vec<PublicKey> {
        let keys = self.keys.load();
        keys.keys.iter().filter(|key| !key.is_hidden).map(|key| key.public.clone()).collect()
    }

    /// A compact token with these claims.
    pub async fn sign(&self, claims: &Value) -> Result<String, SignerError> {
        let signed = self.try_sign(claims).await;
        let code = signed.as_ref().err().map_or("OK", SignerError::code);
        self.runtime.metrics.externally_signed(code);
        signed
    }

    async fn try_sign(&self, claims: &Value) -> Result<String, SignerError> {
        let payload = encode(claims.to_string().as_bytes());
        let mut request = Writer::with_capacity(payload.len() + 8);
        request.bytes(1, payload.as_bytes());
        let what = "while signing jwt";
        let answer = self.call("Sign", request.finish(), CALL_TIME, what, Signed::decode).await?;
        self.check_header(&answer.header)
            .await
            .map_err(|why| SignerError::Answer(format!("while validating header: {why}")))?;
        if answer.signature.is_empty() {
            return Err(SignerError::Answer("empty signature returned".to_owned()));
        }
        Ok([&*answer.header, &payload, &answer.signature].join("."))
    }

    /// Whether those who verify a token with this header will know its key.
    async fn check_header(&self, header: &str) -> Result<(), String> {
        let Some(json) = decode(header) else {
            return Err("while unwrapping header: illegal base64 data".to_owned());
        };
        let header: Header =
            serde_json::from_slice(&json).map_err(|error| format!("while parsing header JSON: {error}"))?;
        if header.typ != "JWT" {
            return Err("bad type".to_owned());
        }
        match header.kid.len() {
            0 => return Err("key id missing".to_owned()),
            1..=LONGEST_KEY_ID => {}
            _ => return Err("key id longer than 1 kb".to_owned()),
        }
        if !["RS256", "ES256", "ES384", "ES512"].contains(&&*header.alg) {
            return Err(format!("bad signing algorithm {:?}", header.alg));
        }
        if !self.is_known(&header.kid) {
            let _ = self.refresh().await;
        }
        let keys = self.keys.load();
        let is_hidden = keys.keys.iter().any(|key| key.is_hidden && key.public.id == header.kid);
        match is_hidden {
            true => {
                let id = header.kid;
                Err(format!("key used for signing JWT (kid: {id}) is excluded from OIDC discovery docs"))
            }
            false => Ok(()),
        }
    }

    async fn longest_life(&self) -> Result<i64, SignerError> {
        let what = "while setting up external-jwt-signer";
        let life = self.call("Metadata", Vec::new(), METADATA_TIME, what, longest_life).await?;
        if life < SHORTEST_LIFE {
            return Err(SignerError::Answer(format!(
                "max token life supported by external-jwt-signer ({life}s) is less than acceptable (min {SHORTEST_LIFE}s)"
            )));
        }
        Ok(life)
    }

    async fn fetch(&self) -> Result<(), SignerError> {
        let what =
            "while fetching token verification keys: while getting externally supported jwt signing keys";
        let fetched = match self.call("FetchKeys", Vec::new(), CALL_TIME, what, Fetched::decode).await {
            Ok(fetched) => self
                .keys_of(fetched)
                .map_err(|why| SignerError::Answer(format!("while fetching token verification keys: {why}"))),
            Err(error) => Err(error),
        };
        let code = fetched.as_ref().err().map_or("OK", SignerError::code);
        self.runtime.metrics.external_keys_fetched(code);
        let (keys, made) = fetched?;
        self.runtime.metrics.external_keys_made(made.as_nanosecond() as f64 / 1e9);
        self.keys.store(keys.into());
        Ok(())
    }

    /// The keys of an answer, and when the service has made it.
    fn keys_of(&self, fetched: Fetched) -> Result<(KeySet, Timestamp), String> {
        let Fetched { keys, made, refresh_seconds } = fetched;
        if refresh_seconds <= 0 {
            return Err(format!("found invalid refresh hint ({refresh_seconds}s)"));
        }
        if keys.is_empty() {
            return Err("found no keys".to_owned());
        }
        let (seconds, nanos) = made.ok_or("invalid data timestamp: proto: invalid nil Timestamp")?;
        let made =
            Timestamp::new(seconds, nanos).map_err(|error| format!("invalid data timestamp: {error}"))?;
        let keys = keys.into_iter().map(Key::read).collect::<Result<_, _>>()?;
        let wait = SignedDuration::from_secs(refresh_seconds);
        let refresh_at = self.runtime.clock.timestamp().checked_add(wait).unwrap_or(Timestamp::MAX);
        Ok((KeySet { keys, refresh_at }, made))
    }

    async fn call<T>(
        &self,
        method: &str,
        request: Vec<u8>,
        timeout: Duration,
        what: &'static str,
        read: fn(&[u8]) -> Result<T, protowire::Error>,
    ) -> Result<T, SignerError> {
        let (answer, took) = self.client.call(method, request, timeout).await;
        let answer = answer.and_then(|message| decoded(read(&message)));
        let code = answer.as_ref().err().map_or("OK", |error| error.code.name());
        self.runtime.metrics.external_signer_called(&format!("/{SERVICE}/{method}"), code, took);
        answer.map_err(|source| SignerError::Call { what, source })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    #[serde(default)]
    alg: String,
    #[serde(default)]
    kid: String,
    #[serde(default)]
    typ: String,
}

/// A `SignJWTResponse`.
#[derive(Default)]
struct Signed {
    header: String,
    signature: String,
}

impl Signed {
    fn decode(message: &[u8]) -> Result<Self, protowire::Error> {
        let mut signed = Self::default();
        each_field(message, |field, value| {
            match (field, value) {
                (1, Field::Bytes(bytes)) => signed.header = text(bytes),
                (2, Field::Bytes(bytes)) => signed.signature = text(bytes),
                _ => {}
            }
            Ok(())
        })?;
        Ok(signed)
    }
}

/// A `FetchKeysResponse`.
#[derive(Default)]
struct Fetched {
    keys: Vec<FetchedKey>,
    /// Seconds and nanoseconds.
    made: Option<(i64, i32)>,
    refresh_seconds: i64,
}

#[derive(Default)]
struct FetchedKey {
    id: String,
    /// In PKIX form.
    der: Vec<u8>,
    is_hidden: bool,
}

impl Fetched {
    fn decode(message: &[u8]) -> Result<Self, protowire::Error> {
        let mut fetched = Self::default();
        each_field(message, |field, value| {
            match (field, value) {
                (1, Field::Bytes(bytes)) => fetched.keys.push(FetchedKey::decode(bytes)?),
                (2, Field::Bytes(bytes)) => fetched.made = Some(timestamp(bytes)?),
                (3, Field::Number(seconds)) => fetched.refresh_seconds = seconds as i64,
                _ => {}
            }
            Ok(())
        })?;
        Ok(fetched)
    }
}

impl FetchedKey {
    fn decode(message: &[u8]) -> Result<Self, protowire::Error> {
        let mut key = Self::default();
        each_field(message, |field, value| {
            match (field, value) {
                (1, Field::Bytes(bytes)) => key.id = text(bytes),
                (2, Field::Bytes(bytes)) => key.der = bytes.to_vec(),
                (3, Field::Number(number)) => key.is_hidden = number != 0,
                _ => {}
            }
            Ok(())
        })?;
        Ok(key)
    }
}

impl Key {
    fn read(fetched: FetchedKey) -> Result<Self, String> {
        let FetchedKey { id, der, is_hidden } = fetched;
        if !(1..=LONGEST_KEY_ID).contains(&id.len()) {
            return Err(format!("found invalid public key id {}", crate::gotext::quote(&id)));
        }
        if der.is_empty() {
            return Err("found empty public key".to_owned());
        }
        let public = PublicKey::of_pkix(&der);
        let mut public =
            public.ok_or("while parsing external public keys: it is no key that tokens are signed with")?;
        public.id = id;
        Ok(Self { public, is_hidden })
    }
}

/// A `google.protobuf.Timestamp`.
fn timestamp(message: &[u8]) -> Result<(i64, i32), protowire::Error> {
    let (mut seconds, mut nanos) = (0, 0);
    each_field(message, |field, value| {
        match (field, value) {
            (1, Field::Number(number)) => seconds = number as i64,
            (2, Field::Number(number)) => nanos = number as i32,
            _ => {}
        }
        Ok(())
    })?;
    Ok((seconds, nanos))
}

/// The longest life of a token in seconds, read from a `MetadataResponse`.
fn longest_life(message: &[u8]) -> Result<i64, protowire::Error> {
    let mut life = 0;
    each_field(message, |field, value| {
        if let (1, Field::Number(seconds)) = (field, value) {
            life = seconds as i64;
        }
        Ok(())
    })?;
    Ok(life)
}
