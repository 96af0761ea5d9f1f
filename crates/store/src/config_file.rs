//! Files of configuration as upstream's strict decoder reads them, in its words.

use crate::codec::yaml;
use crate::fields;
use crate::gotext::{json_kind, quote};
use crate::tree::{Map, Value};

/// Reads the document of one of these types (API version and kind).
pub fn read<T>(
    text: &[u8],
    types: &[(&str, &str)],
    content: impl FnOnce(&mut Reader, &Map) -> T,
) -> Result<T, String> {
    let parsed =
        yaml::read(text).map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?;
    let mut reader = Reader::default();
    if !parsed.repeated.is_empty() {
        reader.strict.push("a key is repeated".to_owned());
    }
    let empty = Map::new();
    let root = parsed.value.as_object().unwrap_or(&empty);
    let (version, kind) = (fields::text(root, &["apiVersion"]), fields::text(root, &["kind"]));
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", keys_of(&parsed.value)));
    }
    if version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{}'", keys_of(&parsed.value)));
    }
    if !types.contains(&(version, kind)) {
        return Err(format!("no kind {} is registered for version {}", quote(kind), quote(version)));
    }
    let content = content(&mut reader, root);
    match (reader.wrong.first(), &*reader.strict) {
        (Some(wrong), _) => Err(wrong.clone()),
        (None, []) => Ok(content),
        (None, strict) => Err(format!("strict decoding error: {}", strict.join(", "))),
    }
}

/// A document without the values that may be secret.
fn keys_of(value: &Value) -> String {
    let keys = value.as_object().map(|object| object.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>());
    format!("{{{}}}", keys.unwrap_or_default().join(","))
}

/// Collects the errors of a document.
#[derive(Default)]
pub struct Reader {
    /// Values of wrong types.
    wrong: Vec<String>,
    /// Errors of strict decoding alone.
    strict: Vec<String>,
}

impl Reader {
    /// Notes a value that its type does not take.
    pub fn fail(&mut self, why: String) {
        self.wrong.push(why);
    }

    /// Notes the members that no type has.
    pub fn known(&mut self, object: &Map, at: &str, known: &[&str]) {
        for (key, _) in object {
            if !known.contains(&key.as_str()) {
                let dot = if at.is_empty() { "" } else { "." };
                self.strict.push(format!("unknown field \"{at}{dot}{key}\""));
            }
        }
    }

    /// The elements of a list; `go` is the struct that has the field, and the field's type.
    pub fn list<T>(
        &mut self,
        parent: &Map,
        field: &str,
        at: &str,
        go: (&str, &str),
        item: impl Fn(&mut Self, &Value, &str) -> T,
    ) -> Vec<T> {
        match parent.get(field) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                items.map(|(index, value)| item(self, value, &format!("{at}[{index}]"))).collect()
            }
            Some(other) => {
                self.mistyped(other, at, go);
                Vec::new()
            }
        }
    }

    /// An object; `None` for null, and for what is none.
    pub fn object<'v>(&mut self, value: &'v Value, at: &str, go: (&str, &str)) -> Option<&'v Map> {
        if let Value::Null = value {
            return None;
        }
        if value.as_object().is_none() {
            self.mistyped(value, at, go);
        }
        value.as_object()
    }

    /// A text of the struct `owner`; empty where it is absent.
    pub fn text(&mut self, value: Option<&Value>, at: &str, owner: &str) -> String {
        match value {
            None | Some(Value::Null) => String::new(),
            Some(value) => value.as_str().map(str::to_owned).unwrap_or_else(|| {
                self.mistyped(value, at, (owner, "string"));
                String::new()
            }),
        }
    }

    /// Go's text, of the struct that has the field, and of the field's type.
    pub fn mistyped(&mut self, value: &Value, at: &str, wanted: (&str, &str)) {
        let found = json_kind(value);
        let (owner, wanted) = wanted;
        let mut inside = false;
        let path: String = at
            .chars()
            .filter(|c| {
                inside = (inside || *c == '[') && *c != ']';
                !inside && *c != ']'
            })
            .collect();
        let why =
            format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}");
        self.wrong.push(why);
    }
}
