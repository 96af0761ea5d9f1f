//! PATCH: a change computed from the current object, recomputed when somebody else was faster.

use serde_json::Value;

use super::error::Error;
use super::modify::Modified;
use super::options::write::{FieldValidation, PatchOptions};
use super::update::{Change, Part, UidRule, check_place, next_version};
use super::{Api, ObjectMap, Target};
use crate::gotext;
use crate::patch::{Decoding, PatchKind, json, merge};
use crate::user::User;

impl Api {
    /// Applies a JSON patch or a merge patch.
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
            next_version(target, Change { part, uid: UidRule::Immutable, user }, new, current)
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

    pub(super) fn apply(&self, object: ObjectMap) -> Result<Value, Error> {
        let object = Value::Object(object);
        Ok(match self.kind {
            PatchKind::Json => json::apply(object, &self.body)?,
            PatchKind::Merge => merge::apply(object, self.body.clone(), self.decoding)?,
            // The route refuses these with 415 until they are built.
            PatchKind::StrategicMerge | PatchKind::Apply => return Err(Error::Unprocessable),
        })
    }
}

/// The patched object, if it still is an object of the kind.
fn patched(target: Target<'_>, patch: &Patch, current: &ObjectMap) -> Result<ObjectMap, Error> {
    let result = patch.apply(current.clone())?;
    let refuse = |why: &str| Error::undecodable_patch(&gotext::json(&result), why);
    let Some(object) = result.as_object() else {
        let kind = gotext::json_kind(&result);
        return Err(refuse(&format!(
            "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )));
    };
    for field in ["kind", "apiVersion"] {
        if object.get(field) != current.get(field) {
            let text = object.get(field).and_then(Value::as_str).unwrap_or_default();
            let kind = &target.resource.definition.kind;
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
