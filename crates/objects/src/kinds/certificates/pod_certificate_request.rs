//! PodCertificateRequests: certificates that pods request. Upstream's check of mail addresses in a certificate is
//! missing.

use jiff::SignedDuration;

use crate::gotext::{self, Fraction, decode_base64, parse_time};
use crate::kinds::behavior::columns::cell::{NAME, PLAIN, list, text, text_column};
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::condition;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::metadata::user_annotations;
use crate::kinds::behavior::rules::same::{immutable, same};
use crate::kinds::behavior::selectable::field;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::certificates::shared::signer;
use crate::kinds::prelude::*;
use crate::x509::{self, Certificate, CertificateRequest, Curve, PublicKey};

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("podcertificaterequests", "PodCertificateRequest").sub(&["status"]).conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: selectable_fields,
    other_version: None,
};

/// Upstream's have no `metadata.namespace`, though the kind is namespaced.
fn selectable_fields() -> SelectableFields {
    SelectableFields::cluster(["spec.signerName", "spec.podName", "spec.nodeName"].map(field).into())
}

const UID_MAX: usize = 128;

const REQUEST_MAX: usize = 10 * 1024;

const CHAIN_MAX: usize = 100 * 1024;

const HOUR: i64 = 60 * 60;

const DAY: i64 = 24 * HOUR;

const LAST: [&str; 3] = ["Issued", "Denied", "Failed"];

/// How far a certificate's times may deviate from this server's clock.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// How much of a certificate's lifetime must lie before and after the refresh.
const MARGIN: SignedDuration = SignedDuration::from_mins(10);

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let name = spec.get("signerName");
    signer(&name, errors);
    user_annotations(&spec.get("unverifiedUserAnnotations"), errors);
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        errors.in_format(&spec.get(name), dns1123_subdomain);
        let uid = spec.get(uid);
        if uid.text().is_empty() {
            errors.invalid(&uid, "", "must not be empty");
        }
        errors.no_longer(&uid, UID_MAX);
    }
    let seconds = spec.get("maxExpirationSeconds");
    let host = name.text().split('/').next().unwrap_or_default();
    let own = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    let longest = if own { DAY } else { 91 * DAY };
    // The default is a day.
    let number = seconds.opt_int().unwrap_or(DAY);
    if !(HOUR..=longest).contains(&number) {
        errors.invalid(&seconds, number, &format!("must be in the range [{HOUR}, {longest}]"));
    }
    let request = spec.get("stubPKCS10Request");
    if request.text().is_empty() {
        let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        return errors.invalid_unsaid(&spec, why);
    }
    let der = decode_base64(request.text()).unwrap_or_default();
    if der.len() > REQUEST_MAX {
        return errors.too_long(&request, REQUEST_MAX);
    }
    match check_request(&der) {
        Ok(()) => {}
        Err((None, why)) => errors.invalid_unsaid(&request, why),
        Err((Some(shown), why)) => errors.invalid(&request, &*shown, why),
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    immutable(&At::member(new, "spec"), &At::member(old, "spec"), errors);
}

