//! The columns of a kind's table, made of its schema.
//!
//! All kinds have the columns of [`COMMON`]. A column follows for each member of the object beside its metadata, and a
//! hidden one for each scalar of the schema to a depth of [`DEPTH`] that is in no list and no map.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rowplane_sql::{Column, ColumnType, MAX_COLUMNS};

use crate::api::resource::Resource;
use crate::schema::kind::Shape;
use crate::schema::structural::{SchemaNode, ValueType};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, GoShape, MessageId, Types};
use crate::tree::Text;

/// How many members the path of a typed column has at most.
const DEPTH: usize = 3;

/// The source of a column's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The time that the statement names.
    Time,
    Namespace,
    Name,
    Revision,
    /// A member of the metadata.
    Metadata(&'static str),
    /// The uid of the owner that controls the object.
    OwnerUid,
    /// The object without `managedFields`.
    Object,
    StoredVersion,
    /// The members on the way to a value.
    Path(Box<[Text]>),
}

/// The first columns of every kind, with their types, and whether they are hidden.
const COMMON: &[(&str, ColumnType, Source, bool)] = &[
    ("as_of", ColumnType::Text, Source::Time, true),
    ("namespace", ColumnType::Text, Source::Namespace, false),
    ("name", ColumnType::Text, Source::Name, false),
    ("uid", ColumnType::Text, Source::Metadata("uid"), false),
    ("resource_version", ColumnType::Integer, Source::Revision, false),
    ("generation", ColumnType::Integer, Source::Metadata("generation"), false),
    ("created", ColumnType::Text, Source::Metadata("creationTimestamp"), false),
    ("deleted", ColumnType::Text, Source::Metadata("deletionTimestamp"), false),
    ("labels", ColumnType::Text, Source::Metadata("labels"), false),
    ("annotations", ColumnType::Text, Source::Metadata("annotations"), false),
    ("owners", ColumnType::Text, Source::Metadata("ownerReferences"), false),
    ("finalizers", ColumnType::Text, Source::Metadata("finalizers"), false),
    ("owner_uid", ColumnType::Text, Source::OwnerUid, true),
    ("object", ColumnType::Text, Source::Object, true),
    ("managed_fields", ColumnType::Text, Source::Metadata("managedFields"), true),
    ("stored_version", ColumnType::Text, Source::StoredVersion, true),
];

/// The place of `namespace` among the columns.
pub const NAMESPACE: usize = 1;
/// The place of `name` among the columns.
pub const NAME: usize = 2;

/// The columns of a table, and where their values come from.
#[derive(Debug)]
pub struct Columns {
    pub declared: Vec<Column>,
    pub sources: Vec<Source>,
}

/// A member or scalar of a schema.
struct Found {
    path: Box<[Text]>,
    kind: ColumnType,
}

impl Columns {
    pub fn of(resource: &Resource) -> Self {
        let shapes: Vec<&Shape> = match &resource.custom {
            Some(custom) => custom.version.definition.versions.iter().map(|one| &one.kind.shape).collect(),
            None => vec![&resource.definition.kind.shape],
        };
        let mut found = Vec::new();
        for shape in shapes {
            match shape {
                Shape::Go(shape) => go_members(shape, &mut found),
                Shape::Structural(shape) => structural_members(&shape.root, &[], &mut found),
                Shape::Opaque => {}
            }
        }
        Self::make(found)
    }

    /// Names that two paths have are left out, and paths that several versions have are there once.
    fn make(found: Vec<Found>) -> Self {
        let mut columns = Self { declared: Vec::new(), sources: Vec::new() };
        let mut names = HashSet::new();
        for (name, kind, source, is_hidden) in COMMON {
            names.insert((*name).to_owned());
            columns.push((*name).into(), *kind, source.clone(), *is_hidden);
        }
        let mut merged: Vec<(String, Option<Found>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for found in found {
            let name = column_name(&found.path);
            match places.entry(name.clone()) {
                Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push((name, Some(found)));
                }
                Entry::Occupied(place) => match &mut merged[*place.get()].1 {
                    Some(one) if one.path == found.path && one.kind == found.kind => {}
                    Some(one) if one.path == found.path => one.kind = ColumnType::Any,
                    other => *other = None,
                },
            }
        }
        let (members, typed): (Vec<_>, Vec<_>) = merged
            .into_iter()
            .filter_map(|(name, found)| Some((name, found?)))
            .partition(|(_, found)| found.path.len() == 1);
        for (name, found) in members.into_iter().chain(typed) {
            if columns.declared.len() < MAX_COLUMNS && names.insert(name.clone()) {
                let is_hidden = found.path.len() > 1;
                columns.push(name.into(), found.kind, Source::Path(found.path), is_hidden);
            }
        }
        columns
    }

