//! Values of Secrets in a fork. They are replaced, so that what runs on a fork cannot use them, and nobody reads them in what is
//! made of them.
//!
//! A replaced value tells nothing of the one that it stands for but whether another one is the same. Each process draws a key
//! for that, so that values cannot be guessed and compared.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::api::fields;
use crate::cache::{Objects, Range};
use crate::codec::at_rest;
use crate::codec::object::{Draft, Object};
use crate::random::Random;
use crate::tree::{Map, Value};

/// The text with which every value begins that stands for another one.
pub const MARK: &str = "replaced-in-branch-";

/// The type of the Secrets in which helm keeps its releases, and without which it would take every release for a new one.
const HELM: &str = "helm.sh/release.v1";
/// The types whose one value has to be JSON.
const JSON: [&str; 2] = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];

/// The Secrets of a server as its forks have them. They are made once for each version, and shared by all forks.
pub struct Replacements {
    key: [u8; 32],
    made: Mutex<Objects>,
}

impl Replacements {
    /// None yet, under a key that is drawn for them.
    pub fn new(random: &Random) -> Self {
        let mut key = [0; 32];
        random.with(|random| random.fill_bytes(&mut key));
        Self { key, made: Mutex::default() }
    }

    /// These Secrets with other values.
    pub fn of(&self, secrets: &Objects) -> Objects {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Range::of(None);
        let replaced = secrets.range(&all).map(|secret| match made.get(secret.namespace(), secret.name()) {
            Some(known) if known.revision() == secret.revision() => known,
            _ => self.replace(secret),
        });
        let replaced = Objects::of_sorted(replaced);
        *made = replaced.clone();
        replaced
    }

    /// One Secret with other values. One that cannot be read stays as it is: nobody can read it in the fork either.
    fn replace(&self, secret: &Arc<Object>) -> Arc<Object> {
        let Ok(mut object) = secret.to_closed_map() else { return secret.clone() };
        let kind = fields::text(&object, &["type"]).to_owned();
        if kind == HELM {
            return secret.clone();
        }
        if let Some(Value::Object(data)) = object.get_mut("data") {
            for (_, value) in data.iter_mut() {
                let text = match JSON.contains(&&*kind) {
                    true => "{}".to_owned(),
                    false => self.stand_in(value.as_str().unwrap_or_default()),
                };
                *value = BASE64_STANDARD.encode(text).into();
            }
        }
        remove_applied(&mut object);
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.shift_remove("resourceVersion");
        }
        let json = at_rest::of_json(Value::Object(object).to_string().as_bytes());
        Arc::new(Draft::parse(secret.namespace(), secret.name(), json).into_object(secret.revision()))
    }

    fn stand_in(&self, value: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length does");
        mac.update(value.as_bytes());
        let digest = mac.finalize().into_bytes();
        let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{MARK}{digits}")
    }
}

/// Removes the annotation in which `kubectl apply` repeats the values.
fn remove_applied(secret: &mut Map) {
    if let Some(Value::Object(metadata)) = secret.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}
