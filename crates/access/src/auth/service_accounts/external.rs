//! An external signer: a service beside the server that has the keys of tokens, so that no server has them
//! (`k8s.io/externaljwt`, v1). Tokens are verified here, with the public keys that the service names.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use prost::Message;
use serde::Deserialize;

use crate::auth::jwt::keys::PublicKey;
use crate::auth::jwt::{decode, encode};
use crate::grpc::{CallError, Client};
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
    fn code(&self) -> String {
        match self {
            Self::Call { source, .. } => source.code_name(),
            Self::Answer(_) => "unknown-non-grpc".to_owned(),
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
        let code = signed.as_ref().err().map_or_else(|| "OK".to_owned(), SignerError::code);
        self.runtime.metrics.externally_signed(&code);
        signed
    }

    async fn try_sign(&self, claims: &Value) -> Result<String, SignerError> {
        let payload = encode(claims.to_string().as_bytes());
        let request = SignJwtRequest { claims: payload.clone() };
        let answer: SignJwtResponse = self.call("Sign", request, CALL_TIME, "while signing jwt").await?;
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
        let answer: MetadataResponse = self.call("Metadata", (), METADATA_TIME, what).await?;
        let life = answer.max_token_expiration_seconds;
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
        let fetched = match self.call("FetchKeys", (), CALL_TIME, what).await {
            Ok(fetched) => self
                .keys_of(fetched)
                .map_err(|why| SignerError::Answer(format!("while fetching token verification keys: {why}"))),
            Err(error) => Err(error),
        };
        let code = fetched.as_ref().err().map_or_else(|| "OK".to_owned(), SignerError::code);
        self.runtime.metrics.external_keys_fetched(&code);
        let (keys, made) = fetched?;
        self.runtime.metrics.external_keys_made(made.as_nanosecond() as f64 / 1e9);
        self.keys.store(keys.into());
        Ok(())
    }

    /// The keys of an answer, and when the service has made it.
    fn keys_of(&self, fetched: FetchKeysResponse) -> Result<(KeySet, Timestamp), String> {
        let FetchKeysResponse { keys, data_timestamp, refresh_hint_seconds } = fetched;
        if refresh_hint_seconds <= 0 {
            return Err(format!("found invalid refresh hint ({refresh_hint_seconds}s)"));
        }
        if keys.is_empty() {
            return Err("found no keys".to_owned());
        }
        let made = data_timestamp.ok_or("invalid data timestamp: proto: invalid nil Timestamp")?;
        let made = Timestamp::new(made.seconds, made.nanos)
            .map_err(|error| format!("invalid data timestamp: {error}"))?;
        let keys = keys.into_iter().map(Key::read).collect::<Result<_, _>>()?;
        let wait = SignedDuration::from_secs(refresh_hint_seconds);
        let refresh_at = self.runtime.clock.timestamp().checked_add(wait).unwrap_or(Timestamp::MAX);
        Ok((KeySet { keys, refresh_at }, made))
    }

    async fn call<Q, A>(
        &self,
        method: &str,
        request: Q,
        timeout: Duration,
        what: &'static str,
    ) -> Result<A, SignerError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (answer, took) = self.client.call(method, request, timeout).await;
        let code = answer.as_ref().err().map_or_else(|| "OK".to_owned(), CallError::code_name);
        self.runtime.metrics.external_signer_called(&format!("/{SERVICE}/{method}"), &code, took);
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

#[derive(Clone, PartialEq, Message)]
struct SignJwtRequest {
    #[prost(string, tag = "1")]
    claims: String,
}

#[derive(Clone, PartialEq, Message)]
struct SignJwtResponse {
    #[prost(string, tag = "1")]
    header: String,
    #[prost(string, tag = "2")]
    signature: String,
}

#[derive(Clone, PartialEq, Message)]
struct FetchKeysResponse {
    #[prost(message, repeated, tag = "1")]
    keys: Vec<FetchedKey>,
    /// When the service has made the keys.
    #[prost(message, optional, tag = "2")]
    data_timestamp: Option<DataTimestamp>,
    #[prost(int64, tag = "3")]
    refresh_hint_seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FetchedKey {
    #[prost(string, tag = "1")]
    key_id: String,
    /// In PKIX form.
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bool, tag = "3")]
    exclude_from_oidc_discovery: bool,
}

/// A `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Message)]
struct DataTimestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataResponse {
    #[prost(int64, tag = "1")]
    max_token_expiration_seconds: i64,
}

impl Key {
    fn read(fetched: FetchedKey) -> Result<Self, String> {
        let FetchedKey { key_id: id, key: der, exclude_from_oidc_discovery: is_hidden } = fetched;
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
