//! CertificateSigningRequests.

pub mod approval;

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::causes::Cause;
use crate::gotext::decode_base64;
use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, condition, text, text_column};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::selectable::field;
use crate::kinds::certificates::shared::signer;
use crate::kinds::prelude::*;
use crate::x509::{self, CertificateRequest};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("certificatesigningrequests", "CertificateSigningRequest")
        .short(&["csr"])
        .sub(&["approval", "status"]),
    strategy: Strategy { names: NameFormat::PathSegment, hooks: &approval::RequestHooks, ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: || SelectableFields::cluster(vec![field("spec.signerName")]),
    other_version: None,
};

const LEGACY: &str = "kubernetes.io/legacy-unknown";

const DECISIONS: [&str; 2] = ["Approved", "Denied"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    validate(object, None, errors);
}

fn validate(object: &ObjectMap, old: Option<&ObjectMap>, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let before = old.map(|old| At::member(old, "spec"));
    let request = spec.get("request");
    if let Err(why) = check_request(request.text()) {
        errors.invalid(&request, request.value(), &why);
    }
    usages(&spec.get("usages"), before.map(|spec| spec.get("usages").value()), errors);
    let name = spec.get("signerName");
    let kept = before.is_some_and(|spec| spec.get("signerName").text() == LEGACY);
    if name.text() == LEGACY && !kept {
        errors.invalid(&name, LEGACY, "the legacy signerName is not allowed via this API version");
    } else {
        signer(&name, errors);
    }
    let expiration = spec.get("expirationSeconds");
    if expiration.opt_int().is_some_and(|seconds| seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&expiration, expiration.int(), why);
    }
    let status = At::member(object, "status");
    conditions(&status.get("conditions"), old, errors);
    let certificate = status.get("certificate");
    let known =
        old.is_some_and(|old| At::member(old, "status").get("certificate").text() == certificate.text());
    if !known && let Err(why) = check_certificates(certificate.text()) {
        errors.invalid(&certificate, "<certificate data>", &why);
    }
}

/// Whether the text is one certificate request, signed with its own key.
fn check_request(text: &str) -> Result<(), String> {
    let request = CertificateRequest::of_pem(&decode_base64(text)?).map_err(|error| error.to_string())?;
    request.check_signature().map_err(|error| error.to_string())
}

fn check_certificates(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let (blocks, _) = x509::blocks(&decode_base64(text)?);
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            let label = crate::gotext::quote(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        x509::Certificate::parse(&block.bytes).map_err(|error| error.to_string())?;
    }
    let none = "must contain at least one CERTIFICATE PEM block";
    if blocks.is_empty() { Err(none.to_owned()) } else { Ok(()) }
}

fn usages(list: &At<'_, '_>, old: Option<&crate::tree::Value>, errors: &mut Errors) {
    errors.present(list, "");
    let old: Vec<&str> = old
        .and_then(crate::tree::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(crate::tree::Value::as_str)
        .collect();
    let unknown_before = old.iter().any(|usage| !USAGES.contains(usage));
    let repeated_before = old.iter().collect::<BTreeSet<_>>().len() < old.len();
    for usage in list.items().filter(|_| !unknown_before) {
        errors.one_of(&usage, usage.text(), &USAGES);
    }
    let mut seen = BTreeSet::new();
    for usage in list.items() {
        if !seen.insert(usage.text()) && !repeated_before {
            errors.duplicate(&usage, usage.text());
        }
    }
}

fn conditions(list: &At<'_, '_>, old: Option<&ObjectMap>, errors: &mut Errors) {
    let old = old.map(|old| At::member(old, "status"));
    let old: Vec<&str> = old
        .map(|status| {
            status.get("conditions").items().map(|condition| condition.get("type").text()).collect()
        })
        .unwrap_or_default();
    let both_before = DECISIONS.iter().all(|decision| old.contains(decision));
    let repeated_before = old.iter().collect::<BTreeSet<_>>().len() < old.len();
    let mut seen = BTreeSet::new();
    for condition in list.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.text().is_empty() && !old.contains(&"") {
            errors.required(&kind, "");
        }
        let decided = matches!(kind.text(), "Approved" | "Denied" | "Failed");
        let allowed: &[&str] = if decided { &["True"] } else { &["False", "True", "Unknown"] };
        errors.present_one_of(&status, allowed);
        let other = DECISIONS.iter().find(|decision| **decision != kind.text() && seen.contains(*decision));
        if DECISIONS.contains(&kind.text()) && other.is_some() && !both_before {
            errors.invalid(list, kind.text(), "Approved and Denied conditions are mutually exclusive");
        }
        if !seen.insert(kind.text()) && !repeated_before {
            errors.duplicate(&kind, kind.text());
        }
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    change(new, old, Certificate::Fixed, errors);
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    change(new, old, Certificate::Settable, errors);
}

/// Whether a write may set the certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certificate {
    Fixed,
    Settable,
}

