//! Functions of statements that know Kubernetes: selectors of labels, and paths of kubectl.

use std::cell::RefCell;

use rowplane_sql::{Cell, Function};

use crate::api::options::selector::label::LabelSelector;
use crate::jsonpath::{Budget, Found, JsonPath};
use crate::tree::{Map, Value};

/// The work of one path on one object.
const STEPS: usize = 100_000;

thread_local! {
    /// The selector and the path that the statement of this thread used last: most use one for all rows.
    static SELECTOR: RefCell<Option<(String, LabelSelector)>> = const { RefCell::new(None) };
    static PATH: RefCell<Option<(String, JsonPath)>> = const { RefCell::new(None) };
}

pub fn all() -> Vec<Function> {
    vec![Function::new("selects", 2, selects), Function::new("jsonpath", 2, jsonpath)]
}

/// `selects(labels, 'app in (a,b)')`: whether labels, in JSON, match a selector.
fn selects(arguments: &[Cell<'_>]) -> Result<Cell<'static>, String> {
    let selector = match &arguments[1] {
        Cell::Text(text) => text,
        Cell::Null => return Ok(Cell::Null),
        Cell::Integer(_) | Cell::Real(_) => return Err("selects(): the selector has to be a text".to_owned()),
    };
    let labels: Map = match &arguments[0] {
        Cell::Text(text) => match serde_json::from_str(text) {
            Ok(labels) => labels,
            Err(_) => return Ok(Cell::Null),
        },
        _ => Map::new(),
    };
    SELECTOR.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(text, _)| text != selector) {
            let parsed = LabelSelector::parse(selector).map_err(|error| format!("selects(): {error}"))?;
            *kept = Some((selector.to_string(), parsed));
        }
        let matches = kept.as_ref().is_some_and(|(_, selector)| {
            selector.matches(|key| labels.get(key).and_then(Value::as_str))
        });
        Ok(Cell::Integer(matches.into()))
    })
}

/// `jsonpath(object, '{.spec.containers[0].image}')`: the first value that a path finds; NULL if there is none.
fn jsonpath(arguments: &[Cell<'_>]) -> Result<Cell<'static>, String> {
    let (Cell::Text(object), Cell::Text(path)) = (&arguments[0], &arguments[1]) else {
        return Ok(Cell::Null);
    };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return Ok(Cell::Null) };
    PATH.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(text, _)| text != path) {
            let parsed = JsonPath::parse(path).map_err(|error| format!("jsonpath(): {error}"))?;
            *kept = Some((path.to_string(), parsed));
        }
        let Some((_, path)) = kept.as_ref() else { return Ok(Cell::Null) };
        Ok(path.first(&object, &mut Budget::of(STEPS)).map_or(Cell::Null, found))
    })
}

fn found(found: Found<'_>) -> Cell<'static> {
    match found {
        Found::Value(Value::Null) => Cell::Null,
        Found::Value(Value::String(text)) => Cell::text(text.as_str().to_owned()),
        Found::Value(Value::Bool(value)) => Cell::Integer((*value).into()),
        Found::Value(value) => {
            let text = serde_json::to_string(value).unwrap_or_default();
            match super::super::cells::of_json(text.as_bytes()) {
                Cell::Integer(value) => Cell::Integer(value),
                Cell::Real(value) => Cell::Real(value),
                _ => Cell::text(text),
            }
        }
        Found::Text(text) => Cell::text(text.to_owned()),
        Found::Integer(value) => Cell::Integer(value),
        Found::Float(value) => Cell::Real(value),
        Found::Bool(value) => Cell::Integer(value.into()),
        Found::Byte(value) => Cell::Integer(value.into()),
    }
}
