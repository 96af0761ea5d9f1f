//! `conditions`: those in `status.conditions` of every kind.

use rowplane_sql::{Cell, ColumnType};

use super::super::cells::at_path;
use crate::tree::{Map, Text, Value};

pub const COLUMNS: &[(&str, ColumnType)] = &[
    ("type", ColumnType::Text),
    ("status", ColumnType::Text),
    ("reason", ColumnType::Text),
    ("message", ColumnType::Text),
    ("since", ColumnType::Text),
];

pub fn rows(json: &[u8]) -> Vec<Vec<Cell<'static>>> {
    const PATH: [Text; 2] = [Text::new_static("status"), Text::new_static("conditions")];
    let conditions = at_path(json, &PATH).and_then(|text| serde_json::from_slice::<Vec<Value>>(text).ok());
    let row = |condition: &Map| {
        let text =
            |name: &str| Cell::maybe_text(condition.get(name).and_then(Value::as_str).map(str::to_owned));
        ["type", "status", "reason", "message", "lastTransitionTime"].map(text).into()
    };
    conditions.unwrap_or_default().iter().filter_map(Value::as_object).map(row).collect()
}
