//! The body of an apply: YAML, and therefore also JSON.

use crate::api::error::Error;
use crate::api::input::options::write::FieldValidation;
use crate::api::input::strictness::{Strictness, yaml_error};
use crate::api::{ObjectMap, meta, metadata};
use crate::codec::yaml;
use crate::gotext;
use crate::json;
use crate::schema::names::Gvk;
use crate::tree::Value;

/// A decoded configuration.
pub struct Config {
    pub object: ObjectMap,
    /// The problem that strict decoding has found. Of a repeated key, the last value is used.
    pub problem: Option<String>,
}

/// Parses a configuration; 400 if the text is malformed.
pub fn parse(body: &[u8]) -> Result<Config, Error> {
    let bad = |why: &str| Error::BadRequest(format!("error decoding patch: {why}"));
    // The JSON parser is faster. YAML is used for texts about which it is stricter: invalid UTF-8 and surrogate pairs.
    let text = std::str::from_utf8(body).ok().filter(|text| json::first_surrogate(text).is_none());
    let json = text.and_then(|text| json::parse_text(text).ok());
    let (value, repeated) = match json {
        Some(mut parsed) if !parsed.repeated => {
            // YAML's numbers lose their spelling: 3.0 is an integer, which it is not in a whole object.
            json::whole_numbers(&mut parsed.value);
            (parsed.value, Vec::new())
        }
        _ => {
            let document = yaml::read(body);
            let document = document.map_err(|why| match is_like_json(body) {
                true => bad(&format!("error converting YAML to JSON: {why}")),
                // Audit records JSON, of which upstream makes what does not begin like it before all else.
                false => Error::BadRequest(format!("error encoding patch: {why}")),
            })?;
            (document.value, document.repeated)
        }
    };
    let problem =
        (!repeated.is_empty()).then(|| format!("error converting YAML to JSON: {}", yaml_error(&repeated)));
    match value {
        Value::Object(object) => Ok(Config { object, problem }),
        Value::Null => Ok(Config { object: ObjectMap::new(), problem }),
        other => {
            let found = gotext::json_kind(&other);
            Err(bad(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

/// Whether upstream takes the text for JSON (`IsJSONBuffer`).
fn is_like_json(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).trim_start().starts_with('{')
}

/// Reports a problem as the client wants: a 400, a warning, or nothing.
pub fn judge(problem: Option<&str>, strictness: Strictness<'_>) -> Result<(), Error> {
    let Some(problem) = problem else { return Ok(()) };
    if strictness.validation == FieldValidation::Strict {
        return Err(Error::BadRequest(format!("error strict decoding patch: {problem}")));
    }
    strictness.warn(problem);
    Ok(())
}

/// Checks that a configuration has the kind and version of the URL, and no managed fields.
pub fn check(config: &ObjectMap, expected: &Gvk) -> Result<(), Error> {
    if !expected.is_claimed_by(config) {
        return Err(Error::BadRequest(format!("invalid object type: {}", claimed(config))));
    }
    let managers = config.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if managers.is_some_and(|managers| !managers.is_null()) {
        return Err(Error::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// The configuration's kind and version as Go prints them.
fn claimed(config: &ObjectMap) -> String {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let slash = if text("apiVersion").contains('/') { "" } else { "/" };
    format!("{slash}{}, Kind={}", text("apiVersion"), text("kind"))
}

/// The 500 of upstream's for a configuration that does not fit the schema.
pub fn unfit(config: &ObjectMap, gvk: &Gvk, why: &str) -> Error {
    let subject = subject(config, gvk);
    Error::Unclassified(format!("failed to create typed patch object ({subject}): {why}"))
}

/// The 500 of upstream's for values that fit the schema, but not the kind's Go type.
pub fn unconverted(config: &ObjectMap, gvk: &Gvk, why: &str) -> Error {
    let subject = subject(config, gvk);
    Error::Unclassified(format!(
        "failed to convert new object ({subject}) to proper version: unable to convert unstructured object to {gvk}: \
         {why}"
    ))
}

/// How errors name a configuration.
fn subject(config: &ObjectMap, gvk: &Gvk) -> String {
    let metadata = metadata(config);
    let text = |field: &str| metadata.map_or("", |metadata| meta::text(metadata, field));
    let (namespace, name) = (text("namespace"), text("name"));
    format!("{namespace}/{name}; {gvk}")
}
