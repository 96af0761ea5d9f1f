//! Providers whose keys a key management service has (KMS v2).
//!
//! The service wraps one seed per server and key id. Each value has a key of its own, derived from the seed, so a write
//! asks nobody. A read asks the service only for a seed that this server has not seen yet. The service is asked for its
//! status regularly: another key id means another seed, and without a good status for a while no value is sealed any more,
//! so that a key which was taken away is not used for ever.

mod client;
mod messages;
mod seeds;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use bytes::{BufMut as _, Bytes, BytesMut};
use jiff::Timestamp;
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use self::client::{CallError, Client};
use self::messages::{
    DecryptRequest, EncryptRequest, SourceType, StatusResponse, Wrapped, check_key_id, put_data_head,
};
use self::seeds::{Seeds, Unsealer};
use super::ciphers::{self, Seed};
use super::configuration::KmsConfiguration;
use crate::codec::sealed::ENCRYPTED;
use crate::runtime::Runtime;

/// Upstream's intervals between two questions for the status: while it is good, and while it is not.
const HEALTHY_INTERVAL: Duration = Duration::from_secs(60);
const UNHEALTHY_INTERVAL: Duration = Duration::from_secs(10);
/// For how long a seed seals after the last good status.
const SEALS_FOR: Duration = Duration::from_secs(3 * 60);
/// For how long a result serves those who ask for the service's health.
const HEALTHY_FOR: Duration = Duration::from_secs(20);
const UNHEALTHY_FOR: Duration = Duration::from_secs(3);

/// One service.
pub struct Kms {
    name: String,
    /// `k8s:enc:kms:v2:NAME:`
    prefix: String,
    client: Client,
    runtime: Runtime,
    /// `None` until the service has wrapped a seed.
    current: ArcSwapOption<Current>,
    seeds: Seeds,
    /// Serializes questions for the status.
    health: tokio::sync::Mutex<Health>,
    /// When the status is to be asked for next.
    due: Mutex<Instant>,
    /// Whether a value could not be opened since the service did not give its seed.
    is_missed: AtomicBool,
}

/// The seed that seals.
struct Current {
    wrapped: Wrapped,
    /// The bytes that values begin with after the prefix: the fields of `wrapped`.
    head: Vec<u8>,
    seed: Arc<Seed>,
    until: SystemTime,
}

/// The reason why a status is not good. Whoever has asked the service for it is told more than those whom the kept result serves
/// (`kmsv2PluginProbe.check` of `apiserver/pkg/server/options/encryptionconfig`).
struct Unwell {
    told: String,
    kept: String,
}

/// The last status.
struct Health {
    result: Result<(), String>,
    at: Option<Instant>,
    /// The version of the API that the service answered first.
    version: Option<String>,
}

