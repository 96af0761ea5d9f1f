//! The kind and the apiVersion that a body claims, and what is said of those that do not fit.

use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::gotext;
use crate::schema::names::internal_package;
use crate::schema::types::Types;
use crate::tree::Value;

/// The name that upstream's schemes of kinds go by: where it calls their constructor.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Groups whose kinds are in a scheme of their own, which knows no others.
const APART: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Refuses an object that is not what the URL names; both are pairs of kind and apiVersion.
pub(super) fn check_claims(expected: (&str, &str), claimed: (&str, &str)) -> Result<(), Error> {
    if claimed == expected {
        return Ok(());
    }
    let (group, claimed_group) = (group(expected.1), group(claimed.1));
    let together =
        group == claimed_group || ![group, claimed_group].iter().any(|group| APART.contains(group));
    let known = together && Types::built_in().kind(claimed.1, claimed.0).is_some();
    if claimed.0 == expected.0 && group == claimed_group && (known || is_old(claimed.1)) {
        return Err(Error::BadRequest(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            claimed.1, expected.1
        )));
    }
    let why = if known {
        let (version, package) = (version(claimed.1), internal_package(group));
        format!("converting ({version}.{}) to ({package}.{}): unknown conversion", claimed.0, expected.0)
    } else {
        let [kind, version, scheme] = [claimed.0, claimed.1, SCHEME].map(gotext::quote);
        format!("no kind {kind} is registered for version {version} in scheme {scheme}")
    };
    Err(mismatch(claimed, expected.0, &why))
}

/// Whether upstream may know a version that is not served: those before the first stable one stay in its scheme.
fn is_old(api_version: &str) -> bool {
    ["alpha", "beta"].iter().any(|stage| version(api_version).contains(stage))
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Refuses what is no group and version.
pub(super) fn well_formed(api_version: &str) -> Result<(), String> {
    match api_version.matches('/').count() {
        0 | 1 => Ok(()),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

pub(super) fn mismatch((kind, api_version): (&str, &str), expected: &str, why: &str) -> Error {
    let version = gotext::quote(version(api_version));
    Error::BadRequest(format!("{kind} in version {version} cannot be handled as a {expected}: {why}"))
}

/// What the body says in `field`, after filling it in.
pub(super) fn claim(object: &mut ObjectMap, field: &str, default: &str) -> Result<String, String> {
    match object.get(field) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => return Ok(text.to_string()),
        Some(other) => {
            let found = gotext::json_kind(other);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field \
                 .{field} of type string"
            ));
        }
    }
    object.insert(field, default.into());
    Ok(default.to_owned())
}
