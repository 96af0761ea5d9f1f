//! The kind and apiVersion that an object claims to have, and the errors if they do not fit.

use crate::causes::Cause;
use crate::error::Error;
use crate::gotext;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupKind, Gvk, internal_package};
use crate::tree::{Text, Value};
use crate::{ObjectMap, meta, metadata};

/// The name of upstream's schemes in error messages: the place where their constructor is called.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Groups with a scheme of their own, which knows no other groups.
const APART: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// How the error about a custom object without a kind begins.
pub const NO_KIND: &str = "Object 'Kind' is missing in ";

/// The mismatch between the kind and version that an object claims and those of the URL.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The kind is right, but the version is not the URL's.
    Version(String),
    /// The kind is another one.
    Kind(String),
    /// The kind is unknown.
    Unknown(String),
}

impl Misfit {
    pub fn into_text(self) -> String {
        match self {
            Misfit::Version(text) | Misfit::Kind(text) | Misfit::Unknown(text) => text,
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
        return Err(Misfit::Version(other_version(wanted, claimed)));
    }
    if !known {
        return Err(Misfit::Unknown(unknown(claimed)));
    }
    let (version, package) = (claimed.version(), internal_package(group));
    let why =
        format!("converting ({version}.{}) to ({package}.{}): unknown conversion", claimed.kind, wanted.kind);
    Err(Misfit::Kind(why))
}

/// The error of upstream about a kind that it does not know.
pub fn unknown(claimed: &Gvk) -> String {
    let [kind, version, scheme] = [&claimed.kind, claimed.api_version(), SCHEME].map(gotext::quote);
    format!("no kind {kind} is registered for version {version} in scheme {scheme}")
}

pub fn other_version(expected: &Gvk, claimed: &Gvk) -> String {
    let [claimed, expected] = [claimed, expected].map(|gvk| &gvk.group_version);
    format!("the API version in the data ({claimed}) does not match the expected API version ({expected})")
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

/// The kind and apiVersion of a custom object, of which nothing is filled in. `text` is the whole body.
pub fn of_custom(object: &ObjectMap, text: impl FnOnce() -> String) -> Result<Gvk, String> {
    let [kind, api_version] = ["kind", "apiVersion"].map(|field| found(object, field));
    let Some(kind) = kind? else { return Err(format!("{NO_KIND}'{}'", text())) };
    let api_version = api_version?.map_or("", Text::as_str);
    Gvk::parse(api_version, kind).map_err(|error| error.to_string())
}

/// Refuses a custom object of another kind or version than the URL names, as validation does upstream.
pub fn check_custom(expected: &Gvk, claimed: &Gvk, object: &ObjectMap) -> Result<(), Error> {
    let mut causes = Vec::new();
    if claimed.kind != expected.kind {
        causes.push(Cause::invalid(
            "kind",
            gotext::quote(&claimed.kind),
            &format!("must be {}", expected.kind),
        ));
    }
    if claimed.group_version != expected.group_version {
        let why = format!("must be {}", expected.group_version);
        causes.push(Cause::invalid("apiVersion", gotext::quote(claimed.api_version()), &why));
    }
    if causes.is_empty() {
        return Ok(());
    }
    let kind = GroupKind::new(claimed.group().as_str(), claimed.kind.as_str());
    let name = metadata(object).map_or("", |metadata| meta::text(metadata, "name")).to_owned();
    Err(Error::Invalid { kind, name, causes })
}

/// Reads the object's kind and apiVersion; missing ones are filled in. Go's decoder looks for both without regard to case,
/// and the last one counts.
pub fn claim(object: &mut ObjectMap, expected: &Gvk) -> Result<Gvk, String> {
    let claims =
        object.iter().filter(|(key, _)| is_spelled(key, "kind") || is_spelled(key, "apiVersion")).count();
    if claims == 2 && expected.is_claimed_by(object) {
        return Ok(expected.clone());
    }
    let api_version = claimed(object, "apiVersion", expected.api_version())?;
    let kind = claimed(object, "kind", &expected.kind)?;
    let claimed = Gvk::parse(&api_version, &kind).map_err(|error| error.to_string())?;
    if *claimed.api_version() != api_version {
        object.insert("apiVersion", Value::String(claimed.api_version().clone()));
    }
    Ok(claimed)
}

fn claimed(object: &mut ObjectMap, field: &str, default: &Text) -> Result<Text, String> {
    let mut last = None;
    for (_, value) in object.iter().filter(|(key, _)| is_spelled(key, field)) {
        last = if value.is_null() { last } else { text(value, field)? };
    }
    let claimed = last.unwrap_or(default).clone();
    object.insert(field, Value::String(claimed.clone()));
    Ok(claimed)
}

fn is_spelled(key: &str, field: &str) -> bool {
    key.eq_ignore_ascii_case(field)
}

fn found<'o>(object: &'o ObjectMap, field: &str) -> Result<Option<&'o Text>, String> {
    object.get(field).map_or(Ok(None), |value| text(value, field))
}

fn text<'o>(value: &'o Value, field: &str) -> Result<Option<&'o Text>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        other => {
            let found = gotext::json_kind(other);
            Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field \
                 .{field} of type string"
            ))
        }
    }
}
