//! Server-side printing: `meta.k8s.io` Tables and partial metadata of objects held as JSON.
//!
//! Reads objects of any shape: a field of the wrong type counts as absent, so nothing here fails on an object.
//! Rows hold every column, also those of priority 1; hiding them is the client's business.

use jiff::Timestamp;

use crate::api::error::Error;
use crate::api::options::watch::INITIAL_EVENTS_END;
use crate::http::response::negotiate::MetaVersion;
use crate::kinds::behavior::columns::{EmptyRows, TablePrinter};
use crate::tree::{Map, Value, json};

/// Whether a Table carries its column definitions; a watch sends them in its first event only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    Shown,
    Omitted,
}

/// The content of a row's `object`: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    /// `None` when the parameter is absent.
    pub fn parse(parameter: Option<&str>) -> Result<Self, Error> {
        match parameter {
            None | Some("" | "Metadata") => Ok(IncludeObject::Metadata),
            Some("Object") => Ok(IncludeObject::Object),
            Some("None") => Ok(IncludeObject::None),
            Some(other) => Err(Error::BadRequest(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The options that the rows of one answer have in common.
#[derive(Clone, Copy, Debug)]
pub struct RowOptions {
    pub version: MetaVersion,
    pub include: IncludeObject,
    /// The time from which ages are reckoned.
    pub now: Timestamp,
}

/// A Table. `metadata` comes from [`list_metadata`] or [`object_metadata`], `rows` from [`row`].
pub fn table(
    version: MetaVersion,
    printer: &TablePrinter,
    columns: Columns,
    metadata: Value,
    rows: Vec<Value>,
) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": version.api_version(),
        "metadata": metadata,
        "columnDefinitions": match columns {
            Columns::Shown => printer.definitions(),
            Columns::Omitted => Value::Null,
        },
        "rows": if rows.is_empty() && printer.empty() == EmptyRows::Null { Value::Null } else { Value::Array(rows) },
    })
}

/// The row of one object; clones no more of it than `include` asks for.
pub fn row(printer: &TablePrinter, object: &Value, options: &RowOptions) -> Value {
    let mut row = Map::new();
    row.insert("cells", Value::Array(printer.cells(object, options.now)));
    if let Some(conditions) = printer.conditions(object) {
        row.insert("conditions", conditions);
    }
    let partial = || partial_object_metadata(options.version, object);
    let included = match options.include {
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => partial(),
        // Clients recognise the end of the initial events by this annotation, so it outlives `None`.
        IncludeObject::None if ends_initial_events(object) => partial(),
        IncludeObject::None => Value::Null,
    };
    row.insert("object", included);
    Value::Object(row)
}

/// The metadata of a Table that answers a LIST.
pub fn list_metadata(resource_version: &str, continue_token: Option<&str>, remaining: Option<u64>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion", resource_version.into());
    if let Some(token) = continue_token {
        metadata.insert("continue", token.into());
    }
    if let Some(remaining) = remaining {
        metadata.insert("remainingItemCount", remaining.into());
    }
    Value::Object(metadata)
}

/// The metadata of a Table that shows one object: a GET or a watch event.
pub fn object_metadata(object: &Value) -> Value {
    match &object["metadata"]["resourceVersion"] {
        Value::String(version) => list_metadata(version, None, None),
        _ => json!({}),
    }
}

/// The object's metadata, whole, and nothing else.
pub fn partial_object_metadata(version: MetaVersion, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": if metadata.is_object() { metadata.clone() } else { json!({}) },
    })
}

fn ends_initial_events(object: &Value) -> bool {
    object["metadata"]["annotations"][INITIAL_EVENTS_END] == "true"
}

#[cfg(test)]
mod tests;
