//! Secrets with a certificate and its key (Go's `tls.X509KeyPair`).

use pem::Pem;
use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::gotext;
use crate::kinds::prelude::*;
use crate::x509::{self, Certificate, PublicKey};

const CERTIFICATE: &str = "CERTIFICATE";

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    if At::member(object, "type").text() != "kubernetes.io/tls" {
        return;
    }
    let data = At::member(object, "data");
    let blocks = |name: &str| {
        let bytes = gotext::decode_base64(data.key(name).text()).unwrap_or_default();
        pem::parse_many(bytes).unwrap_or_default()
    };
    if let Err(why) = pair(&blocks("tls.crt"), &blocks("tls.key")) {
        remarks.say(why);
    }
}

/// Checks a certificate and its key. The error is Go's text.
fn pair(certificates: &[Pem], keys: &[Pem]) -> Result<(), String> {
    let certificate = first_certificate(certificates)?;
    let key = first_key(keys)?;
    let certificate = Certificate::parse(certificate.contents()).map_err(|error| error.to_string())?;
    let Some(signing) = readable(key) else {
        // Keys that Go supports and this library does not are accepted.
        return if x509::is_der(key.contents()) {
            Ok(())
        } else {
            Err("tls: failed to parse private key".to_owned())
        };
    };
    let is_same_type = match (&certificate.key, signing.algorithm()) {
        (PublicKey::Other | PublicKey::Unknown, _) => {
            return Err("tls: unknown public key algorithm".to_owned());
        }
        (PublicKey::Rsa(_), SignatureAlgorithm::RSA)
        | (PublicKey::Ec(..), SignatureAlgorithm::ECDSA)
        | (PublicKey::Ed25519(_), SignatureAlgorithm::ED25519) => true,
        _ => false,
    };
    if !is_same_type {
        return Err("tls: private key type does not match public key type".to_owned());
    }
    match signing.public_key() {
        Some(own) if own.as_ref() != certificate.raw_key() => {
            Err("tls: private key does not match public key".to_owned())
        }
        _ => Ok(()),
    }
}

fn first_certificate(blocks: &[Pem]) -> Result<&Pem, String> {
    if let Some(found) = blocks.iter().find(|block| block.tag() == CERTIFICATE) {
        return Ok(found);
    }
    Err(match blocks {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [only] if only.tag().ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned()
        }
        others => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: {}",
            tags(others)
        ),
    })
}

fn first_key(blocks: &[Pem]) -> Result<&Pem, String> {
    let is_key = |tag: &str| tag == "PRIVATE KEY" || tag.ends_with(" PRIVATE KEY");
    if let Some(found) = blocks.iter().find(|block| is_key(block.tag())) {
        return Ok(found);
    }
    Err(match blocks {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [only] if only.tag() == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: {}",
            tags(others)
        ),
    })
}

fn tags(blocks: &[Pem]) -> String {
    let tags: Vec<&str> = blocks.iter().map(Pem::tag).collect();
    format!("[{}]", tags.join(" "))
}

/// Parses a key. Go tries all three forms, whatever the block's label is.
fn readable(key: &Pem) -> Option<std::sync::Arc<dyn rustls::sign::SigningKey>> {
    let der = key.contents();
    let forms = [
        PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der)),
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der)),
        PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der)),
    ];
    forms.iter().find_map(|form| any_supported_type(form).ok())
}
