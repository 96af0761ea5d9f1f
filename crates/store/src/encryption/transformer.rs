//! The providers of a resource: which of them opens a value, and how values are sealed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::ciphers::Cipher;
use super::configuration::{ANY, Configuration, Key, KeyKind, Provider};
use super::kms::Kms;
use crate::codec::sealed::{self, ENCRYPTED};
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::schema::names::GroupResource;

/// The version of the form in which values are sealed.
const VERSION: &str = "v1";

/// The transformers of a configuration.
pub struct Transformers {
    by_resource: HashMap<GroupResource, Arc<Transformer>>,
    pub services: Vec<Arc<Kms>>,
    /// The hash of the configuration.
    pub hash: String,
}

/// How values of a resource are sealed and opened.
pub struct Transformer {
    /// The first one seals.
    providers: Vec<Arc<Sealer>>,
}

enum Sealer {
    Identity,
    Keys(Keyring),
    Kms(Arc<Kms>),
}

/// Keys of one cipher, the first of which seals.
struct Keyring {
    kind: KeyKind,
    /// `k8s:enc:aescbc:v1:`
    prefix: String,
    keys: Vec<NamedCipher>,
}

struct NamedCipher {
    /// `NAME:`
    prefix: String,
    cipher: Cipher,
}

impl Transformers {
    pub fn new(configuration: Configuration, runtime: &Runtime) -> Self {
        let mut providers: HashMap<GroupResource, Vec<Arc<Sealer>>> = HashMap::new();
        let mut services = Vec::new();
        for entry in configuration.entries {
            let sealer = |provider| {
                let sealer = Sealer::new(provider, runtime);
                if let Sealer::Kms(kms) = &sealer {
                    services.push(kms.clone());
                }
                Arc::new(sealer)
            };
            let sealers: Vec<_> = entry.providers.into_iter().map(sealer).collect();
            for resource in entry.resources {
                providers.entry(resource).or_default().extend(sealers.iter().cloned());
            }
        }
        let transformer = |(resource, providers)| (resource, Arc::new(Transformer { providers }));
        let by_resource = providers.into_iter().map(transformer).collect();
        Self { by_resource, services, hash: configuration.hash }
    }

    /// The transformer of a resource: by its name, by its group, or by the wildcard for all.
    pub fn of(&self, resource: &GroupResource) -> Option<&Arc<Transformer>> {
        self.by_resource
            .get(resource)
            .or_else(|| self.by_resource.get(&GroupResource::new(&resource.group, ANY)))
            .or_else(|| self.by_resource.get(&GroupResource::new(ANY, ANY)))
    }
}

impl Transformer {
    /// Seals a value; `None` if it is stored as it is.
    pub fn seal(&self, plain: &[u8], row: &[u8], meter: &Meter<'_>) -> Result<Option<Bytes>, String> {
        let Some(first) = self.providers.first() else { return Ok(None) };
        let begun = Instant::now();
        let sealed = first.seal(plain, row);
        meter.count(first.prefix(), begun, sealed.is_ok());
        sealed
    }

    /// Opens a value; the error is upstream's text.
    pub async fn open(&self, value: &Bytes, row: &[u8], meter: &Meter<'_>) -> Result<Bytes, String> {
        let begun = Instant::now();
        let mut refusals: Vec<String> = Vec::new();
        for provider in &self.providers {
            let Some(rest) = value.strip_prefix(provider.prefix().as_bytes()) else { continue };
            let opened = match &**provider {
                Sealer::Identity if sealed::is_encrypted(value) => continue,
                Sealer::Identity => Ok(value.clone()),
                Sealer::Keys(keyring) => keyring.open(rest, row),
                Sealer::Kms(kms) => kms.open(value.slice_ref(rest), row).await,
            };
            meter.count(provider.label(), begun, opened.is_ok());
            // Several providers of one kind have the same prefix.
            match opened {
                Ok(opened) => return Ok(opened),
                Err(why) => refusals.push(why),
            }
        }
        if refusals.is_empty() {
            meter.count("unknown", begun, false);
            return Err("no matching prefix found".to_owned());
        }
        Err(joined(refusals))
    }

