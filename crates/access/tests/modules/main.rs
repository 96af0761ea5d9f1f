//! Tests of modules through their public items, in a file for each module.

mod auth_authentication_config;
mod auth_authn;
mod auth_authorization_config;
mod auth_authorizer;
mod auth_authorizer_conditions;
mod auth_authorizer_mode;
mod auth_impersonation;
mod auth_jwt;
mod auth_oidc_mapping;
mod auth_pki;
mod auth_signing;
mod auth_token_file;
