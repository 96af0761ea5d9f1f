//! ClusterTrustBundles: the certificates by which a signer's certificates can be verified.

use std::collections::BTreeMap;

use crate::kinds::behavior::columns::cell::{NAME, PLAIN, text_column};
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::same::immutable_text;
use crate::kinds::behavior::selectable::field;
use crate::kinds::certificates::shared::signer;
use crate::kinds::prelude::*;
use crate::x509::{self, Block, Certificate};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("clustertrustbundles", "ClusterTrustBundle").conditional(),
    strategy: Strategy { names: NameFormat::OfRules, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: || SelectableFields::cluster(vec![field("spec.signerName")]),
    other_version: None,
};

const BUNDLE_MAX: usize = 1024 * 1024;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    named(object, errors);
    bundle(&At::member(object, "spec").get("trustBundle"), errors);
}

/// An unchanged bundle is not validated again.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    named(new, errors);
    let (spec, before) = (At::member(new, "spec"), At::member(old, "spec"));
    let certificates = spec.get("trustBundle");
    if certificates.text() != before.get("trustBundle").text() {
        bundle(&certificates, errors);
    }
    immutable_text(&spec.get("signerName"), &before.get("signerName"), errors);
}

/// Validates that the signer's name is a prefix of the bundle's name.
fn named(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let signer_name = spec.get("signerName");
    for field in ["generateName", "name"] {
        let name = metadata.get(field);
        if !name.text().is_empty() {
            errors.invalid_each(&name, name.text(), messages_of_name(name.text(), signer_name.text()));
        }
    }
    if !signer_name.text().is_empty() {
        signer(&signer_name, errors);
    }
}

fn messages_of_name(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return dns1123_subdomain(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(own) => dns1123_subdomain(own),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

fn bundle(at: &At<'_, '_>, errors: &mut Errors) {
    let text = at.text();
    if text.len() > BUNDLE_MAX {
        return errors.too_long(at, BUNDLE_MAX);
    }
    let mut anchors: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    let before = errors.len();
    for (index, block) in x509::blocks(text.as_bytes()).0.into_iter().enumerate() {
        match wrong_with(&block) {
            Some(why) => errors.invalid(at, OMITTED, &format!("entry {index} {why}")),
            None => anchors.entry(block.bytes).or_default().push(index),
        }
    }
    if errors.len() > before {
        return;
    }
    if anchors.is_empty() {
        errors.invalid(at, OMITTED, "at least one trust anchor must be provided");
    }
    for indices in anchors.values().filter(|indices| indices.len() > 1) {
        let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
        errors.invalid(at, OMITTED, &format!("duplicate trust anchor (indices [{}])", indices.join(" ")));
    }
}

const OMITTED: &str = "<value omitted>";

fn wrong_with(block: &Block) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(certificate) = Certificate::parse(&block.bytes) else {
        return Some("does not parse as X.509".to_owned());
    };
    (!certificate.is_ca()).then(|| "does not have the CA bit set".to_owned())
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("SignerName", "Signer whose roots the bundle holds.").or("spec.signerName", "<none>"),
    ],
    ..PLAIN
};