    /// The bytes that values written from now on begin with; `None` if they are stored as they are.
    pub fn prefix(&self) -> Option<Bytes> {
        match &**self.providers.first()? {
            Sealer::Identity => None,
            Sealer::Kms(kms) => Some(kms.sealed_prefix()),
            Sealer::Keys(Keyring { prefix, keys, .. }) => {
                Some([prefix.as_bytes(), keys.first()?.prefix.as_bytes()].concat().into())
            }
        }
    }

    /// Whether a stored value is as it would be written now: by the first provider and its first key.
    pub fn writes_like(&self, value: &[u8]) -> bool {
        match self.prefix() {
            Some(prefix) => value.starts_with(&prefix),
            None => !sealed::is_encrypted(value),
        }
    }
}

impl Sealer {
    fn new(provider: Provider, runtime: &Runtime) -> Self {
        match provider {
            Provider::Identity => Self::Identity,
            Provider::Keys { kind, keys } => Self::Keys(Keyring::new(kind, keys)),
            Provider::Kms(configuration) => Self::Kms(Arc::new(Kms::new(configuration, runtime.clone()))),
        }
    }

    fn prefix(&self) -> &str {
        match self {
            Self::Identity => "",
            Self::Keys(keyring) => &keyring.prefix,
            Self::Kms(kms) => kms.prefix(),
        }
    }

    /// The prefix as metrics have it.
    fn label(&self) -> &str {
        match self {
            Self::Identity => "identity",
            Self::Keys(_) | Self::Kms(_) => self.prefix(),
        }
    }

    fn seal(&self, plain: &[u8], row: &[u8]) -> Result<Option<Bytes>, String> {
        match self {
            Self::Identity => Ok(None),
            Self::Keys(keyring) => keyring.seal(plain, row).map(Some),
            Self::Kms(kms) => kms.seal(plain, row).map(Some),
        }
    }
}

impl Keyring {
    fn new(kind: KeyKind, keys: Vec<Key>) -> Self {
        let encrypted = String::from_utf8_lossy(ENCRYPTED);
        let prefix = format!("{encrypted}{}:{VERSION}:", kind.name());
        // The lengths of keys were checked when they were read.
        let named = |Key { name, secret }| {
            Some(NamedCipher { prefix: format!("{name}:"), cipher: Cipher::new(kind, &secret)? })
        };
        Self { kind, prefix, keys: keys.into_iter().filter_map(named).collect() }
    }

    fn seal(&self, plain: &[u8], row: &[u8]) -> Result<Bytes, String> {
        let key = self.keys.first().ok_or("there is no key")?;
        let (provider, name) = (self.prefix.as_bytes(), key.prefix.as_bytes());
        let mut sealed =
            BytesMut::with_capacity(provider.len() + name.len() + key.cipher.sealed_len(plain.len()));
        sealed.extend_from_slice(provider);
        sealed.extend_from_slice(name);
        key.cipher.seal(plain, row, &mut sealed).map_err(|error| error.to_string())?;
        Ok(sealed.freeze())
    }

    fn open(&self, named: &[u8], row: &[u8]) -> Result<Bytes, String> {
        let mut refusals: Vec<String> = Vec::new();
        for NamedCipher { prefix, cipher } in &self.keys {
            let Some(sealed) = named.strip_prefix(prefix.as_bytes()) else { continue };
            match cipher.open(sealed, row) {
                Ok(plain) => return Ok(plain.into()),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        match (refusals.is_empty(), self.kind) {
            (false, _) => Err(joined(refusals)),
            (true, KeyKind::Secretbox) => {
                Err("no matching key was found for the provided Secretbox transformer".to_owned())
            }
            (true, _) => Err("no matching key was found for the provided AES transformer".to_owned()),
        }
    }
}

/// Several errors as upstream prints them: each once.
fn joined(errors: Vec<String>) -> String {
    let mut told = HashSet::new();
    let distinct: Vec<&str> = errors.iter().map(String::as_str).filter(|one| told.insert(*one)).collect();
    match &*distinct {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Counts what is sealed or opened, of one resource.
pub struct Meter<'a> {
    metrics: &'a Metrics,
    resource: String,
    direction: &'static str,
}

impl<'a> Meter<'a> {
    pub fn new(metrics: &'a Metrics, resource: String, direction: &'static str) -> Self {
        Self { metrics, resource, direction }
    }

    fn count(&self, prefix: &str, begun: Instant, succeeded: bool) {
        self.metrics.transformed(&self.resource, self.direction, prefix, begun.elapsed(), succeeded);
    }
}
