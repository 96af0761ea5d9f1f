//! The kind and the apiVersion that an object claims, and what is said of those that do not fit.

use crate::api::ObjectMap;
use crate::gotext;
use crate::schema::names::internal_package;
use crate::schema::types::Types;
use crate::tree::Value;

/// The name that upstream's schemes of kinds go by: where it calls their constructor.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Groups whose kinds are in a scheme of their own, which knows no others.
const APART: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// What is wrong with a claim.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The kind is right, in a version that is not the one of the URL.
    Version(String),
    /// It is another kind, or none that anybody knows.
    Kind(String),
}

impl Misfit {
    pub fn into_text(self) -> String {
        match self {
            Misfit::Version(text) | Misfit::Kind(text) => text,
        }
    }
}

/// Refuses an object that is not what the URL names; both are pairs of kind and apiVersion.
pub fn check(expected: (&str, &str), claimed: (&str, &str)) -> Result<(), Misfit> {
    if claimed == expected {
        return Ok(());
    }
    let (group, claimed_group) = (group(expected.1), group(claimed.1));
    let together =
        group == claimed_group || ![group, claimed_group].iter().any(|group| APART.contains(group));
    let known = together && Types::built_in().kind(claimed.1, claimed.0).is_some();
    if claimed.0 == expected.0 && group == claimed_group && (known || is_old(claimed.1)) {
        return Err(Misfit::Version(format!(
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
    Err(Misfit::Kind(why))
}

/// Whether upstream may know a version that is not served: those before the first stable one stay in its scheme.
fn is_old(api_version: &str) -> bool {
    ["alpha", "beta"].iter().any(|stage| version(api_version).contains(stage))
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The version without its group.
pub fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Refuses what is no group and version.
pub fn well_formed(api_version: &str) -> Result<(), String> {
    match api_version.matches('/').count() {
        0 | 1 => Ok(()),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

/// What is said of a value that can claim nothing, as it is no object.
pub fn no_claims(value: &Value) -> String {
    let found = gotext::json_kind(value);
    let members = [("APIVersion", "apiVersion"), ("Kind", "kind")].map(|(name, json)| {
        let tag = gotext::quote(&format!("json:\"{json},omitempty\""));
        format!("{name} string {tag}")
    });
    let members = members.join("; ");
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ \
         {members} }}"
    )
}

/// What the object says in `field`, after filling it in.
pub fn claim(object: &mut ObjectMap, field: &str, default: &str) -> Result<String, String> {
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