/// An error: the value that upstream shows, and the text.
type Wrong = (Option<String>, &'static str);

/// Checks that the request is signed with its own key, of an accepted type.
fn check_request(der: &[u8]) -> Result<(), Wrong> {
    const NO_REQUEST: Wrong = (None, "must be a valid PKCS#10 CSR");
    let request = CertificateRequest::parse(der).map_err(|_| NO_REQUEST)?;
    check_key(&request.key)?;
    request.check_signature().map_err(|_| (None, "invalid signature"))
}

fn check_key(key: &PublicKey) -> Result<(), Wrong> {
    match key {
        PublicKey::Ed25519(_) | PublicKey::Ec(Curve::P256 | Curve::P384 | Curve::P521, _) => Ok(()),
        PublicKey::Ec(Curve::P224, _) => {
            Err((Some("curve P-224".to_owned()), "elliptic public keys must use curve P256, P384, or P521"))
        }
        PublicKey::Rsa(key) if matches!(key.bits(), 3072 | 4096) => Ok(()),
        PublicKey::Rsa(key) => {
            let shown = format!("{}-bit modulus", key.bits());
            Err((Some(shown), "RSA keys must have modulus size 3072 or 4096"))
        }
        PublicKey::Other | PublicKey::Unknown => {
            Err((None, "unknown public key type; supported types are Ed25519, ECDSA, and RSA"))
        }
    }
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let mut found = Errors::at(errors.now);
    let (status, before) = (At::member(new, "status"), At::member(old, "status"));
    let list = status.get("conditions");
    conditions(&list, &mut found);
    condition::validate_all(&list, &mut found);
    if !found.is_empty() {
        return errors.append(found);
    }
    let end = |status: &At<'_, '_>| {
        let conditions = status.get("conditions");
        LAST.into_iter().find(|end| {
            conditions.items().any(|one| one.get("type").text() == *end && one.get("status").text() == "True")
        })
    };
    let unchanged = same(status.value(), before.value());
    match (end(&before), end(&status)) {
        (Some(_), _) if !unchanged => {
            let why = "immutable after PodCertificateRequest is issued, denied, or failed";
            errors.invalid_unsaid(&status, why);
        }
        (Some(_), _) => {}
        (None, Some("Issued")) => issued(new, old, errors),
        (None, Some(_)) => {
            if others(&status).any(|name| status.get(name).is_set()) {
                let why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
                errors.invalid_unsaid(&status, why);
            }
        }
        (None, None) if !unchanged => {
            let why = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
            errors.invalid_unsaid(&status, why);
        }
        (None, None) => {}
    }
}

fn others<'v>(status: &At<'v, '_>) -> impl Iterator<Item = &'v str> + use<'v> {
    let members = status.value().as_object().into_iter().flatten();
    members.map(|(name, _)| name.as_str()).filter(|name| *name != "conditions")
}

fn conditions(list: &At<'_, '_>, errors: &mut Errors) {
    let mut known = 0;
    for (index, condition) in list.items().enumerate() {
        // Upstream's path has a dot before the index.
        let index = format!("[{index}]");
        let place = list.get(&index);
        let place = place.holding(condition.value());
        let (kind, status) = (place.get("type"), place.get("status"));
        if !LAST.contains(&kind.text()) {
            errors.not_supported(&kind, kind.text(), &LAST);
            continue;
        }
        known += 1;
        if known > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.invalid(&kind, kind.text(), why);
        }
        errors.one_of(&status, status.text(), &["True"]);
    }
}

/// Validates that the issued certificates are those that were requested.
fn issued(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let at = status.get("certificateChain");
    let chain = at.text();
    if chain.len() > CHAIN_MAX {
        return errors.too_long(&at, CHAIN_MAX);
    }
    let (blocks, _) = x509::blocks(chain.as_bytes());
    let Some((leaf, others)) = blocks.split_first() else {
        return errors.invalid(&at, chain, "issued certificate chain must contain at least one certificate");
    };
    if leaf.label != "CERTIFICATE" {
        let why = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
        return errors.invalid(&at, chain, why);
    }
    let Ok(leaf) = Certificate::parse(&leaf.bytes) else {
        return errors.invalid(&at, chain, "leaf certificate does not parse as valid X.509");
    };
    dns_names(&leaf, &at, errors);
    let request = At::member(old, "spec");
    let request = request.get("stubPKCS10Request");
    let der = decode_base64(request.text()).unwrap_or_default();
    let Ok(wanted) = CertificateRequest::parse(&der) else {
        return errors.invalid_unsaid(&request, "must be a valid PKCS#10 CSR");
    };
    if wanted.raw_key != leaf.raw_key() {
        return errors.invalid(&at, chain, "leaf certificate was not issued to the requested public key");
    }
    if !times(new, &leaf, errors) {
        return;
    }
    for block in others {
        let why = if block.label != "CERTIFICATE" {
            "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
        } else if Certificate::parse(&block.bytes).is_err() {
            "intermediate certificate does not parse as valid X.509"
        } else {
            continue;
        };
        return errors.invalid(&at, chain, why);
    }
}

