//! The CAs and headers by which this server knows clients, as other API servers read them.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::authn::FrontProxy;
use crate::fields;
use crate::tree::{Map, Value, json};
use crate::x509::Certificate;

/// The CAs that clients' certificates are checked with, and the headers of front proxies.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    pub users: Vec<CertificateDer<'static>>,
    pub proxies: Vec<CertificateDer<'static>>,
    pub front_proxy: FrontProxy,
}

/// The data of the ConfigMap, with what other servers have put there. Certificates that have expired are left out, and so
/// are the headers of front proxies while there are no proxies.
pub fn merged(own: &Trust, data: &Map, now: SystemTime) -> Map {
    let mut out = Map::new();
    let users = certificates(fields::text(data, &["client-ca-file"]), &own.users, now);
    if !users.is_empty() {
        out.insert("client-ca-file", users.into());
    }
    let proxies = certificates(fields::text(data, &["requestheader-client-ca-file"]), &own.proxies, now);
    if proxies.is_empty() {
        return out;
    }
    let FrontProxy { username_headers, uid_headers, group_headers, extra_prefixes, allowed_names } =
        &own.front_proxy;
    let names = |headers: &[http::HeaderName]| -> Vec<String> {
        headers.iter().map(|name| canonical(name.as_str())).collect()
    };
    let prefixes: Vec<String> = extra_prefixes.iter().map(|prefix| canonical(prefix)).collect();
    let mut list = |key: &'static str, own: &[String], is_needed: bool| {
        let all = with_others(fields::text(data, &[key]), own);
        if is_needed || !all.is_empty() {
            out.insert(key, json!(all).to_string().into());
        }
    };
    list("requestheader-username-headers", &names(username_headers), true);
    list("requestheader-uid-headers", &names(uid_headers), false);
    list("requestheader-group-headers", &names(group_headers), true);
    list("requestheader-extra-headers-prefix", &prefixes, true);
    list("requestheader-allowed-names", allowed_names, true);
    out.insert("requestheader-client-ca-file", proxies.into());
    out
}

/// All valid certificates in PEM, each once: those that are there already, then our own.
fn certificates(there: &str, own: &[CertificateDer<'static>], now: SystemTime) -> String {
    let mut all: Vec<CertificateDer<'static>> = Vec::new();
    let there = CertificateDer::pem_slice_iter(there.as_bytes()).filter_map(Result::ok);
    for certificate in there.chain(own.iter().cloned()) {
        if !all.contains(&certificate) && !is_expired(&certificate, now) {
            all.push(certificate);
        }
    }
    all.iter()
        .map(|der| pem::encode(&pem::Pem::new("CERTIFICATE", der.to_vec())))
        .collect::<String>()
        .replace("\r\n", "\n")
}

fn is_expired(der: &CertificateDer<'_>, now: SystemTime) -> bool {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let parsed = Certificate::parse(der);
    parsed.is_ok_and(|certificate| u64::try_from(certificate.not_after).unwrap_or_default() < seconds)
}

/// A JSON list with more texts, each once.
fn with_others(there: &str, own: &[String]) -> Vec<String> {
    let there: Vec<Value> = serde_json::from_str(there).unwrap_or_default();
    let mut all: Vec<String> = Vec::new();
    for text in there.iter().filter_map(Value::as_str).map(str::to_owned).chain(own.iter().cloned()) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// A header's name as Go writes it.
fn canonical(name: &str) -> String {
    let mut upper = true;
    let spelled = |c: char| {
        let c = if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        upper = c == '-';
        c
    };
    name.chars().map(spelled).collect()
}
