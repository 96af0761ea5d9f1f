//! The kind and apiVersion that an object claims to have, and the errors if they do not fit.

use crate::api::ObjectMap;
use crate::gotext;
use crate::schema::kind::Kind;
use crate::schema::names::{Gvk, internal_package};
use crate::tree::{Text, Value};

/// The name of upstream's schemes in error messages: the place where their constructor is called.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Groups with a scheme of their own, which knows no other groups.
const APART: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// What is wrong with a claim.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The kind is right, but the version is not the URL's.
    Version(String),
    /// The kind is another one, or unknown.
    Kind(String),
}

impl Misfit {
    pub fn into_text(self) -> String {
        match self {
            Misfit::Version(text) | Misfit::Kind(text) => text,
        }
    }
}

/// Refuses an object of another kind or version than the URL names.
pub fn check(expected: &Kind, claimed: &Gvk) -> Result<(), Misfit> {
    let wanted = &expected.gvk;
    if claimed == wanted {
        return Ok(());
    }
    let (group, claimed_group) = (wanted.group(), claimed.group());
    let together =
        group == claimed_group || ![group, claimed_group].iter().any(|group| APART.contains(&group.as_str()));
    let known = together && expected.sibling(claimed).is_some();
    if claimed.kind == wanted.kind && group == claimed_group && (known || is_old(claimed)) {
        return Err(Misfit::Version(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            claimed.group_version, wanted.group_version
        )));
    }
    let why = if known {
        let (version, package) = (claimed.version(), internal_package(group));
        format!("converting ({version}.{}) to ({package}.{}): unknown conversion", claimed.kind, wanted.kind)
    } else {
        let [kind, version, scheme] = [&claimed.kind, claimed.api_version(), SCHEME].map(gotext::quote);
        format!("no kind {kind} is registered for version {version} in scheme {scheme}")
    };
    Err(Misfit::Kind(why))
}

/// Whether upstream may know this version though it is not served: prereleases stay in its scheme.
fn is_old(claimed: &Gvk) -> bool {
    ["alpha", "beta"].iter().any(|stage| claimed.version().contains(stage))
}

/// The error for a value that is not an object and therefore claims nothing.
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

/// Reads the object's kind and apiVersion; missing ones are filled in.
pub fn claim(object: &mut ObjectMap, expected: &Gvk) -> Result<Gvk, String> {
    if expected.is_claimed_by(object) {
        return Ok(expected.clone());
    }
    let api_version = claimed(object, "apiVersion", expected.api_version())?;
    let kind = claimed(object, "kind", &expected.kind)?;
    Gvk::parse(&api_version, &kind).map_err(|error| error.to_string())
}

fn claimed(object: &mut ObjectMap, field: &str, default: &Text) -> Result<Text, String> {
    match object.get(field) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(other) => {
            let found = gotext::json_kind(other);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field \
                 .{field} of type string"
            ));
        }
    }
    object.insert(field, Value::String(default.clone()));
    Ok(default.clone())
}
