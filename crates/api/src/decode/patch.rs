//! Computes the object that results from a patch of the current one. Each patch format has its own error texts
//! upstream.

use super::breadth;
use super::claims::{self, Misfit};
use crate::ObjectMap;
use crate::codec::managed;
use crate::error::Error;
use crate::gotext;
use crate::json::{self, Node, Parsed};
use crate::options::strictness::{Strictness, conform};
use crate::patch::{Decoding, PatchKind, json as json_patch, merge, strategic};
use crate::schema::kind::Kind;
use crate::schema::types::{self, Fit};
use crate::tree::{Text, Value};

/// Opening `managedFields` is expensive, so it is done only for the few patches that touch them.
const MANAGERS: &[&str] = &["metadata", "managedFields"];

/// A patch with its parsed body.
pub(crate) struct Patch {
    kind: PatchKind,
    body: Value,
    decoding: Decoding,
    about_managers: bool,
    /// Whether a strategic merge contains floating-point numbers that the result may have to hold as integers.
    has_floats: bool,
    /// The problems that strict decoding has found in the body.
    problems: Vec<String>,
}

impl Patch {
    pub(crate) fn parse(kind: PatchKind, body: &[u8], strictness: Strictness<'_>) -> Result<Self, Error> {
        let malformed = |_| Error::bad_request("invalid JSON patch");
        let Parsed { value, repeated } = json::parse(body).map_err(malformed)?;
        breadth::check_patch(&value, body.len())?;
        let asked = strictness.is_asked();
        let decoding = if asked { Decoding::Checked } else { Decoding::Unchecked };
        let foreign = kind == PatchKind::Json
            && json_patch::operations(&value, decoding)?.iter().any(has_foreign_members);
        let problems = if asked && (repeated || foreign) {
            body_problems(kind, &Node::parse(body).map_err(malformed)?)
        } else {
            Vec::new()
        };
        let about_managers = match kind {
            PatchKind::Json => json_patch::concerns(&value, MANAGERS),
            PatchKind::Merge => merge::concerns(&value, MANAGERS),
            PatchKind::StrategicMerge => strategic::concerns(&value, MANAGERS),
            PatchKind::Apply => true,
        };
        let has_floats = kind == PatchKind::StrategicMerge && value.has_floats();
        Ok(Self { kind, body: value, decoding, about_managers, has_floats, problems })
    }

    /// Computes the patched object, closed like the current one, and checks that it is still an object of `kind`, which
    /// may be a subresource's.
    pub(crate) fn decode(
        &self,
        current: &ObjectMap,
        kind: &Kind,
        strictness: Strictness<'_>,
    ) -> Result<ObjectMap, Error> {
        let document = match self.about_managers {
            true => managed::opened(current),
            false => current.clone(),
        };
        let result = self.apply(document, kind)?;
        // The code below consumes the result; an error message that shows it computes it again.
        let again = || self.apply(managed::opened(current), kind);
        let refuse = |why: &str| match self.shown(again, current, kind) {
            Ok(shown) => Error::undecodable_patch(&shown, why),
            Err(error) => error,
        };
        let mut object = match result {
            Value::Object(object) => object,
            other => return Err(refuse(&claims::no_claims(&other))),
        };
        match kind.go() {
            Some(_) => claim(&mut object, kind).map_err(|why| refuse(&why))?,
            None => {
                let text = || {
                    let mut whole = Value::Object(managed::opened(&object));
                    whole.sort_all();
                    gotext::json(&whole)
                };
                let claimed = claims::of_custom(&object, text).map_err(|why| refuse(&why))?;
                claims::check_custom(&kind.gvk, &claimed, &object)?;
            }
        }
        let fit = match self.conform(kind, &mut object) {
            Ok(fit) => fit,
            Err(why) => {
                let first = self.first_misfit(again()?, current, kind);
                return Err(refuse(&first.unwrap_or(why)));
            }
        };
        let mut problems = self.problems.clone();
        if fit.unknown && strictness.is_asked() {
            problems.extend(self.result_problems(current, &again()?, kind));
        }
        strictness.judge(&problems).map_err(|why| refuse(&why))?;
        if self.about_managers {
            managed::close(&mut object);
        }
        Ok(object)
    }

