//! Bodies on their way in: size, media type, and the kind they claim to be.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::{MediaType, body_type};
use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::gotext;
use crate::schema::resource::ResourceDefinition;

/// Bytes of a body that error messages show.
const SUMMARY: usize = 30;

/// Reads a body of at most `limit` bytes.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, Error> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit }),
        Err(error) => Err(Error::BadRequest(format!("the request body could not be read: {error}"))),
    }
}

/// The media type of the body; only JSON is understood so far.
pub fn media_type(headers: &HeaderMap) -> Result<MediaType, Error> {
    body_type(header_text(headers, header::CONTENT_TYPE), &[MediaType::Json])
}

/// A header as text.
pub fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// An object of the kind that the URL names. A missing kind or apiVersion is filled in (spec/wire.md, 2.6).
pub fn object(definition: &ResourceDefinition, body: &[u8]) -> Result<ObjectMap, Error> {
    let (kind, version) = (&*definition.kind, definition.api_version());
    typed_object(kind, &version, body)
}

/// As [`object`], for the kinds of subresources.
pub fn typed_object(kind: &str, api_version: &str, body: &[u8]) -> Result<ObjectMap, Error> {
    let unrecognized = |why: String| {
        Error::BadRequest(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body)
        ))
    };
    let value = parse(body)
        .map_err(|why| unrecognized(format!("couldn't get version/kind; json parse error: {why}")))?;
    let mut object = match value {
        Value::Object(object) => object,
        other => {
            let found = gotext::json_kind(&other);
            return Err(unrecognized(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type \
                 struct {{ APIVersion string; Kind string }}"
            )));
        }
    };
    let claimed_version = claim(&mut object, "apiVersion", api_version).map_err(&unrecognized)?;
    let claimed_kind = claim(&mut object, "kind", kind).map_err(&unrecognized)?;
    if claimed_kind != kind {
        let version = claimed_version.rsplit('/').next().unwrap_or_default();
        return Err(Error::BadRequest(format!(
            "{claimed_kind} in version {} cannot be handled as a {kind}: the kind in the data ({claimed_kind}) does \
             not match the expected kind ({kind})",
            gotext::quote(version)
        )));
    }
    if claimed_version != api_version {
        return Err(Error::BadRequest(format!(
            "the API version in the data ({claimed_version}) does not match the expected API version ({api_version})"
        )));
    }
    Ok(object)
}

/// JSON with the leniency of Go's decoder about bytes that are not UTF-8: they become U+FFFD.
pub fn parse(body: &[u8]) -> Result<Value, String> {
    let parsed = match std::str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(body)),
    };
    parsed.map_err(|error| {
        if body.is_empty() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
    })
}

/// What the body says in `field`, after filling it in.
fn claim(object: &mut ObjectMap, field: &str, default: &str) -> Result<String, String> {
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
    object.insert(field.to_owned(), default.into());
    Ok(default.to_owned())
}

fn summary(body: &[u8]) -> String {
    let start = &body[..body.len().min(SUMMARY)];
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    if body.trim_ascii_start().starts_with(b"{") {
        let more = if body.len() > SUMMARY { " ..." } else { "" };
        return format!("{}{more}", String::from_utf8_lossy(start));
    }
    let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex} ...")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(body: &str) -> Result<ObjectMap, String> {
        typed_object("ConfigMap", "v1", body.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn kind_and_version_are_filled_in() {
        let object = decode("{\"data\":{}}").expect("decodes");
        assert_eq!((&object["kind"], &object["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
    }

    #[test]
    fn bad_bodies_say_why() {
        let cases = [
            (
                "",
                "(must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
            ),
            ("{", "couldn't get version/kind; json parse error: "),
            ("[]", "cannot unmarshal array into Go value"),
            (r#"{"kind":1}"#, "cannot unmarshal number into Go struct field .kind of type string"),
            (r#"{"kind":"Pod"}"#, "Pod in version \"v1\" cannot be handled as a ConfigMap"),
            (
                r#"{"apiVersion":"v2"}"#,
                "the API version in the data (v2) does not match the expected API version (v1)",
            ),
        ];
        for (body, want) in cases {
            let error = decode(body).expect_err(body);
            assert!(error.contains(want), "{body}: {error}");
        }
    }

    #[test]
    fn depth_is_bounded_and_bad_utf8_is_replaced() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert_eq!(parse(b"\"a\xff\"").expect("lenient"), Value::from("a\u{fffd}"));
    }
}
