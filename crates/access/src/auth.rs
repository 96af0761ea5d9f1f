//! Authentication and authorization. This module knows nothing of SQL or of HTTP bodies.

pub mod abac;
pub mod authentication_config;
pub mod authn;
pub mod authorization_config;
pub mod authorizer;
pub mod bootstrap_tokens;
pub mod foreseen;
pub mod impersonation;
pub mod jwt;
pub mod node;
pub mod oidc;
pub mod pki;
pub mod rbac;
mod recent;
pub mod revocation;
mod secret;
pub mod service_accounts;
pub mod signing;
pub mod token_file;
pub mod token_webhook;
pub mod trust;
