//! The file as its types have it, before its rules.

use std::time::Duration;

use crate::config_file::{self, Reader};
use crate::gotext;
use crate::tree::{Map, Value};

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
/// The names of upstream's types, as errors have them.
const ENTRY: &str = "ResourceConfiguration";
const PROVIDER: &str = "ProviderConfiguration";
const AES: &str = "v1.AESConfiguration";
const KMS: &str = "KMSConfiguration";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct RawEntry {
    pub resources: Vec<String>,
    pub providers: Vec<RawProvider>,
}

/// An element of the list of providers; good if exactly one of its members is there.
#[derive(Default)]
pub struct RawProvider {
    pub aes_gcm: Option<Vec<RawKey>>,
    pub aes_cbc: Option<Vec<RawKey>>,
    pub secretbox: Option<Vec<RawKey>>,
    pub identity: bool,
    pub kms: Option<RawKms>,
}

pub struct RawKey {
    pub name: String,
    /// In base64.
    pub secret: String,
}

pub struct RawKms {
    /// The version, or its default, as with the timeout.
    pub api_version: String,
    pub name: String,
    pub cache_size: Option<i64>,
    pub endpoint: String,
    /// The text of the timeout, and its meaning; `None` if that is negative or no duration.
    pub timeout: (String, Option<Duration>),
}

/// Reads a document; fails as upstream's strict decoder does.
pub fn document(text: &[u8]) -> Result<Vec<RawEntry>, String> {
    config_file::read(text, &[(API_VERSION, KIND)], |reader, root| {
        reader.known(root, "", &["apiVersion", "kind", "resources"]);
        reader.list(root, "resources", "resources", (KIND, "[]v1.ResourceConfiguration"), Reader::entry)
    })
}

impl Reader {
    fn entry(&mut self, value: &Value, at: &str) -> RawEntry {
        let Some(entry) = self.object(value, at, (KIND, "v1.ResourceConfiguration")) else {
            return RawEntry::default();
        };
        self.known(entry, at, &["resources", "providers"]);
        RawEntry {
            resources: self.list(
                entry,
                "resources",
                &format!("{at}.resources"),
                (ENTRY, "[]string"),
                |this, value, at| this.text(Some(value), at, ENTRY),
            ),
            providers: self.list(
                entry,
                "providers",
                &format!("{at}.providers"),
                (ENTRY, "[]v1.ProviderConfiguration"),
                Self::provider,
            ),
        }
    }

    fn provider(&mut self, value: &Value, at: &str) -> RawProvider {
        let Some(provider) = self.object(value, at, (ENTRY, "v1.ProviderConfiguration")) else {
            return RawProvider::default();
        };
        self.known(provider, at, &["aesgcm", "aescbc", "secretbox", "identity", "kms"]);
        let mut member = |name: &str, wanted: &str| {
            let at = format!("{at}.{name}");
            let found = provider.get(name).and_then(|value| self.object(value, &at, (PROVIDER, wanted)));
            found.map(|found| (found, at))
        };
        let (gcm, cbc) = (member("aesgcm", AES), member("aescbc", AES));
        let secretbox = member("secretbox", "v1.SecretboxConfiguration");
        let identity = member("identity", "v1.IdentityConfiguration");
        let kms = member("kms", "v1.KMSConfiguration");
        if let Some((identity, at)) = &identity {
            self.known(identity, at, &[]);
        }
        let mut keys = |found: Option<(&Map, String)>| found.map(|(found, at)| self.keys(found, &at));
        RawProvider {
            aes_gcm: keys(gcm),
            aes_cbc: keys(cbc),
            secretbox: keys(secretbox),
            identity: identity.is_some(),
            kms: kms.map(|(kms, at)| self.kms(kms, &at)),
        }
    }

    fn keys(&mut self, cipher: &Map, at: &str) -> Vec<RawKey> {
        self.known(cipher, at, &["keys"]);
        let owner = if at.ends_with("secretbox") { "SecretboxConfiguration" } else { "AESConfiguration" };
        self.list(cipher, "keys", &format!("{at}.keys"), (owner, "[]v1.Key"), |this, value, at| {
            let empty = Map::new();
            let key = this.object(value, at, (owner, "v1.Key")).unwrap_or(&empty);
            this.known(key, at, &["name", "secret"]);
            RawKey {
                name: this.text(key.get("name"), &format!("{at}.name"), "Key"),
                secret: this.text(key.get("secret"), &format!("{at}.secret"), "Key"),
            }
        })
    }

    fn kms(&mut self, kms: &Map, at: &str) -> RawKms {
        self.known(kms, at, &["apiVersion", "name", "cachesize", "endpoint", "timeout"]);
        let mut text = |field: &str| self.text(kms.get(field), &format!("{at}.{field}"), KMS);
        let (api_version, name, endpoint) = (text("apiVersion"), text("name"), text("endpoint"));
        let timeout = match kms.get("timeout") {
            None | Some(Value::Null) => ("3s".to_owned(), Some(DEFAULT_TIMEOUT)),
            Some(_) => {
                let text = text("timeout");
                let meant = self.duration(&text);
                (text, meant)
            }
        };
        let cache_size = kms.get("cachesize").filter(|value| !matches!(value, Value::Null));
        let cache_size = cache_size.map(|value| {
            value.as_i64().unwrap_or_else(|| {
                self.mistyped(value, &format!("{at}.cachesize"), (KMS, "int32"));
                0
            })
        });
        let api_version = if api_version.is_empty() { "v1".to_owned() } else { api_version };
        RawKms { api_version, name, cache_size, endpoint, timeout }
    }

    fn duration(&mut self, text: &str) -> Option<Duration> {
        let (is_negative, amount) = text.strip_prefix('-').map_or((false, text), |amount| (true, amount));
        match gotext::parse_duration(amount) {
            Ok(duration) if is_negative && !duration.is_zero() => None,
            Ok(duration) => Some(duration),
            Err(_) => {
                self.fail(gotext::parse_duration(text).err().unwrap_or_default());
                None
            }
        }
    }
}
