//! Projected volumes, which have several sources.

use std::collections::BTreeSet;

use crate::kinds::behavior::rules::metadata::user_annotations;
use crate::kinds::behavior::rules::path_text::{mode, not_reserved};
use crate::kinds::behavior::rules::selector;
use crate::kinds::certificates::shared::{bundle_name, signer};
use crate::kinds::core::pod_spec::volume_files::{downward_file, key_to_path};
use crate::kinds::core::volume_source::require;
use crate::kinds::prelude::*;

/// The paths that are already taken.
#[derive(Default)]
struct Paths<'v>(BTreeSet<&'v str>);

impl<'v> Paths<'v> {
    /// Takes a path. `named` is the value that upstream shows if the path is taken.
    fn take(&mut self, volume: &At<'_, '_>, path: &'v str, named: &str, errors: &mut Errors) {
        if !self.0.insert(path) {
            errors.invalid(volume, named, "conflicting duplicate paths");
        }
    }
}

pub fn validate(at: &At<'_, '_>, errors: &mut Errors) {
    mode(&at.get("defaultMode"), errors);
    let mut paths = Paths::default();
    for source in at.get("sources").items() {
        let mut found = 0;
        for (name, rule) in SOURCES {
            let part = source.get(name);
            if part.is_set() {
                found += 1;
                rule(&part, at, &mut paths, errors);
            }
        }
        if found > 1 {
            errors.forbidden(&source, "may not specify more than 1 volume type per source");
        }
    }
}

type Rule = for<'v> fn(&At<'v, '_>, &At<'v, '_>, &mut Paths<'v>, &mut Errors);

const SOURCES: [(&str, Rule); 6] = [
    ("secret", files),
    ("configMap", files),
    ("downwardAPI", downward),
    ("serviceAccountToken", token),
    ("clusterTrustBundle", bundle),
    ("podCertificate", certificate),
];

fn files<'v>(at: &At<'v, '_>, volume: &At<'v, '_>, paths: &mut Paths<'v>, errors: &mut Errors) {
    require(at, &["name"], errors);
    for item in at.get("items").items() {
        key_to_path(&item, errors);
        let path = item.get("path").text();
        if !path.is_empty() {
            paths.take(volume, path, at.get("name").text(), errors);
        }
    }
}

fn downward<'v>(at: &At<'v, '_>, volume: &At<'v, '_>, paths: &mut Paths<'v>, errors: &mut Errors) {
    for file in at.get("items").items() {
        downward_file(&at.holding(file.value()), errors);
        let path = file.get("path").text();
        if !path.is_empty() {
            paths.take(volume, path, path, errors);
        }
    }
}

fn token<'v>(at: &At<'v, '_>, volume: &At<'v, '_>, _: &mut Paths<'v>, errors: &mut Errors) {
    let seconds = at.get("expirationSeconds");
    let number = seconds.opt_int().unwrap_or(3600);
    if number < 600 {
        errors.invalid(&seconds, number, "may not specify a duration less than 10 minutes");
    }
    if number > 1 << 32 {
        errors.invalid(&seconds, number, "may not specify a duration larger than 2^32 seconds");
    }
    // Upstream reports errors at this place.
    let place = volume.get("path");
    match at.get("path").text() {
        "" => errors.required(&place, ""),
        path => not_reserved(&place, path, errors),
    }
}

fn bundle<'v>(at: &At<'v, '_>, volume: &At<'v, '_>, paths: &mut Paths<'v>, errors: &mut Errors) {
    let (name, signer_name, labels) = (at.get("name"), at.get("signerName"), at.get("labelSelector"));
    match (name.is_set(), signer_name.is_set()) {
        (true, true) => errors.invalid(at, at.value(), "only one of name and signerName may be used"),
        (true, false) => {
            errors.present(&name, "must be a valid object name");
            for message in bundle_name(name.text()) {
                let why = format!("not a valid clustertrustbundlename: {message}");
                errors.invalid(&name, name.text(), &why);
            }
            if labels.is_set() {
                let why = "labelSelector must be unset if name is specified";
                errors.invalid(&labels, selector::shown(&labels), why);
            }
        }
        (false, true) => {
            errors.present(&signer_name, "must be a valid signer name");
            signer(&signer_name, errors);
            selector::validate(&labels, errors);
        }
        (false, false) => errors.required(at, "either name or signerName must be specified"),
    }
    let path = at.get("path");
    require(at, &["path"], errors);
    not_reserved(&path, path.text(), errors);
    paths.take(volume, path.text(), path.text(), errors);
}

fn certificate<'v>(at: &At<'v, '_>, volume: &At<'v, '_>, paths: &mut Paths<'v>, errors: &mut Errors) {
    signer(&at.get("signerName"), errors);
    user_annotations(&at.get("userAnnotations"), errors);
    const KEYS: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    errors.one_of(&at.get("keyType"), at.get("keyType").text(), &KEYS);
    expiration(at, errors);
    let mut found = false;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = at.get(name);
        if !path.text().is_empty() {
            found = true;
            not_reserved(&path, path.text(), errors);
            paths.take(volume, path.text(), path.text(), errors);
        }
    }
    if !found {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.required(at, why);
    }
}

/// The longest lifetime: a day for signers of Kubernetes itself, a quarter of a year for others.
fn expiration(at: &At<'_, '_>, errors: &mut Errors) {
    let seconds = at.get("maxExpirationSeconds");
    let Some(number) = seconds.opt_int() else { return };
    if number < 3600 {
        errors.invalid(&seconds, number, "if provided, maxExpirationSeconds must be >= 3600");
    }
    let signer = at.get("signerName").text();
    let host = signer.split('/').next().unwrap_or_default();
    let own = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    let max = if own { 24 * 60 * 60 } else { 91 * 24 * 60 * 60 };
    if number > max {
        errors.invalid(&seconds, number, &format!("if provided, maxExpirationSeconds must be <= {max}"));
    }
}
