//! The answer of a hook as client-go decodes it, in the words of Go's `encoding/json` for what is no review.

use super::{KIND, ReviewVersion};
use crate::gotext;
use crate::kinds::prelude::*;
use crate::schema::names::Gvk;

/// Reads an answer to a review of this version.
pub fn read(version: ReviewVersion, body: &[u8]) -> Result<ObjectMap, String> {
    let answer = match serde_json::from_slice(body) {
        Ok(Value::Object(answer)) => answer,
        Ok(Value::Null) => ObjectMap::new(),
        Ok(other) => return Err(untyped(gotext::json_kind(&other))),
        Err(error) if error.is_eof() => {
            return Err(
                "couldn't get version/kind; json parse error: unexpected end of JSON input".to_owned()
            );
        }
        // Upstream reads what is no JSON as YAML, and plain words are a text in it.
        Err(_) if !body.trim_ascii_start().starts_with(b"{") => return Err(untyped("string")),
        Err(error) => return Err(format!("couldn't get version/kind; json parse error: {error}")),
    };
    check_kind(version, &answer)?;
    check_types(version, &answer)?;
    Ok(answer)
}

fn untyped(found: &str) -> String {
    let fields =
        r#"APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"""#;
    let kinds = format!("struct {{ {fields} }}");
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {kinds}"
    )
}

/// An answer without a kind is taken for the review that is expected.
fn check_kind(version: ReviewVersion, answer: &ObjectMap) -> Result<(), String> {
    let found = Gvk::of(answer).map_err(|error| error.to_string())?;
    if found.kind.is_empty() || found == version.gvk() {
        return Ok(());
    }
    let other = match version {
        ReviewVersion::V1 => ReviewVersion::V1Beta1,
        ReviewVersion::V1Beta1 => ReviewVersion::V1,
    };
    if found == other.gvk() {
        let (from, to) = (other.gvk(), version.gvk());
        return Err(format!(
            "converting ({}.{KIND}) to ({}.{KIND}): unknown conversion",
            from.version(),
            to.version()
        ));
    }
    let (kind, api_version) = (gotext::quote(&found.kind), gotext::quote(found.api_version()));
    Err(format!(
        "no kind {kind} is registered for version {api_version} in scheme \"pkg/runtime/scheme.go:111\""
    ))
}

fn check_types(version: ReviewVersion, answer: &ObjectMap) -> Result<(), String> {
    let wrong = |found: &Value, field: &str, kind: &str| {
        let found = gotext::json_kind(found);
        Err(format!("json: cannot unmarshal {found} into Go struct field {field} of type {kind}"))
    };
    let response = match answer.get("response") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(response)) => response,
        Some(other) => {
            let kind = format!("{}.ConversionResponse", version.gvk().version());
            return wrong(other, "ConversionReview.response", &kind);
        }
    };
    match (response.get("uid"), response.get("convertedObjects")) {
        (Some(uid), _) if !uid.is_string() && !uid.is_null() => {
            wrong(uid, "ConversionResponse.response.uid", "types.UID")
        }
        (_, Some(objects)) if !objects.is_array() && !objects.is_null() => {
            wrong(objects, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension")
        }
        _ => Ok(()),
    }
}

/// One of the converted objects.
pub fn object(converted: Value) -> Result<ObjectMap, String> {
    match converted {
        Value::Object(object) => match Gvk::of(&object) {
            Ok(gvk) if !gvk.kind.is_empty() => Ok(object),
            _ => Err(format!("Object 'Kind' is missing in '{}'", gotext::json(&Value::Object(object)))),
        },
        Value::Null => Err("unexpected end of JSON input".to_owned()),
        other => {
            let found = gotext::json_kind(&other);
            Err(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
        }
    }
}
