//! X.509 certificates and certificate requests as Go's `crypto/x509` reads and verifies them. Whatever kube-apiserver
//! accepts or refuses, this crate does too, in the same words. Every certificate that rowplane judges goes through here.
//!
//! A parser of its own stands here because a second reading of the same bytes is a hole: what a lenient parser overlooks
//! (a string type, a second value, a longer length) another program of the cluster, which is written in Go, acts upon.
//! Signatures and keys are aws-lc's, and the `rsa` crate's for RSA keys of 1024 to 2047 bits, which aws-lc has for some
//! schemes only, and for the salts of tokens.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

pub mod alerts;
mod alternative_names;
mod certificate;
mod constrained_chain;
mod constraints;
mod der;
mod domain;
mod error;
mod extensions;
mod handshake;
mod host;
mod key;
mod name;
mod pem;
mod policies;
mod request;
mod signature;
mod verify;

pub use self::alternative_names::AlternativeNames;
pub use self::certificate::Certificate;
pub use self::der::is_der;
pub use self::error::Error;
pub use self::handshake::{SCHEMES, verify_handshake};
pub use self::key::{Curve, PublicKey, RsaKey};
pub use self::name::{Attribute, Name};
pub use self::pem::{Block, blocks, certificates, check_authorities};
pub use self::request::CertificateRequest;
pub use self::signature::{Hash, Padding};
pub use self::verify::{Options, Pool, Purpose, verify};
