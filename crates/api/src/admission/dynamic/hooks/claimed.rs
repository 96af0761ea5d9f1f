//! The kind and version of an object after a webhook's patch, which may change both.
//!
//! Upstream reads the patched text as it reads a body: a built-in object that no longer tells its kind or version keeps
//! its own; an object that names another version is read in that version and converted back; another kind is refused.

use std::sync::Arc;

use crate::admission::Attempt;
use crate::admission::dynamic::matching::{Facts, Matched, kind_of};
use crate::decode::claims::{self, Misfit};
use crate::error::Error;
use crate::gotext;
use crate::resource::Resource;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value};

/// The claims of an object: the members that tell its kind and version.
const CLAIMS: [&str; 2] = ["kind", "apiVersion"];

/// The claims that an object lacks after a webhook's patch. Upstream goes on with what it has decoded, so the webhooks
/// that follow see the object without them, until one of them wants another version.
#[derive(Default)]
pub struct Unsaid {
    version: Option<Gvk>,
    members: Vec<&'static str>,
}

impl Unsaid {
    /// The claims that this object, of this version, lacks or leaves empty.
    pub fn of(version: &Kind, patched: &Map) -> Self {
        let is_unsaid = |member: &&str| match patched.get(member) {
            None | Some(Value::Null) => true,
            Some(claim) => claim.as_str() == Some(""),
        };
        Self { version: Some(version.gvk.clone()), members: CLAIMS.into_iter().filter(is_unsaid).collect() }
    }

    /// Notes that a webhook wants to see the object in this version.
    pub fn is_wanted_in(&mut self, version: &Kind) {
        if self.version.as_ref() != Some(&version.gvk) {
            *self = Self::default();
        }
    }

    pub fn is_like(&self, other: &Self) -> bool {
        self.members == other.members
    }

    pub fn take_from(&self, object: &mut Map) {
        for member in &self.members {
            object.shift_remove(member);
        }
    }
}

/// The kind of a patched object, and the resource's version of that kind, if the request names another one. Fills in kind
/// and version where the object has none.
pub fn claimed(
    attempt: &Attempt<'_>,
    version: &Matched,
    patched: &mut Map,
) -> Result<(Kind, Option<Arc<Resource>>), Error> {
    let expected = &version.kind;
    let claimed = match expected.go() {
        Some(_) => claims::claim(patched, &expected.gvk),
        None => claims::of_custom(patched, || gotext::json(&sorted(Value::Object(patched.clone())))),
    };
    let claimed = claimed.map_err(Error::Internal)?;
    if claimed == expected.gvk {
        return Ok((expected.clone(), version.other.clone()));
    }
    let facts = Facts::of(attempt);
    let own = kind_of(facts.resource, facts.subresource);
    if claimed == own.gvk {
        return Ok((own, None));
    }
    for other in facts.equivalents(attempt.cluster) {
        let kind = kind_of(&other, facts.subresource);
        if kind.gvk == claimed {
            return Ok((kind, Some(other)));
        }
    }
    match expected.go() {
        Some(_) => Err(refused(expected, &claimed)),
        None => Err(refused_custom(attempt, &own.gvk, &claimed, patched)),
    }
}

fn refused(expected: &Kind, claimed: &Gvk) -> Error {
    match claims::check(expected, claimed) {
        // Upstream notices when it converts the object back.
        Err(Misfit::Kind(why)) => Error::Unclassified(why),
        Err(Misfit::Unknown(why)) => Error::Internal(why),
        Ok(()) | Err(Misfit::Version(_)) => Error::Internal(claims::unknown(claimed)),
    }
}

fn refused_custom(attempt: &Attempt<'_>, own: &Gvk, claimed: &Gvk, patched: &Map) -> Error {
    let version = &claimed.group_version;
    if claimed.group() != own.group() {
        let wanted = gotext::quote(own.api_version());
        return Error::Unclassified(format!(
            "{claimed} is unstructured and is not suitable for converting to {wanted}"
        ));
    }
    let versions = attempt.cluster.catalog.served();
    let mut versions = versions.versions_of_row(attempt.target.resource);
    if !versions.any(|other| *other.definition.group_version() == *version) {
        return Error::Unclassified(format!(
            "request to convert CR from an invalid group/version: {version}"
        ));
    }
    let converted = Gvk { group_version: own.group_version.clone(), kind: claimed.kind.clone() };
    let fits = claims::check_custom(own, &converted, patched);
    fits.err().unwrap_or_else(|| Error::Internal(format!("{claimed} is not {own}")))
}

/// The value with the members of every object sorted, as Go prints maps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Map = members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_keys();
            Value::Object(members)
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