    /// Makes the result conform to its Go type. Upstream does so in two ways.
    fn conform(&self, kind: &Kind, object: &mut ObjectMap) -> Result<Fit, String> {
        if self.has_floats {
            kind.convert(object)?;
        }
        match conform(kind, object) {
            Err(_) if self.kind == PatchKind::StrategicMerge => {
                kind.convert(object)?;
                conform(kind, object)
            }
            conformed => conformed,
        }
    }

    /// The first of several mismatches, in the order in which upstream reads the result's text.
    fn first_misfit(&self, result: Value, current: &ObjectMap, kind: &Kind) -> Option<String> {
        match self.printed(result, current, kind) {
            Value::Object(mut object) if self.kind != PatchKind::StrategicMerge => {
                conform(kind, &mut object).err()
            }
            _ => None,
        }
    }

    fn apply(&self, object: ObjectMap, kind: &Kind) -> Result<Value, Error> {
        Ok(match self.kind {
            PatchKind::Json => json_patch::apply(Value::Object(object), &self.body)?,
            PatchKind::Merge => merge::apply(Value::Object(object), self.body.clone(), self.decoding)?,
            PatchKind::StrategicMerge => Value::Object(strategic_merge(object, &self.body, kind)?),
            // An apply does not come here: it is a verb of its own.
            PatchKind::Apply => return Err(Error::Unprocessable),
        })
    }

    /// The text that an error message shows: the patch of a strategic merge, otherwise the result.
    fn shown(
        &self,
        result: impl Fn() -> Result<Value, Error>,
        current: &ObjectMap,
        kind: &Kind,
    ) -> Result<String, Error> {
        match self.kind {
            PatchKind::StrategicMerge => Ok(gotext::display(&self.body)),
            _ => result().map(|result| gotext::json(&self.printed(result, current, kind))),
        }
    }

    /// The result with its members in the order in which upstream's library prints them; custom objects are maps to it.
    fn printed(&self, mut result: Value, current: &ObjectMap, kind: &Kind) -> Value {
        match self.kind {
            _ if kind.go().is_none() => result.sort_all(),
            PatchKind::Json => json_patch::sort_touched(&mut result, &self.body),
            PatchKind::Merge if self.body.is_object() => {
                let before = Value::Object(managed::opened(current));
                merge::sort_touched(&mut result, &self.body, Some(&before));
            }
            _ => result.sort_all(),
        }
        result
    }

    fn result_problems(&self, current: &ObjectMap, result: &Value, kind: &Kind) -> Vec<String> {
        let node = match self.kind {
            PatchKind::Json => Node::patched(result, &Value::Object(managed::opened(current))),
            _ => Node::sorted(result),
        };
        match self.kind {
            PatchKind::StrategicMerge => kind.converter_problems(&node),
            _ => kind.problems(&node),
        }
    }
}

/// Checks that the patched object has the same kind and version as before; missing ones are filled in.
fn claim(object: &mut ObjectMap, kind: &Kind) -> Result<(), String> {
    let claimed = claims::claim(object, &kind.gvk)?;
    claims::check(kind, &claimed).map_err(Misfit::into_text)
}

/// The fields of upstream's struct for an operation.
const OPERATION_MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

fn has_foreign_members(operation: &Value) -> bool {
    let known = |name: &Text| OPERATION_MEMBERS.contains(&name.as_str());
    operation.as_object().is_some_and(|members| !members.keys().all(known))
}

fn body_problems(kind: PatchKind, body: &Node) -> Vec<String> {
    match kind {
        PatchKind::Json => {
            let problems = types::list_problems(&OPERATION_MEMBERS, body);
            problems.into_iter().map(|problem| format!("json patch {problem}")).collect()
        }
        _ => types::duplicates(body),
    }
}

fn strategic_merge(object: ObjectMap, patch: &Value, kind: &Kind) -> Result<ObjectMap, Error> {
    // The router has refused this format for kinds without a Go type.
    let shape = kind.go().ok_or(Error::Unprocessable)?;
    let claims = ["kind", "apiVersion"].map(|name| (name, object.get(name).cloned()));
    let mut merged = strategic::apply(object, patch, shape)?;
    // A kind and apiVersion in the patch are ignored.
    for (name, claim) in claims {
        merged.extend(claim.map(|claim| (name.to_owned(), claim)));
    }
    Ok(merged)
}

#[cfg(test)]
mod tests;
