//! The names that a definition gets beside the others of its group, and whether it is served: what upstream's
//! controllers write into the status one after the other is written here with the definition itself.
//!
//! Names are texts of two sorts that do not meet: those of resources (plural, singular and short names), and those of
//! kinds. Names of built-in resources and of other groups are never in the way.

use std::collections::BTreeSet;

use super::conditions::{self, Condition};
use super::{approval, bundle, structural};
use crate::fields;
use crate::gotext::quote;
use crate::kinds::prelude::*;

/// A name that only one definition of a group can have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub sort: Sort,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Resource,
    Kind,
}

/// The names that a definition asks for.
pub fn requested(object: &ObjectMap) -> BTreeSet<Name> {
    all_of(fields::at(object, &["spec", "names"]))
}

/// The names that a definition's status says it has.
pub fn accepted(object: &ObjectMap) -> BTreeSet<Name> {
    all_of(fields::at(object, &["status", "acceptedNames"]))
}

fn all_of(names: Option<&Value>) -> BTreeSet<Name> {
    let Some(names) = names.and_then(Value::as_object) else { return BTreeSet::new() };
    let resources = [text(names, "plural"), text(names, "singular")].into_iter().chain(short_names(names));
    let resources = resources.map(|name| (Sort::Resource, name));
    let kinds = [text(names, "kind"), text(names, "listKind")].map(|name| (Sort::Kind, name));
    let all = resources.chain(kinds).filter(|(_, name)| !name.is_empty());
    all.map(|(sort, name)| Name { sort, text: name.to_owned() }).collect()
}

fn text<'n>(names: &'n Map, field: &str) -> &'n str {
    names.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn short_names(names: &Map) -> impl Iterator<Item = &str> {
    names.get("shortNames").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Brings the status of a valid definition up to date. `is_taken` tells what other definitions of its group have.
pub fn settle(object: &mut ObjectMap, is_taken: &dyn Fn(&Name) -> bool, now: &str) {
    let empty = Map::new();
    let requested =
        fields::at(object, &["spec", "names"]).and_then(Value::as_object).unwrap_or(&empty).clone();
    let has = fields::at(object, &["status", "acceptedNames"]).and_then(Value::as_object);
    let has = has.unwrap_or(&empty).clone();
    if requested != without_empty(&has) || conditions::find(object, "NamesAccepted").is_none() {
        let (names, verdict) = accept(&requested, &has, is_taken);
        fields::object_mut(object, "status").insert("acceptedNames", Value::Object(names));
        conditions::set(object, &verdict, now);
    }
    establish(object, now);
    if let Some(condition) = approval::condition(object) {
        conditions::set(object, &condition, now);
    }
    match structural::condition(object) {
        Some(condition) => conditions::set(object, &condition, now),
        None => conditions::remove(object, structural::CONDITION),
    }
}

/// The names without empty ones, which count as absent.
fn without_empty(names: &Map) -> Map {
    let mut names = names.clone();
    names.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    });
    names
}

/// Each name is accepted by itself. Of several conflicts the last one is told.
fn accept(requested: &Map, has: &Map, is_taken: &dyn Fn(&Name) -> bool) -> (Map, Condition) {
    let own = all_of(Some(&Value::Object(has.clone())));
    let conflict = |sort, wanted: &str, accepted: &str| {
        let name = Name { sort, text: wanted.to_owned() };
        (wanted != accepted && (own.contains(&name) || is_taken(&name)))
            .then(|| format!("{} is already in use", quote(wanted)))
    };
    let mut names = has.clone();
    let mut verdict = Condition::new("NamesAccepted", true, "NoConflicts", "no conflicts found");
    let mut refuse = |reason, message| verdict = Condition::new("NamesAccepted", false, reason, message);
    let single = [
        ("plural", Sort::Resource, "PluralConflict"),
        ("singular", Sort::Resource, "SingularConflict"),
        ("shortNames", Sort::Resource, "ShortNamesConflict"),
        ("kind", Sort::Kind, "KindConflict"),
        ("listKind", Sort::Kind, "ListKindConflict"),
    ];
    for (field, sort, reason) in single {
        let message = if field == "shortNames" {
            let known: BTreeSet<&str> = short_names(has).collect();
            let new = short_names(requested).filter(|name| !known.contains(name));
            aggregate(new.filter_map(|name| conflict(sort, name, "")))
        } else {
            conflict(sort, text(requested, field), text(has, field))
        };
        match message {
            Some(message) => refuse(reason, message),
            None => put(&mut names, field, requested),
        }
    }
    put(&mut names, "categories", requested);
    (names, verdict)
}

/// Go's text of several errors, each told once.
fn aggregate(messages: impl Iterator<Item = String>) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for message in messages {
        if !told.contains(&message) {
            told.push(message);
        }
    }
    match told.len() {
        0 | 1 => told.pop(),
        _ => Some(format!("[{}]", told.join(", "))),
    }
}

fn put(names: &mut Map, field: &str, from: &Map) {
    match from.get(field) {
        Some(value) => names.insert(field, value.clone()),
        None => names.shift_remove(field),
    };
}

/// Once a definition is established it stays so, whatever becomes of its names.
fn establish(object: &mut ObjectMap, now: &str) {
    if conditions::is_true(object, "Established") {
        return;
    }
    let condition = if !conditions::is_true(object, "NamesAccepted") {
        if conditions::find(object, "Established").is_some() {
            return;
        }
        Condition::new("Established", false, "NotAccepted", "not all names are accepted")
    } else if !bundle::of_conversion_is_valid(object) {
        let message = "The conversion webhook CABundle is invalid";
        Condition::new("Established", false, "InvalidCABundle", message)
    } else {
        let message = "the initial names have been accepted";
        Condition::new("Established", true, "InitialNamesAccepted", message)
    };
    conditions::set(object, &condition, now);
}