fn change(new: &ObjectMap, old: &ObjectMap, settable: Certificate, errors: &mut Errors) {
    validate(new, Some(old), errors);
    let (status, before) = (At::member(new, "status"), At::member(old, "status"));
    let (list, old_list) = (status.get("conditions"), before.get("conditions"));
    removed(&list, &old_list, errors);
    for kind in DECISIONS {
        let (now, then) = (of_kind(&list, kind), of_kind(&old_list, kind));
        let what = match now.len().cmp(&then.len()) {
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if same(&now.into(), &then.into()) => continue,
            std::cmp::Ordering::Equal => "modify",
        };
        errors.forbidden(&list, &format!("updates may not {what} a condition of type \"{kind}\""));
    }
    let (certificate, known) = (status.get("certificate"), before.get("certificate").text());
    if certificate.text() != known {
        if settable == Certificate::Fixed {
            errors.forbidden(&certificate, "updates may not set certificate content");
        } else if !known.is_empty() {
            errors.forbidden(&certificate, "updates may not modify existing certificate content");
        }
    }
}

fn of_kind(conditions: &At<'_, '_>, kind: &str) -> Vec<Value> {
    let of_kind = conditions.items().filter(|one| one.get("type").text() == kind);
    of_kind.map(|one| one.value().clone()).collect()
}

fn removed(list: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    for kind in ["Approved", "Denied", "Failed"] {
        if of_kind(list, kind).len() < of_kind(old, kind).len() {
            errors.forbidden(list, &format!("updates may not remove a condition of type \"{kind}\""));
        }
    }
}

/// Errors of a change of the conditions through the subresource `approval`.
fn approval_causes(new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    let mut errors = Errors::default();
    validate(new, Some(old), &mut errors);
    let (status, before) = (At::member(new, "status"), At::member(old, "status"));
    removed(&status.get("conditions"), &before.get("conditions"), &mut errors);
    errors.into_causes().into_vec()
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        text_column("SignerName", "Signer that is asked.").or("spec.signerName", "<none>"),
        text_column("Requestor", "User who asks.").at("spec.username"),
        text_column("RequestedDuration", "How long the certificate should be valid.")
            .of(|object, _| requested_duration(&object["spec"]["expirationSeconds"]).into()),
        text_column("Condition", "Where the request stands.")
            .of(|object, _| signing_state(&object["status"]).into()),
    ],
    ..PLAIN
};

fn requested_duration(seconds: &Value) -> String {
    match seconds.as_i64() {
        Some(seconds) => age::text(SignedDuration::from_secs(seconds)),
        None => "<none>".to_owned(),
    }
}

/// The state in the form `Approved,Issued`. A condition counts if it exists, whatever its status is.
fn signing_state(status: &Value) -> String {
    let has = |type_| condition(&status["conditions"], type_).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if text(&status["certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}
