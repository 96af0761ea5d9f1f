//! PATCH: a change computed from the current object, recomputed when somebody else was faster.

use serde_json::Value;

use super::error::Error;
use super::modify::Modified;
use super::options::write::{FieldValidation, PatchOptions};
use super::update::{Change, Part, UidRule, check_place, next_version};
use super::{Api, ObjectMap, Target};
use crate::gotext;
use crate::patch::{Decoding, PatchKind, json, merge, strategic};
use crate::schema::types::Types;
use crate::user::User;

impl Api {
    /// Applies a JSON patch, a merge patch or a strategic merge patch.
    pub async fn patch(
        &self,
        target: Target<'_>,
        part: Part,
        kind: PatchKind,
        body: &[u8],
        options: &PatchOptions,
        user: &User,
    ) -> Result<Modified, Error> {
        let patch = Patch::parse(kind, body, options.write.field_validation)?;
        self.modify(target, options.write.dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let mut new = patched(target, &patch, &current.object)?;
            check_place(target, &mut new)?;
            let manager = Some(options.write.manager());
            next_version(target, Change { part, uid: UidRule::Immutable, user, manager }, new, current)
        })
        .await
    }
}

/// A patch whose body has been read once.
pub(super) struct Patch {
    kind: PatchKind,
    body: Value,
    decoding: Decoding,
}

impl Patch {
    pub(super) fn parse(kind: PatchKind, body: &[u8], validation: FieldValidation) -> Result<Self, Error> {
        // Go's decoder puts U+FFFD where bytes are not UTF-8.
        let body: Value = serde_json::from_str(&String::from_utf8_lossy(body))
            .map_err(|_| Error::bad_request("invalid JSON patch"))?;
        if kind == PatchKind::Json {
            json::operations(&body)?;
        }
        let decoding = match validation {
            FieldValidation::Ignore => Decoding::Unchecked,
            FieldValidation::Warn | FieldValidation::Strict => Decoding::Checked,
        };
        Ok(Self { kind, body, decoding })
    }

    /// `object` is of this kind, which may be a subresource's.
    pub(super) fn apply(&self, object: ObjectMap, api_version: &str, kind: &str) -> Result<Value, Error> {
        Ok(match self.kind {
            PatchKind::Json => json::apply(Value::Object(object), &self.body)?,
            PatchKind::Merge => merge::apply(Value::Object(object), self.body.clone(), self.decoding)?,
            PatchKind::StrategicMerge => {
                Value::Object(strategic_merge(object, &self.body, api_version, kind)?)
            }
            // Apply is a verb of its own.
            PatchKind::Apply => return Err(Error::Unprocessable),
        })
    }
}

fn strategic_merge(
    object: ObjectMap,
    patch: &Value,
    api_version: &str,
    kind: &str,
) -> Result<ObjectMap, Error> {
    let types = Types::built_in();
    // The router refuses the format for kinds that have no type.
    let message = types.kind(api_version, kind).ok_or(Error::Unprocessable)?;
    let claims = ["kind", "apiVersion"].map(|name| (name, object.get(name).cloned()));
    let mut merged = strategic::apply(object, patch, types, message)?;
    // What the patch says of the kind is ignored.
    for (name, claim) in claims {
        merged.extend(claim.map(|claim| (name.to_owned(), claim)));
    }
    Ok(merged)
}

/// The patched object, if it still is an object of the kind.
fn patched(target: Target<'_>, patch: &Patch, current: &ObjectMap) -> Result<ObjectMap, Error> {
    let definition = &target.resource.definition;
    let result = patch.apply(current.clone(), &definition.api_version(), &definition.kind)?;
    let shown = match patch.kind {
        PatchKind::StrategicMerge => gotext::display(&patch.body),
        _ => gotext::json(&result),
    };
    let refuse = |why: &str| Error::undecodable_patch(&shown, why);
    let Some(object) = result.as_object() else {
        let kind = gotext::json_kind(&result);
        return Err(refuse(&format!(
            "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )));
    };
    for field in ["kind", "apiVersion"] {
        if object.get(field) != current.get(field) {
            let text = object.get(field).and_then(Value::as_str).unwrap_or_default();
            let kind = &definition.kind;
            return Err(refuse(&format!(
                "{field} {} does not match the {kind} being patched",
                gotext::quote(text)
            )));
        }
    }
    let object = object.clone();
    target.resource.check_types(&object).map_err(|why| refuse(&why))?;
    Ok(object)
}
