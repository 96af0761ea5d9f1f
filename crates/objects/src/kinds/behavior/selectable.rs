//! Fields of a kind that a field selector may name, and the places where an object keeps them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::gotext;
use crate::jsonpath::{Budget, Found, JsonPath};
use crate::tree::Value;

/// The selectable fields of one kind.
#[derive(Clone, Debug)]
pub struct SelectableFields {
    fields: Vec<Field>,
    /// Fields that a CustomResourceDefinition declares.
    declared: Arc<[DeclaredField]>,
    /// Other names of fields, as one served version spells them.
    aliases: Vec<(Cow<'static, str>, &'static str)>,
    refusal: Refusal,
}

#[derive(Debug)]
struct DeclaredField {
    /// The path without its leading point.
    label: String,
    /// `None` for a path that cannot be parsed, and finds nothing.
    path: Option<JsonPath>,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub label: Cow<'static, str>,
    /// Dotted; the first that is there and not empty counts.
    pub paths: Vec<Cow<'static, str>>,
    /// The text of a missing value.
    pub zero: &'static str,
}

/// How upstream words the 400 for an unknown field.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// Kinds without a conversion function of their own.
    OnlyMetadata,
    Label,
    Job,
    ResourceSlice,
}

impl SelectableFields {
    /// Kinds that upstream gives no selectable fields of their own.
    pub fn metadata() -> Self {
        Self { refusal: Refusal::OnlyMetadata, ..Self::namespaced(Vec::new()) }
    }

    /// These fields of a namespaced kind, and its name and namespace.
    pub fn namespaced(own: Vec<Field>) -> Self {
        Self::new(NAMESPACED, own)
    }

    /// These fields of a cluster-scoped kind, and its name.
    pub fn cluster(own: Vec<Field>) -> Self {
        Self::new(CLUSTER, own)
    }

    fn new(metadata: &[&'static str], own: Vec<Field>) -> Self {
        let fields = metadata.iter().map(|label| field(label)).chain(own).collect();
        Self { fields, declared: Arc::default(), aliases: Vec::new(), refusal: Refusal::Label }
    }

    pub fn with_aliases(self, aliases: Vec<(Cow<'static, str>, &'static str)>) -> Self {
        Self { aliases, ..self }
    }

    pub fn with_refusal(self, refusal: Refusal) -> Self {
        Self { refusal, ..self }
    }

    /// A custom resource; `json_paths` are the version's `selectableFields` (`.spec.color`).
    pub fn custom<'a>(namespaced: bool, json_paths: impl IntoIterator<Item = &'a str>) -> Self {
        let metadata = if namespaced { NAMESPACED } else { CLUSTER };
        let declared = json_paths.into_iter().map(|path| DeclaredField {
            label: path.strip_prefix('.').unwrap_or(path).to_owned(),
            path: JsonPath::parse(path).ok(),
        });
        Self { declared: declared.collect(), ..Self::new(metadata, Vec::new()) }
    }

    /// The kind's own name of a field; the error is the whole message of a 400.
    pub fn canonical<'a>(&'a self, label: &'a str) -> Result<&'a str, String> {
        if let Some((_, name)) = self.aliases.iter().find(|(alias, _)| alias == label) {
            return Ok(name);
        }
        let own = self.field(label).map(|field| &*field.label);
        let known = own.or_else(|| self.declared_field(label).map(|field| &*field.label));
        known.ok_or_else(|| self.refusal.text(label))
    }

    /// The field's text in an object; empty for an unknown or missing one.
    pub fn value<'a>(&self, label: &str, object: &'a Value) -> Cow<'a, str> {
        let Some(field) = self.field(label) else {
            let path = self.declared_field(label).and_then(|field| field.path.as_ref());
            return path
                .and_then(|path| path.first(object, &mut Budget::of(STEPS)))
                .and_then(declared_text)
                .unwrap_or_default()
                .into();
        };
        let mut found = field.paths.iter().filter_map(|path| scalar(walk(object, path)?));
        found.find(|text| !text.is_empty()).unwrap_or(Cow::Borrowed(field.zero))
    }

    fn declared_field(&self, label: &str) -> Option<&DeclaredField> {
        self.declared.iter().find(|field| field.label == label)
    }

    fn field(&self, label: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.label == label)
    }
}

impl Refusal {
    fn text(self, label: &str) -> String {
        match self {
            Refusal::OnlyMetadata => format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                gotext::quote(label)
            ),
            Refusal::Label => format!("field label not supported: {label}"),
            Refusal::Job => format!("field label {} not supported for Job", gotext::quote(label)),
            Refusal::ResourceSlice => {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
            }
        }
    }
}

/// How many values the path of a field may look at, which leads to one.
const STEPS: usize = 10_000;

const NAMESPACED: &[&str] = &["metadata.name", "metadata.namespace"];

const CLUSTER: &[&str] = &["metadata.name"];

pub fn field(path: &'static str) -> Field {
    field_or(path, "")
}

/// A field whose missing value reads `zero`.
pub fn field_or(path: &'static str, zero: &'static str) -> Field {
    Field { label: path.into(), paths: vec![path.into()], zero }
}

/// A field that is kept in the first of these places where there is something.
pub fn first_of(label: impl Into<Cow<'static, str>>, paths: &[&'static str]) -> Field {
    let paths = paths.iter().map(|path| Cow::Borrowed(*path)).collect();
    Field { label: label.into(), paths, zero: "" }
}

fn walk<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, key| value.get(key))
}

/// The value at a declared path as Go prints it; `None` for null.
fn declared_text(found: Found<'_>) -> Option<String> {
    match found {
        Found::Value(Value::Null) => None,
        Found::Value(value) => Some(gotext::display(value)),
        // A path of members finds no text of its own.
        _ => None,
    }
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
