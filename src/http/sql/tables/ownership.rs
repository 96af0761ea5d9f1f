//! `ownership`: who owns whom.

use rowplane_sql::{Cell, ColumnType};

use super::super::cells::{at_path, of_json};
use crate::tree::{Map, Text, Value};

pub const COLUMNS: &[(&str, ColumnType)] = &[
    ("uid", ColumnType::Text),
    ("owner_uid", ColumnType::Text),
    ("owner_kind", ColumnType::Text),
    ("owner_name", ColumnType::Text),
    ("controller", ColumnType::Integer),
];

pub fn rows(json: &[u8]) -> Vec<Vec<Cell<'static>>> {
    const OWNERS: [Text; 2] = [Text::new_static("metadata"), Text::new_static("ownerReferences")];
    const UID: [Text; 2] = [Text::new_static("metadata"), Text::new_static("uid")];
    let owners = at_path(json, &OWNERS).and_then(|text| serde_json::from_slice::<Vec<Value>>(text).ok());
    let uid = match at_path(json, &UID).map(of_json) {
        Some(Cell::Text(uid)) => Cell::text(uid.into_owned()),
        _ => Cell::Null,
    };
    let row = |owner: &Map| {
        let text = |name: &str| Cell::maybe_text(owner.get(name).and_then(Value::as_str).map(str::to_owned));
        let controls = owner.get("controller").and_then(Value::as_bool) == Some(true);
        vec![uid.clone(), text("uid"), text("kind"), text("name"), Cell::Integer(controls.into())]
    };
    owners.unwrap_or_default().iter().filter_map(Value::as_object).map(row).collect()
}
