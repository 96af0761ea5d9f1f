//! Names of signers and of their bundles (core `validation/names.go`).

use crate::gotext::quote;
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::prelude::*;

const DOMAIN_MAX: usize = 253;

/// The longest name: a domain, a subdomain and a label.
const SIGNER_MAX: usize = 253 + 1 + 253 + 63 + 1;

/// Validates a signer's name, for example `example.com/signer-name`.
pub fn signer(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    if name.is_empty() {
        errors.required(at, "");
        return;
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(at, name, why);
        return;
    };
    if domain.len() > DOMAIN_MAX {
        errors.too_long(at, DOMAIN_MAX);
    }
    labels(at, domain, dns1123_label, errors);
    if !domain.contains('.') {
        errors.invalid(at, domain, "should be a domain with at least two segments separated by dots");
    }
    labels(at, path, dns1123_subdomain, errors);
    if name.len() > SIGNER_MAX {
        errors.too_long(at, SIGNER_MAX);
    }
}

/// Reports only the first invalid label.
fn labels(at: &At<'_, '_>, text: &str, check: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let bad = text.split('.').map(|label| (label, check(label))).find(|(_, messages)| !messages.is_empty());
    let (label, messages) = bad.unwrap_or_default();
    for message in messages {
        errors.invalid(at, text, &format!("validating label {}: {message}", quote(label)));
    }
}

/// The errors of a bundle's name. If the bundle belongs to a signer, the signer's name must be its prefix.
pub fn bundle_name(name: &str) -> Vec<String> {
    match name.rsplit_once(':') {
        Some((signer, _)) if signer.contains('/') => {
            let (signer, prefix) = (signer.replace(':', "/"), signer.replace('/', ":"));
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}:")]
        }
        Some((_, own)) => dns1123_subdomain(own),
        None => dns1123_subdomain(name),
    }
}