impl Kms {
    pub fn new(configuration: KmsConfiguration, runtime: Runtime) -> Self {
        let KmsConfiguration { name, endpoint, timeout } = configuration;
        let encrypted = String::from_utf8_lossy(ENCRYPTED);
        Self {
            prefix: format!("{encrypted}kms:v2:{name}:"),
            client: Client::new(&endpoint, timeout),
            seeds: Seeds::default(),
            name,
            runtime,
            current: ArcSwapOption::empty(),
            health: tokio::sync::Mutex::new(Health { result: Ok(()), at: None, version: None }),
            due: Mutex::new(Instant::now()),
            is_missed: AtomicBool::new(false),
        }
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn timeout(&self) -> Duration {
        self.client.timeout()
    }

    /// The bytes that values written from now on begin with, the id of the key among them if it is known.
    pub fn sealed_prefix(&self) -> Bytes {
        let field = self.current.load().as_ref().map(|current| current.wrapped.key_id_field());
        [self.prefix.as_bytes(), &field.unwrap_or_default()].concat().into()
    }

    pub fn seal(&self, plain: &[u8], row: &[u8]) -> Result<Bytes, String> {
        let current = self.current.load();
        let current = current.as_ref().ok_or("got unexpected nil transformer")?;
        let now = self.runtime.clock.now();
        if now > current.until {
            return Err(format!(
                "encryptedDEKSource with keyID hash {} expired at {} (current time is {})",
                crate::gotext::quote(&hash_of(&current.wrapped.key_id)),
                time_text(current.until),
                time_text(now)
            ));
        }
        let length = Seed::sealed_len(plain.len());
        let mut data_head = Vec::new();
        put_data_head(&mut data_head, length);
        let before = [self.prefix.as_bytes(), &current.head, &data_head];
        let mut sealed =
            BytesMut::with_capacity(before.iter().map(|part| part.len()).sum::<usize>() + length);
        before.iter().for_each(|part| sealed.put_slice(part));
        current.seed.seal(plain, row, &mut sealed).map_err(|error| error.to_string())?;
        self.runtime.metrics.kms_key_used("to_storage", &self.name, &hash_of(&current.wrapped.key_id));
        Ok(sealed.freeze())
    }

    pub async fn open(&self, message: Bytes, row: &[u8]) -> Result<Bytes, String> {
        let (wrapped, data) = Wrapped::read(message)?;
        let unsealer = self.unsealer(&wrapped).await?;
        self.runtime.metrics.kms_key_used("from_storage", &self.name, &hash_of(&wrapped.key_id));
        unsealer.open(&data, row).map(Bytes::from).map_err(|error| error.to_string())
    }

    /// The unsealer of values of this seed; asks the service if the seed is not known, at most one caller at a time.
    async fn unsealer(&self, wrapped: &Wrapped) -> Result<Arc<Unsealer>, String> {
        if let Some(known) = self.seeds.get(wrapped, Instant::now()) {
            return known;
        }
        let _turn = self.seeds.turn().await;
        if let Some(known) = self.seeds.get(wrapped, Instant::now()) {
            return known;
        }
        self.runtime.metrics.seed_missed();
        let uid = self.runtime.random.uuid().to_string();
        let Wrapped { key_id, source, annotations, .. } = wrapped.clone();
        let request = DecryptRequest { ciphertext: source, uid, key_id, annotations };
        let (answer, took) = self.client.decrypt(request).await;
        self.called("Decrypt", &answer, took);
        let found = match answer {
            Ok(answer) => Unsealer::new(wrapped.source_type(), &answer.plaintext).map(Arc::new),
            Err(error) => {
                self.miss(&error);
                Err(format!("failed to decrypt DEK, error: {error}"))
            }
        };
        self.seeds.put(wrapped, found.clone(), Instant::now());
        self.runtime.metrics.seeds_kept(&self.name, self.seeds.len());
        found
    }

    /// A seed is missing: values are read again once the service is well.
    fn miss(&self, error: &CallError) {
        self.is_missed.store(true, Ordering::Relaxed);
        if error.is_absence() {
            self.seeds.refuse_for(UNHEALTHY_INTERVAL, format!("failed to decrypt DEK, error: {error}"));
            let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            *due = (*due).min(Instant::now() + UNHEALTHY_INTERVAL);
        }
    }

    /// When [`Kms::probe`] is to be called next.
    pub fn due(&self) -> Instant {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the status, and takes another seed if there is another key. Returns whether values that could not be
    /// opened may be readable now.
    pub async fn probe(&self) -> bool {
        let mut health = self.health.lock().await;
        let result = self.ask(&mut health).await;
        self.set_health(&mut health, result);
        health.result.is_ok() && self.is_missed.swap(false, Ordering::Relaxed) && {
            self.seeds.forget_refused();
            true
        }
    }

    /// The result for health endpoints: that of the last status, unless it is too old.
    pub async fn check(&self) -> Result<(), String> {
        let mut health = self.health.lock().await;
        let fresh = if health.result.is_ok() { HEALTHY_FOR } else { UNHEALTHY_FOR };
        if health.at.is_some_and(|at| at.elapsed() < fresh) {
            return health.result.clone();
        }
        let result = self.ask(&mut health).await;
        let told = result.as_ref().map_err(|unwell| unwell.told.clone()).copied();
        self.set_health(&mut health, result);
        told
    }

    fn set_health(&self, health: &mut Health, result: Result<(), Unwell>) {
        if let Err(Unwell { told: error, .. }) = &result {
            tracing::error!(%error, name = self.name, "kms plugin failed health check probe");
        }
        let next = if result.is_ok() { HEALTHY_INTERVAL } else { UNHEALTHY_INTERVAL };
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + next;
        health.result = result.map_err(|unwell| unwell.kept);
        health.at = Some(Instant::now());
    }

    async fn ask(&self, health: &mut Health) -> Result<(), Unwell> {
        // The seed may seal for a while from now on, not from the answer on.
        let asked = self.runtime.clock.now();
        let (answer, took) = self.client.status().await;
        self.called("Status", &answer, took);
        let name = &self.name;
        let status = answer.map_err(|error| Unwell {
            told: format!(
                "failed to perform status section of the healthz check for KMS Provider {name}, error: {error}"
            ),
            kept: error.to_string(),
        })?;
        let mut problems: Vec<String> = wrong_status(&status, health).collect();
        match check_key_id(&status.key_id) {
            Err(wrong) => {
                self.runtime.metrics.wrong_key_id(name, wrong.label());
                let hash = crate::gotext::quote(&hash_of(&status.key_id));
                problems.push(format!("got invalid KMSv2 KeyID hash {hash}: {}", wrong.text(&status.key_id)));
            }
            Ok(()) => {
                self.runtime.metrics.kms_key_told(name, &hash_of(&status.key_id));
                problems.extend(self.use_key(&status.key_id, asked).await.err());
            }
        }
        let why = match &*problems {
            [] => return Ok(()),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let why = format!("kmsv2 Provider {name} is not healthy, error: {why}");
        Err(Unwell { told: why.clone(), kept: why })
    }

    /// Goes on with the present seed, or takes one that the service wraps with this key.
    async fn use_key(&self, key_id: &str, asked: SystemTime) -> Result<(), String> {
        let until = asked + SEALS_FOR;
        let current = self.current.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.wrapped.key_id == key_id) {
            let Current { wrapped, head, seed, .. } = &**current;
            let longer = Current { wrapped: wrapped.clone(), head: head.clone(), seed: seed.clone(), until };
            self.current.store(Some(Arc::new(longer)));
            return Ok(());
        }
        let uid = self.runtime.random.uuid().to_string();
        let failed = |why: &str, encrypt_key: &str| {
            let quoted = |id: &str| crate::gotext::quote(&hash_of(id));
            let state = current.as_ref();
            format!(
                "failed to rotate DEK uid=\"{uid}\", useSeed=true, errState={}, errGen={why}, statusKeyIDHash={}, \
                 encryptKeyIDHash={}, stateKeyIDHash={}, expirationTimestamp={}",
                if state.is_some() { "<nil>" } else { "got unexpected nil transformer" },
                quoted(key_id),
                quoted(encrypt_key),
                quoted(state.map_or("", |state| &state.wrapped.key_id)),
                state.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |state| time_text(state.until)),
            )
        };
        let begun = Instant::now();
        let secret = ciphers::random::<{ Seed::LENGTH }>().map_err(|error| failed(&error.to_string(), ""))?;
        self.runtime.metrics.seed_made(begun.elapsed());
        let (answer, took) =
            self.client.encrypt(EncryptRequest { plaintext: secret.to_vec(), uid: uid.clone() }).await;
        self.called("Encrypt", &answer, took);
        let answer = answer.map_err(|error| failed(&format!("failed to encrypt DEK, error: {error}"), ""))?;
        let wrapped = Wrapped {
            key_id: answer.key_id,
            source: answer.ciphertext,
            annotations: answer.annotations,
            source_type: SourceType::Seed.into(),
        };
        wrapped.check().map_err(|why| failed(&why, ""))?;
        if wrapped.key_id != key_id {
            return Err(failed("<nil>", &wrapped.key_id));
        }
        let seed = Arc::new(Seed::new(&secret).map_err(|error| failed(&error.to_string(), key_id))?);
        // What this server writes it need not ask for.
        self.seeds.put(&wrapped, Ok(Arc::new(Unsealer::Seed(seed.clone()))), Instant::now());
        tracing::info!(name = self.name, key = hash_of(key_id), "values are encrypted with another key");
        let head = wrapped.encode_to_vec();
        self.current.store(Some(Arc::new(Current { wrapped, head, seed, until })));
        Ok(())
    }

    fn called<T>(&self, method: &str, answer: &Result<T, CallError>, took: Duration) {
        let code = answer.as_ref().err().map_or_else(|| "OK".to_owned(), CallError::code_name);
        let method = format!("/v2.KeyManagementService/{method}");
        self.runtime.metrics.kms_called(&self.name, &method, &code, took);
    }
}

/// Errors of a status besides those of its key.
fn wrong_status(status: &StatusResponse, health: &mut Health) -> impl Iterator<Item = String> + use<> {
    let StatusResponse { version, healthz, .. } = status;
    let unwell = (healthz != "ok").then(|| format!("got unexpected healthz status: {healthz}"));
    let unknown = !matches!(version.as_str(), "v2" | "v2beta1");
    let wrong = if unknown {
        Some(format!("expected KMSv2 API version v2, got {version}"))
    } else {
        let first = health.version.get_or_insert_with(|| version.clone());
        (first != version).then(|| {
            format!("KMSv2 API version should not change after the initial status response version {first}, got {version}")
        })
    };
    unwell.into_iter().chain(wrong)
}

/// The form in which ids of keys are shown.
fn hash_of(id: &str) -> String {
    if id.is_empty() {
        return String::new();
    }
    Sha256::digest(id).iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn time_text(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The seed of an `EncryptedObject`, unwrapped, and the data.
#[cfg(test)]
pub fn opened_with(message: &[u8], unwrap: impl Fn(&[u8]) -> Vec<u8>) -> (Seed, Bytes) {
    let (wrapped, data) = Wrapped::read(Bytes::copy_from_slice(message)).expect("an object");
    assert_eq!((wrapped.key_id.as_str(), wrapped.source_type()), ("key-1", SourceType::Seed));
    assert_eq!(wrapped.annotations["turned.example.com"], b"yes");
    (Seed::new(&unwrap(&wrapped.source)).expect("a seed"), data)
}
