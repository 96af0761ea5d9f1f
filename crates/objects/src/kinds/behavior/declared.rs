//! Declarations in a version of a CustomResourceDefinition about how its objects are seen from outside: columns,
//! selectable fields, a subresource `scale`, and that it is deprecated.

use std::sync::Arc;

use super::columns::TablePrinter;
use super::columns::custom::DeclaredColumns;
use super::scale::ScalePaths;
use super::selectable::SelectableFields;
use crate::schema::registry::order::compare_versions;
use crate::tree::{Map, Text, Value};

#[derive(Clone, Debug)]
pub struct Declared {
    pub columns: TablePrinter,
    pub fields: SelectableFields,
    /// The warning of every request to a deprecated version.
    pub deprecation: Option<Text>,
    pub scale: Option<Arc<ScalePaths>>,
}

impl Declared {
    /// Nothing but what all custom resources have.
    pub fn nothing(is_namespaced: bool) -> Self {
        Self {
            columns: TablePrinter::Custom(Arc::default()),
            fields: SelectableFields::custom(is_namespaced, []),
            deprecation: None,
            scale: None,
        }
    }

    /// Reads an entry of `spec.versions`; `spec` is the whole.
    pub fn read(spec: &Map, version: &Map) -> Self {
        let list = |name| version.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let paths = list("selectableFields").iter().filter_map(|field| field["jsonPath"].as_str());
        let is_namespaced = spec.get("scope").and_then(Value::as_str) == Some("Namespaced");
        let scale = version.get("subresources").map(|subresources| &subresources["scale"]);
        Self {
            columns: TablePrinter::Custom(Arc::new(DeclaredColumns::read(list("additionalPrinterColumns")))),
            fields: SelectableFields::custom(is_namespaced, paths),
            deprecation: deprecation(spec, version),
            scale: scale.filter(|scale| scale.is_object()).map(|scale| Arc::new(ScalePaths::read(scale))),
        }
    }
}

fn deprecation(spec: &Map, version: &Map) -> Option<Text> {
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(own) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(own.into());
    }
    let text = |object: &'_ Map, name: &str| -> Text {
        object.get(name).and_then(Value::as_str).unwrap_or_default().into()
    };
    let group = text(spec, "group");
    let kind = spec.get("names").and_then(|names| names["kind"].as_str()).unwrap_or_default();
    let name = text(version, "name");
    let better = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let better = better.filter_map(Value::as_object);
    let better = better.filter(|other| flag(other, "served") && !flag(other, "deprecated"));
    let names = better.map(|other| text(other, "name"));
    let best =
        names.filter(|other| compare_versions(other, &name).is_lt()).min_by(|a, b| compare_versions(a, b));
    let instead = best.map(|best| format!("; use {group}/{best} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}").into())
}

fn flag(object: &Map, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or_default()
}
