//! Functions of statements that know Kubernetes: selectors of labels, and paths of kubectl.

use std::sync::{Mutex, PoisonError};

use rowplane_sql::{Cell, Function};

use super::super::cells::of_json;
use crate::api::options::selector::label::LabelSelector;
use crate::jsonpath::{Budget, Found, JsonPath};
use crate::tree::{Map, Value};

/// The work of one path on one object.
const STEPS: usize = 100_000;

/// The functions of a statement.
pub fn all() -> Vec<Function> {
    let (selector, path) = (Kept::default(), Kept::default());
    vec![
        Function::new("selects", 2, move |arguments| selects(&selector, arguments)),
        Function::new("jsonpath", 2, move |arguments| jsonpath(&path, arguments)),
    ]
}

/// The text that was parsed last: most statements use one for all rows.
struct Kept<T>(Mutex<Option<(String, T)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Kept<T> {
    fn with<A>(
        &self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        work: impl FnOnce(&T) -> A,
    ) -> Result<A, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((known, parsed)) if known == text => Ok(work(parsed)),
            _ => {
                let (_, parsed) = kept.insert((text.to_owned(), parse(text)?));
                Ok(work(parsed))
            }
        }
    }
}

/// `selects(labels, 'app in (a,b)')`: whether labels, in JSON, match a selector.
fn selects(kept: &Kept<LabelSelector>, arguments: &[Cell<'_>]) -> Result<Cell<'static>, String> {
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
    let parse = |text: &str| LabelSelector::parse(text).map_err(|error| format!("selects(): {error}"));
    kept.with(selector, parse, |selector| {
        let matches = selector.matches(|key| labels.get(key).and_then(Value::as_str));
        Cell::Integer(matches.into())
    })
}

/// `jsonpath(object, '{.spec.containers[0].image}')`: the first value that a path finds; NULL if there is none.
fn jsonpath(kept: &Kept<JsonPath>, arguments: &[Cell<'_>]) -> Result<Cell<'static>, String> {
    let (Cell::Text(object), Cell::Text(path)) = (&arguments[0], &arguments[1]) else {
        return Ok(Cell::Null);
    };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return Ok(Cell::Null) };
    // Paths are parsed as those of printer columns, which have no braces around them.
    let parse = |text: &str| {
        let path = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        JsonPath::parse(path).map_err(|error| format!("jsonpath(): {error}"))
    };
    kept.with(path, parse, |path| path.first(&object, &mut Budget::of(STEPS)).map_or(Cell::Null, found))
}

fn found(found: Found<'_>) -> Cell<'static> {
    match found {
        Found::Value(Value::String(text)) => Cell::text(text.as_str().to_owned()),
        Found::Value(value) => match of_json(serde_json::to_string(value).unwrap_or_default().as_bytes()) {
            Cell::Null => Cell::Null,
            Cell::Integer(value) => Cell::Integer(value),
            Cell::Real(value) => Cell::Real(value),
            Cell::Text(text) => Cell::text(text.into_owned()),
        },
        Found::Text(text) => Cell::text(text.to_owned()),
        Found::Integer(value) => Cell::Integer(value),
        Found::Float(value) => Cell::Real(value),
        Found::Bool(value) => Cell::Integer(value.into()),
        Found::Byte(value) => Cell::Integer(value.into()),
    }
}