    fn push(&mut self, name: Cow<'static, str>, kind: ColumnType, source: Source, is_hidden: bool) {
        self.declared.push(Column { name, kind, is_hidden });
        self.sources.push(source);
    }
}

/// Members of every object that are no columns of their own.
fn is_common(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn go_members(shape: &GoShape, found: &mut Vec<Found>) {
    walk_message(&shape.types, shape.message, &[], found);
}

fn walk_message(types: &Types, message: MessageId, above: &[Text], found: &mut Vec<Found>) {
    for member in types.message(message).members {
        let field = types.field(member);
        if above.is_empty() && is_common(&field.json_name) {
            continue;
        }
        let path: Vec<Text> = above.iter().cloned().chain([field.json_name.clone()]).collect();
        match scalar_of(types, field) {
            Some(kind) => found.push(Found { path: path.into(), kind }),
            None => {
                if above.is_empty() {
                    found.push(Found { path: path.clone().into(), kind: ColumnType::Text });
                }
                if let (FieldKind::Message(inner), Cardinality::Single) = (field.kind, field.cardinality)
                    && types.message(inner).format == Format::Object
                    && path.len() < DEPTH
                {
                    walk_message(types, inner, &path, found);
                }
            }
        }
    }
}

/// The type of a field's column; `None` for lists, maps, structs and embedded JSON.
fn scalar_of(types: &Types, field: &Field) -> Option<ColumnType> {
    if field.cardinality != Cardinality::Single {
        return None;
    }
    Some(match field.kind {
        FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 => ColumnType::Integer,
        FieldKind::Double => ColumnType::Real,
        FieldKind::String | FieldKind::Bytes => ColumnType::Text,
        FieldKind::Message(inner) => match types.message(inner).format {
            Format::Time | Format::MicroTime | Format::Quantity => ColumnType::Text,
            Format::IntOrString => ColumnType::Any,
            Format::Object
            | Format::Raw
            | Format::List
            | Format::SchemaOrBool
            | Format::SchemaOrArray
            | Format::SchemaOrStrings => return None,
        },
    })
}

fn structural_members(node: &SchemaNode, above: &[Text], found: &mut Vec<Found>) {
    for (name, property) in node.properties.iter() {
        if above.is_empty() && is_common(name) {
            continue;
        }
        let path: Vec<Text> = above.iter().cloned().chain([name.clone()]).collect();
        let scalar = match property.value_type {
            ValueType::Integer | ValueType::Boolean => Some(ColumnType::Integer),
            ValueType::Number => Some(ColumnType::Real),
            ValueType::String => Some(ColumnType::Text),
            ValueType::Any if property.int_or_string => Some(ColumnType::Any),
            ValueType::Any | ValueType::Object | ValueType::Array | ValueType::Odd => None,
        };
        match scalar {
            Some(kind) => found.push(Found { path: path.into(), kind }),
            None => {
                if above.is_empty() {
                    found.push(Found { path: path.clone().into(), kind: ColumnType::Text });
                }
                if path.len() < DEPTH {
                    structural_members(property, &path, found);
                }
            }
        }
    }
}

/// `spec.nodeName` is `spec_node_name`.
fn column_name(path: &[Text]) -> String {
    path.iter().map(|member| snake_case(member)).collect::<Vec<_>>().join("_")
}

/// `podIPs` is `pod_ips`, `hostIPC` is `host_ipc`, `IPFamilies` is `ip_families`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            snake.push('_');
            continue;
        }
        let before = at.checked_sub(1).map(|before| letters[before]);
        let next = letters.get(at + 1);
        let is_plural = next == Some(&'s') && letters.get(at + 2).is_none_or(char::is_ascii_uppercase);
        let starts_word = match before {
            Some(before) if letter.is_ascii_uppercase() => {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && next.is_some_and(char::is_ascii_lowercase) && !is_plural
            }
            _ => false,
        };
        if starts_word {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for (name, snake) in [
            ("nodeName", "node_name"),
            ("podIPs", "pod_ips"),
            ("hostIPC", "host_ipc"),
            ("clusterIP", "cluster_ip"),
            ("IPFamilies", "ip_families"),
            ("apiVersion", "api_version"),
            ("podCIDRs", "pod_cidrs"),
            ("x-kubernetes", "x_kubernetes"),
            ("externalURLTemplate", "external_url_template"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }
}
