//! Metrics of certificates and keys that others make.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::catalog::head;
use super::{Metrics, labels_of};

pub const REQUESTED: &str = "apiserver_certificates_registry_csr_requested_duration_total";
pub const HONORED: &str = "apiserver_certificates_registry_csr_honored_duration_total";
pub const KEYS_FETCHED: &str = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds";
pub const CERTIFICATE_LEFT: &str = "apiserver_client_certificate_expiration_seconds";
/// Upstream's buckets of `apiserver_client_certificate_expiration_seconds`: from half an hour to a year.
pub const CERTIFICATE_BUCKETS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];
const KEY_SET: &str = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info";

/// The hashes of the issuers' key sets, by those of the issuers' URLs.
#[derive(Debug, Default)]
pub struct KeySets(Mutex<BTreeMap<String, String>>);

impl KeySets {
    fn set(&self, issuer: String, keys: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(issuer, keys);
    }

    /// Adds the text of `/metrics`. `server` is the hash of the server's id.
    pub fn render(&self, out: &mut String, server: &str) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        head(out, KEY_SET, "gauge");
        for (issuer, keys) in known.iter() {
            let _ = writeln!(
                out,
                "{KEY_SET}{{jwt_issuer_hash=\"{issuer}\",apiserver_id_hash=\"{server}\",hash=\"{keys}\"}} 1"
            );
        }
        out.push('\n');
    }
}

impl Metrics {
    /// Notes a request with a client certificate that expires in so many seconds; if they are negative, it has.
    pub fn certificate_shown(&self, seconds_left: i64) {
        self.certificate_left.record(seconds_left as f64);
    }

    /// Counts a certificate that was requested for a time. Signers of other domains than `kubernetes.io` are one.
    pub fn certificate_issued(&self, signer: &str, is_honored: bool) {
        let signer = if signer.starts_with("kubernetes.io/") { signer } else { "other" };
        self.counter(REQUESTED, labels_of(&[("signerName", signer)])).increment(1);
        if is_honored {
            self.counter(HONORED, labels_of(&[("signerName", signer)])).increment(1);
        }
    }

    /// Notes an attempt to fetch the keys of an issuer, with what was fetched. Issuers come from settings.
    pub fn keys_fetched(&self, issuer: &str, keys: Option<&[u8]>) {
        let result = if keys.is_some() { "success" } else { "failure" };
        let issuer = hash(issuer.as_bytes());
        let labels = labels_of(&[("result", result), ("jwt_issuer_hash", &issuer), self.server()]);
        self.gauge(KEYS_FETCHED, labels).set(super::process::seconds(SystemTime::now()));
        if let Some(keys) = keys {
            self.key_sets.set(issuer, hash(keys));
        }
    }
}

/// The hash in the form that upstream's metrics show.
fn hash(text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let digits: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
