//! The kind and the apiVersion that an object claims, and what is said of those that do not fit.

use crate::api::ObjectMap;
use crate::gotext;
use crate::schema::kind::Kind;
use crate::schema::names::{Gvk, internal_package};
use crate::tree::{Text, Value};

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

/// Refuses an object that is not what the URL names.
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

/// Whether upstream may know a version that is not served: those before the first stable one stay in its scheme.
fn is_old(claimed: &Gvk) -> bool {
    ["alpha", "beta"].iter().any(|stage| claimed.version().contains(stage))
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

/// What an object says it is. A missing kind or apiVersion is filled in.
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
