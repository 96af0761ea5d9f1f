//! Claims that an issuer does not put into its tokens: it names where they are (OpenID Connect Core, 5.6.2). They are
//! followed for groups alone.

use std::collections::HashMap;

use serde::Deserialize;

use super::provider::Provider;
use super::{Vouched, vouched};
use crate::auth::jwt::claimed_issuer;
use crate::gotext::quote;
use crate::tree::{Map, Value};

const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";

/// The endpoint where a claim is, and the token that it demands.
#[derive(Default, Deserialize)]
struct Source {
    #[serde(default)]
    endpoint: String,
    #[serde(default)]
    access_token: String,
}

/// Whether somebody else was asked for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expanded {
    Yes,
    No,
}

/// Puts a claim among the others of a token if the token says where it is.
pub async fn expand(
    provider: &Provider,
    claim: &str,
    claims: &mut Map,
    now: i64,
) -> Result<Expanded, String> {
    if claims.get(claim).is_some() {
        return Ok(Expanded::No);
    }
    let Some(names) = claims.get(NAMES) else { return Ok(Expanded::No) };
    let names: HashMap<String, String> =
        read(names).map_err(|why| format!("oidc: error parsing distributed claim names: {why}"))?;
    let sources = claims.get(SOURCES).ok_or("oidc: no claim sources")?;
    let mut sources: HashMap<String, Source> =
        read(sources).map_err(|why| format!("oidc: could not parse claim sources: {why}"))?;
    let Some(name) = names.get(claim) else { return Ok(Expanded::No) };
    let missing = || format!("id token _claim_names contained a source {name} missing in _claims_sources");
    let source = sources.remove(name).ok_or_else(missing)?;
    if source.endpoint.is_empty() {
        return Ok(Expanded::No);
    }
    let value = resolve(provider, claim, &source, now).await?;
    claims.insert(claim, value);
    Ok(Expanded::Yes)
}

/// The value of a claim that another issuer has signed.
async fn resolve(provider: &Provider, claim: &str, source: &Source, now: i64) -> Result<Value, String> {
    let Source { endpoint, access_token } = source;
    let failed = |why: String| format!("while getting distributed claim {}: {why}", quote(claim));
    let bearer = (!access_token.is_empty()).then_some(&**access_token);
    let body = provider.get_as(endpoint, bearer).await.map_err(failed)?;
    let token = String::from_utf8_lossy(&body);
    let issuer = claimed_issuer(&token).ok_or_else(|| {
        let claim = quote(claim);
        format!(
            "getting untrusted issuer from endpoint {endpoint} failed for claim {claim}: oidc: malformed jwt"
        )
    })?;
    let unknown = |why: String| format!("verifying untrusted issuer {issuer} failed: {why}");
    let source = provider.source(&issuer).await.map_err(unknown)?;
    let Vouched { mut claims, .. } = vouched(&source, &token, now)
        .await
        .map_err(|why| format!("verify distributed claim token: {why}"))?;
    claims.shift_remove(claim).ok_or_else(|| {
        let endpoint = quote(endpoint);
        format!("jwt returned by distributed claim endpoint {endpoint} did not contain claim: {claim}")
    })
}

fn read<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, String> {
    serde_json::from_str(&value.to_string()).map_err(|error| error.to_string())
}
