//! The claims of a token.

use serde::Deserialize;

use crate::auth::jwt::{Audience, Date};

/// The claims of a token that the server has issued for a while.
#[derive(Clone, Debug, Deserialize)]
pub struct TokenClaims {
    #[serde(default)]
    pub sub: String,
    #[serde(default)]
    pub aud: Audience,
    #[serde(default)]
    pub exp: Option<Date>,
    #[serde(default)]
    pub nbf: Option<Date>,
    #[serde(default)]
    pub iat: Option<Date>,
    #[serde(default)]
    pub jti: String,
    #[serde(default, rename = "kubernetes.io")]
    pub kubernetes: Binding,
}

/// The objects that the token names.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Binding {
    #[serde(default)]
    pub namespace: String,
    #[serde(default, rename = "serviceaccount")]
    pub account: Reference,
    #[serde(default)]
    pub pod: Option<Reference>,
    #[serde(default)]
    pub secret: Option<Reference>,
    #[serde(default)]
    pub node: Option<Reference>,
    #[serde(default, rename = "warnafter")]
    pub warn_after: Option<Date>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reference {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub uid: String,
}