fn dns_names(leaf: &Certificate, at: &At<'_, '_>, errors: &mut Errors) {
    for name in leaf.extensions.names.iter().flat_map(|names| &names.dns) {
        if name.is_empty() {
            errors.invalid(at, name.as_str(), "leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            errors.invalid(at, name.as_str(), "leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            let why = "leaf certificate's DNSName should not start or end with '.'";
            errors.invalid(at, name.as_str(), why);
        }
    }
}

/// Validates that the status has the times of the certificate, and that these are as requested.
fn times(object: &ObjectMap, leaf: &Certificate, errors: &mut Errors) -> bool {
    let status = At::member(object, "status");
    let fields = ["notBefore", "notAfter", "beginRefreshAt"].map(|name| status.get(name));
    let mut missing = false;
    for (at, why) in fields.iter().zip([
        "must be present and consistent with the issued certificate",
        "must be present and consistent with the issued certificate",
        "must be present and in the range [notbefore+10min, notafter-10min]",
    ]) {
        if !at.is_set() {
            missing = true;
            errors.required(at, why);
        }
    }
    if missing {
        return false;
    }
    let said = fields
        .each_ref()
        .map(|at| parse_time(at.text(), Fraction::Any).map(gotext::timestamp).unwrap_or_default());
    let [not_before, not_after, refresh] = said;
    let (from, until) = (leaf.not_before, leaf.not_after);
    let lifetime = until - from;
    let spec = At::member(object, "spec");
    let longest = spec.get("maxExpirationSeconds").int();
    let chain = status.get("certificateChain");
    let skew = not_before.duration_since(errors.now).abs();
    let [at_from, at_until, at_refresh] = &fields;
    let wrong = if not_before.as_second() != from {
        (at_from, "must be set to the NotBefore time encoded in the leaf certificate")
    } else if skew >= SKEW {
        (at_from, "must be set to within 5 minutes of kube-apiserver's current time")
    } else if not_after.as_second() != until {
        (at_until, "must be set to the NotAfter time encoded in the leaf certificate")
    } else if !(HOUR..=longest).contains(&lifetime) {
        let bound = if lifetime < HOUR {
            ">= 1 hour".to_owned()
        } else {
            format!("<= spec.maxExpirationSeconds ({longest})")
        };
        errors.invalid(&chain, nanoseconds(lifetime), &format!("leaf certificate lifetime must be {bound}"));
        return false;
    } else if refresh.duration_since(not_before) < MARGIN {
        (at_refresh, "must be at least 10 minutes after status.notBefore")
    } else if not_after.duration_since(refresh) < MARGIN {
        (at_refresh, "must be at least 10 minutes before status.notAfter")
    } else {
        return true;
    };
    let (at, why) = wrong;
    errors.invalid(at, at.value(), why);
    false
}

/// Seconds in the form in which Go prints a duration as JSON.
fn nanoseconds(seconds: i64) -> Verbatim {
    Verbatim((i128::from(seconds) * 1_000_000_000).to_string())
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("PodName", "Pod that the certificate is for.").at("spec.podName"),
        text_column("ServiceAccountName", "Service account of the pod.").at("spec.serviceAccountName"),
        text_column("NodeName", "Node that the pod runs on.").at("spec.nodeName"),
        text_column("SignerName", "Signer that is asked.").at("spec.signerName"),
        text_column("State", "Whether the request is pending, issued, denied or failed.")
            .of(|object, _| pod_request_state(&object["status"]).into()),
    ],
    ..PLAIN
};

fn pod_request_state(status: &Value) -> &str {
    let types = list(&status["conditions"]).iter().map(|condition| text(&condition["type"]));
    types.rev().find(|type_| matches!(*type_, "Issued" | "Denied" | "Failed")).unwrap_or("Pending")
}
