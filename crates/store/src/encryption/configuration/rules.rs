//! The rules of the file, with upstream's texts.

use std::collections::HashSet;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::read::{RawEntry, RawKey, RawKms, RawProvider};
use super::{ANY, Entry, Key, KeyKind, KmsConfiguration, Provider, Reload, group_resource};
use crate::gotext::quote;
use crate::schema::names::GroupResource;

/// A decoder as lenient as Go's.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Resources that upstream stores without an endpoint of the API.
const WITHOUT_ENDPOINTS: [&str; 3] =
    ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

/// An entry that keeps all rules but those about the other entries.
pub struct Checked {
    entry: Entry,
    has_first_version: bool,
}

impl Checked {
    pub fn into_entry(self) -> Entry {
        self.entry
    }
}

/// Checks the file entry by entry.
pub fn check(raw: Vec<RawEntry>, reload: Reload) -> Result<Vec<Checked>, String> {
    let mut rules = Rules { problems: Vec::new(), services: HashSet::new(), reload };
    if raw.is_empty() {
        rules.required("resources", "at least one resources is required");
    }
    let checked: Vec<Checked> = raw.into_iter().enumerate().map(|(at, raw)| rules.entry(at, raw)).collect();
    let mut told = HashSet::new();
    let problems: Vec<&str> =
        rules.problems.iter().map(String::as_str).filter(|problem| told.insert(*problem)).collect();
    match &*problems {
        [] => Ok(checked),
        [one] => Err((*one).to_owned()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Refuses entries that never count, since an earlier one has a wildcard for their resources.
pub fn refuse_masked(entries: &[Checked]) -> Result<(), String> {
    let mut seen: HashSet<&GroupResource> = HashSet::new();
    let every = GroupResource::new(ANY, ANY);
    for resource in entries.iter().flat_map(|checked| &checked.entry.resources) {
        for wildcard in [GroupResource::new(&resource.group, ANY), every.clone()] {
            if seen.contains(&wildcard) {
                let (resource, wildcard) = (quote(&in_file(resource)), quote(&in_file(&wildcard)));
                return Err(format!("resource {resource} is masked by earlier rule {wildcard}"));
            }
        }
        seen.insert(resource);
    }
    Ok(())
}

pub fn refuse_first_version(entries: &[Checked]) -> Result<(), String> {
    match entries.iter().any(|checked| checked.has_first_version) {
        true => Err(
            "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  \
                     Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
                .to_owned(),
        ),
        false => Ok(()),
    }
}

/// The name of a resource as the file has it.
fn in_file(resource: &GroupResource) -> String {
    if resource.group.is_empty() && resource.plural == ANY { "*.".to_owned() } else { resource.to_string() }
}

struct Rules {
    problems: Vec<String>,
    /// The names of key management services so far.
    services: HashSet<String>,
    reload: Reload,
}

impl Rules {
    fn required(&mut self, at: &str, why: &str) {
        self.problems.push(format!("{at}: Required value: {why}"));
    }

    /// `value` as JSON.
    fn invalid(&mut self, at: &str, value: &str, why: &str) {
        self.problems.push(format!("{at}: Invalid value: {value}: {why}"));
    }

    fn entry(&mut self, index: usize, raw: RawEntry) -> Checked {
        let (resources, providers) =
            (format!("resources[{index}].resources"), format!("resources[{index}].providers"));
        if raw.resources.is_empty() {
            self.required(&resources, &format!("at least one {resources} is required"));
        }
        self.overlaps(&raw.resources, &resources);
        for (index, name) in raw.resources.iter().enumerate() {
            if let Some(why) = refused_name(name) {
                self.invalid(&format!("{resources}[{index}]"), &quote(name), why);
            }
        }
        if raw.providers.is_empty() {
            self.required(&providers, &format!("at least one {providers} is required"));
        }
        let has_first_version =
            raw.providers.iter().any(|raw| raw.kms.as_ref().is_some_and(|kms| kms.api_version == "v1"));
        let of = |(index, raw)| self.provider(raw, &format!("{providers}[{index}]"));
        let providers = raw.providers.into_iter().enumerate().filter_map(of).collect();
        let resources = raw.resources.iter().map(|name| group_resource(name)).collect();
        Checked { entry: Entry { resources, providers }, has_first_version }
    }

    fn overlaps(&mut self, names: &[String], at: &str) {
        let resources: Vec<GroupResource> = names.iter().map(|name| group_resource(name)).collect();
        let (mut repeats, mut overlaps) = (false, false);
        for (index, one) in resources.iter().enumerate() {
            for (_, other) in resources.iter().enumerate().filter(|(other, _)| *other != index) {
                if one == other && !repeats {
                    repeats = true;
                    continue;
                }
                let every = one.group == ANY && one.plural == ANY;
                let wild = one.group == other.group && (one.plural == ANY || other.plural == ANY);
                overlaps |= every || wild;
            }
        }
        let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
        let names = format!("[{}]", names.join(","));
        if repeats {
            self.invalid(at, &names, "the same resource cannot be specified multiple times");
        }
        if overlaps {
            let why = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed \
                       as they will be masked";
            self.invalid(at, &names, why);
        }
    }

    fn provider(&mut self, raw: RawProvider, at: &str) -> Option<Provider> {
        let there = [
            raw.kms.is_some(),
            raw.aes_gcm.is_some(),
            raw.aes_cbc.is_some(),
            raw.secretbox.is_some(),
            raw.identity,
        ];
        match there.into_iter().filter(|there| *there).count() {
            0 => self.invalid(
                at,
                &shown(&raw),
                "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
            ),
            1 => {}
            _ => self.invalid(
                at,
                &shown(&raw),
                "more than one provider specified in a single element, should split into different list elements",
            ),
        }
        if let Some(kms) = raw.kms {
            return self.kms(kms, &format!("{at}.kms"));
        }
        let keyed = [
            (KeyKind::AesGcm, raw.aes_gcm),
            (KeyKind::AesCbc, raw.aes_cbc),
            (KeyKind::Secretbox, raw.secretbox),
        ];
        let found = keyed.into_iter().find_map(|(kind, keys)| Some((kind, keys?)));
        let Some((kind, keys)) = found else { return raw.identity.then_some(Provider::Identity) };
        let at = format!("{at}.{}.keys", kind.name());
        if keys.is_empty() {
            self.required(&at, "at least one keys is required");
        }
        let key = |(index, raw)| self.key(raw, kind, &format!("{at}[{index}]"));
        Some(Provider::Keys { kind, keys: keys.into_iter().enumerate().filter_map(key).collect() })
    }

    fn key(&mut self, raw: RawKey, kind: KeyKind, at: &str) -> Option<Key> {
        if raw.name.is_empty() {
            self.required(&format!("{at}.name"), "name is a mandatory field for a key");
        }
        let at = format!("{at}.secret");
        if raw.secret.is_empty() {
            self.required(&at, "secret is a mandatory field for a key");
            return None;
        }
        let text: String = raw.secret.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let Ok(secret) = BASE64.decode(text) else {
            self.invalid(&at, "\"REDACTED\"", "secrets must be base64 encoded");
            return None;
        };
        let lengths = kind.lengths();
        if !lengths.contains(&secret.len()) {
            let expected: Vec<String> = lengths.iter().map(usize::to_string).collect();
            let why = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                secret.len(),
                expected.join(" ")
            );
            self.invalid(&at, "\"REDACTED\"", &why);
        }
        Some(Key { name: raw.name, secret })
    }

    fn kms(&mut self, raw: RawKms, at: &str) -> Option<Provider> {
        let is_first = raw.api_version == "v1";
        let name = format!("{at}.name");
        if raw.name.is_empty() {
            self.required(&name, "name is a mandatory field for a provider");
        }
        if !is_first && raw.name.contains(':') {
            let why = format!("invalid KMS provider name {}, must not contain ':'", raw.name);
            self.invalid(&name, &quote(&raw.name), &why);
        }
        if (self.reload == Reload::Yes || !is_first) && self.services.contains(&raw.name) {
            let why = format!("duplicate KMS provider name {}, names must be unique", raw.name);
            self.invalid(&name, &quote(&raw.name), &why);
        }
        self.services.insert(raw.name.clone());
        let (shown, timeout) = &raw.timeout;
        let timeout = timeout.filter(|timeout| !timeout.is_zero());
        if timeout.is_none() {
            self.invalid(&format!("{at}.timeout"), &quote(shown), "timeout should be a positive value");
        }
        self.endpoint(&raw.endpoint, &format!("{at}.endpoint"));
        let size = format!("{at}.cachesize");
        match raw.cache_size {
            Some(found) if !is_first => {
                self.invalid(&size, &found.to_string(), "cachesize is not supported in v2");
            }
            Some(0) => {
                let why = "cachesize should be a positive value, or negative to disable";
                self.invalid(&size, "0", why);
            }
            _ => {}
        }
        if !is_first && raw.api_version != "v2" {
            let why = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
            self.invalid(&format!("{at}.apiVersion"), &quote(&raw.api_version), why);
        }
        let RawKms { name, endpoint, .. } = raw;
        Some(Provider::Kms(KmsConfiguration { name, endpoint, timeout: timeout? }))
    }

    fn endpoint(&mut self, endpoint: &str, at: &str) {
        if endpoint.is_empty() {
            return self.invalid(at, "\"\"", "endpoint is a mandatory field for a kms");
        }
        let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
        if scheme != "unix" {
            let why =
                format!("unsupported scheme {} for KMS provider, only unix is supported", quote(scheme));
            self.invalid(at, &quote(endpoint), &why);
        }
    }
}

/// Why a resource cannot be named so.
fn refused_name(name: &str) -> Option<&'static str> {
    let resource = group_resource(name);
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    if name == ANY {
        return Some(
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        );
    }
    if WITHOUT_ENDPOINTS.contains(&name) {
        return Some("resources which do not have REST API/s cannot be encrypted");
    }
    if resource.group == "events.k8s.io" {
        return Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        );
    }
    if resource.group == "extensions" {
        return Some("'extensions' group has been removed and cannot be used for encryption");
    }
    (resource.group == ANY && resource.plural != ANY)
        .then_some("encrypting the same resource across groups is not supported")
}

/// An element of the list of providers as an error shows it. Upstream prints its keys, too.
fn shown(raw: &RawProvider) -> String {
    const KEYS: &str = "{\"Keys\":[]}";
    let member =
        |name: &str, there: bool, value: &str| format!("\"{name}\":{}", if there { value } else { "null" });
    let members = [
        member("AESGCM", raw.aes_gcm.is_some(), KEYS),
        member("AESCBC", raw.aes_cbc.is_some(), KEYS),
        member("Secretbox", raw.secretbox.is_some(), KEYS),
        member("Identity", raw.identity, "{}"),
        member("KMS", raw.kms.is_some(), "{}"),
    ];
    format!("{{{}}}", members.join(","))
}
