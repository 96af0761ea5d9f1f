//! Declarative validation: rules that upstream writes as `+k8s:` tags at the fields of its types (apimachinery
//! `pkg/api/validate`), asked of an object in one walk.
//!
//! `proto/` has the rules in force as options of fields, and `build/rules.rs` compiles them into the tables at the end of
//! this module. A table has only fields with rules and the way to them, so that the walk of most objects is a few steps,
//! and nothing is allocated before an error. As in kube-apiserver (`ValidateDeclarativelyWithMigrationChecks`) the
//! errors come behind those of the kind's hand-written rules, and an update asks nothing of what it leaves as it was.

pub mod format;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::fields::ObjectMap;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::same::{IMMUTABLE, UNSHOWN, same};
use crate::schema::types::MessageId;
use crate::tree::Value;

static NULL: Value = Value::Null;

/// The rules of a Go struct.
#[derive(Debug)]
pub struct Struct {
    /// Members of which exactly one is set.
    union: &'static [&'static str],
    modes: &'static [Mode],
    members: &'static [Member],
}

/// A member that is forbidden unless a discriminator has this value.
#[derive(Debug)]
struct Mode {
    member: &'static str,
    /// The member that discriminates.
    by: &'static str,
    value: &'static str,
    /// Whether the member is required where it is not forbidden.
    required: bool,
}

#[derive(Debug)]
struct Member {
    /// The name in JSON; empty if the members of the struct stand among those of its parent.
    name: &'static str,
    shape: Shape,
    /// Members that tell the elements of the list apart, if they have to differ; none of elements that are texts.
    keys: Option<&'static [&'static str]>,
    /// Rules that are asked first; if one applies, the validation of the member ends with them.
    stops: &'static [Rule],
    rules: &'static [Rule],
    /// The rules of the struct, or of the elements of the list or map.
    inside: Option<&'static Struct>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Scalar,
    Pointer,
    Struct,
    List,
    Map,
}

/// A rule of a member, with upstream's name.
#[derive(Debug)]
enum Rule {
    Required,
    /// Ends the validation of a member that is not set.
    Optional,
    Forbidden,
    Immutable,
    NoSet,
    NoUnset,
    NoModify,
    Minimum(i64),
    Maximum(i64),
    MaxItems(usize),
    /// In characters.
    MaxLength(usize),
    MaxBytes(usize),
    Enum(&'static [&'static str]),
    Format(format::Check),
    /// The elements differ in these members; without any, they are texts that differ.
    Unique(&'static [&'static str]),
    EachVal(&'static Rule),
    EachKey(&'static Rule),
}

/// The value before the write.
#[derive(Clone, Copy)]
enum Before<'v> {
    /// The object is new.
    Create,
    /// The object is updated, and had no such value.
    Added,
    Value(&'v Value),
}

impl<'v> Before<'v> {
    fn get(self, name: &str) -> Self {
        match self {
            Before::Value(value) => Before::Value(value.get(name).unwrap_or(&NULL)),
            other => other,
        }
    }

    /// The state of a value without a counterpart.
    fn added(self) -> Self {
        if matches!(self, Before::Create) { Before::Create } else { Before::Added }
    }

    fn is_same(self, new: &Value) -> bool {
        matches!(self, Before::Value(old) if same(new, old))
    }

    fn items(self) -> &'v [Value] {
        match self {
            Before::Value(value) => value.as_array().map_or(&[], Vec::as_slice),
            Before::Create | Before::Added => &[],
        }
    }
}

impl Struct {
    /// The rules of a kind, if it has any.
    pub fn of(kind: MessageId) -> Option<&'static Self> {
        let place = KINDS.binary_search_by_key(&kind.index(), |(id, _)| *id);
        place.ok().map(|place| KINDS[place].1)
    }

    /// Adds the errors of an object; `old` is what it replaces.
    pub fn validate(&self, new: &ObjectMap, old: Option<&ObjectMap>, errors: &mut Errors) {
        for member in self.members {
            let before = match old {
                Some(old) => Before::Value(old.get(member.name).unwrap_or(&NULL)),
                None => Before::Create,
            };
            member.validate(&At::member(new, member.name), before, errors);
        }
    }

    fn members(&self, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) {
        if !self.union.is_empty() {
            self.one_of_union(at, before, errors);
        }
        self.modes.iter().for_each(|mode| mode.validate(at, before, errors));
        for member in self.members {
            match member.inside {
                Some(lender) if member.name.is_empty() => lender.members(at, before, errors),
                _ => member.validate(&at.get(member.name), before.get(member.name), errors),
            }
        }
    }

    fn one_of_union(&self, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) {
        let is_set = |value: &Value, name: &str| value.get(name).is_some_and(|member| !member.is_null());
        if let Before::Value(old) = before
            && self.union.iter().all(|name| is_set(at.value(), name) == is_set(old, name))
        {
            return;
        }
        let quoted = |names: &mut dyn Iterator<Item = &&str>| {
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let set = || self.union.iter().filter(|name| is_set(at.value(), name));
        match set().count() {
            0 => errors.invalid(at, "", &format!("must specify one of: {}", quoted(&mut self.union.iter()))),
            1 => {}
            _ => {
                let why = format!("must specify exactly one of: {}", quoted(&mut self.union.iter()));
                errors.invalid(at, format!("{{{}}}", quoted(&mut set())), &why);
            }
        }
    }
}

impl Mode {
    fn validate(&self, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) {
        let member = at.get(self.member);
        if before.get(self.by).is_same(at.get(self.by).value())
            && before.get(self.member).is_same(member.value())
        {
            return;
        }
        match (at.get(self.by).text() == self.value, member.is_set()) {
            (true, false) if self.required => errors.required(&member, ""),
            (false, true) => errors.forbidden(&member, ""),
            _ => {}
        }
    }
}

impl Member {
    fn validate(&self, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) {
        // A struct without rules of its own is compared member by member.
        let is_way = self.stops.is_empty() && self.rules.is_empty() && self.keys.is_none();
        let is_struct = matches!(self.shape, Shape::Struct | Shape::Pointer);
        if !(is_way && is_struct) && before.is_same(at.value()) {
            return;
        }
        let mut stopped = false;
        for rule in self.stops {
            stopped |= rule.validate(self, at, before, errors);
        }
        if stopped {
            return;
        }
        for rule in self.rules {
            rule.validate(self, at, before, errors);
        }
        if let Some(inside) = self.inside {
            self.inside(inside, at, before, errors);
        }
    }

    fn inside(&self, inside: &Struct, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) {
        match self.shape {
            Shape::Struct => inside.members(at, before, errors),
            Shape::Pointer if at.is_set() => match before {
                Before::Value(Value::Null) => inside.members(at, Before::Added, errors),
                before => inside.members(at, before, errors),
            },
            Shape::Pointer | Shape::Scalar => {}
            Shape::List => {
                let counterparts = Counterparts::new(self.keys, before);
                for (place, item) in at.items().enumerate() {
                    let old = counterparts.of(place, item.value());
                    if !old.is_same(item.value()) {
                        inside.members(&item, old, errors);
                    }
                }
            }
            Shape::Map => {
                for (key, item) in at.entries() {
                    let old = match before.get(key) {
                        Before::Value(Value::Null) => Before::Added,
                        old => old,
                    };
                    if !old.is_same(item.value()) {
                        inside.members(&item, old, errors);
                    }
                }
            }
        }
    }

    /// Whether the member is not set, or has Go's zero value.
    fn is_zero(&self, at: &At<'_, '_>) -> bool {
        match (self.shape, at.value()) {
            (Shape::List | Shape::Map, _) => at.is_empty(),
            (_, Value::Null) => self.shape != Shape::Struct,
            (Shape::Scalar, Value::String(text)) => text.is_empty(),
            (Shape::Scalar, value) => value.as_i64() == Some(0) || value.as_bool() == Some(false),
            _ => false,
        }
    }
}

impl Rule {
    /// Adds the errors of a member. Whether the rule applied is the answer, which ends the validation of the member if the
    /// rule is one of its [`Member::stops`].
    fn validate(&self, member: &Member, at: &At<'_, '_>, before: Before<'_>, errors: &mut Errors) -> bool {
        let (count, is_zero) = (errors.len(), member.is_zero(at));
        let was_zero = match before {
            Before::Value(old) => member.is_zero(&at.holding(old)),
            Before::Create | Before::Added => true,
        };
        let is_update = !matches!(before, Before::Create);
        match self {
            Rule::Optional => return is_zero,
            Rule::Required if is_zero => errors.required(at, ""),
            Rule::Forbidden if !is_zero => errors.forbidden(at, ""),
            Rule::Immutable if is_update => errors.invalid(at, UNSHOWN, IMMUTABLE),
            Rule::NoSet if is_update && was_zero && !is_zero => {
                errors.invalid(at, UNSHOWN, "field cannot be set once created");
            }
            Rule::NoUnset if is_update && !was_zero && is_zero => {
                errors.invalid(at, UNSHOWN, "field cannot be cleared once set");
            }
            Rule::NoModify if is_update && !was_zero && !is_zero => {
                errors.invalid(at, UNSHOWN, "field cannot be modified once set");
            }
            Rule::Unique(keys) => unique(keys, at, errors),
            Rule::MaxItems(max) if at.len() > *max => errors.too_many(at, at.len(), *max),
            Rule::EachVal(rule) => {
                let item_of = Member {
                    name: "",
                    shape: Shape::Scalar,
                    keys: None,
                    stops: &[],
                    rules: &[],
                    inside: None,
                };
                let counterparts = Counterparts::new(member.keys, before);
                for (place, item) in at.items().enumerate() {
                    let old = counterparts.of(place, item.value());
                    if !matches!(old, Before::Value(_)) {
                        rule.validate(&item_of, &item, old, errors);
                    }
                }
            }
            Rule::EachKey(rule) => {
                for (key, _) in at.entries() {
                    if !matches!(before.get(key), Before::Value(old) if !old.is_null()) {
                        rule.scalar(at, key, errors);
                    }
                }
            }
            rule if at.is_set() || member.shape == Shape::Scalar => rule.scalar(at, at.text(), errors),
            _ => {}
        }
        errors.len() > count
    }

    /// Adds the errors of a number or of this text.
    fn scalar(&self, at: &At<'_, '_>, text: &str, errors: &mut Errors) {
        match self {
            Rule::Minimum(min) if at.int() < *min => {
                errors.invalid(at, at.int(), &format!("must be greater than or equal to {min}"));
            }
            Rule::Maximum(max) if at.int() > *max => {
                errors.invalid(at, at.int(), &format!("must be less than or equal to {max}"));
            }
            Rule::MaxLength(max) if text.len() > *max && text.chars().count() > *max => {
                errors.too_long_in_characters(at, *max);
            }
            Rule::MaxBytes(max) if text.len() > *max => errors.too_long(at, *max),
            Rule::Enum(allowed) => _ = errors.one_of(at, text, allowed),
            Rule::Format(check) => check(at, text, errors),
            _ => {}
        }
    }
}

/// The old elements of a list, found by their keys. The work is linear in the lists, however their elements have moved.
struct Counterparts<'v> {
    keys: Option<&'static [&'static str]>,
    before: Before<'v>,
    by_key: OnceCell<HashMap<Vec<Option<&'v str>>, &'v Value>>,
}

impl<'v> Counterparts<'v> {
    fn new(keys: Option<&'static [&'static str]>, before: Before<'v>) -> Self {
        Self { keys, before, by_key: OnceCell::new() }
    }

    /// The old element that has the keys of a new one, which most often is at the same place.
    fn of(&self, place: usize, new: &Value) -> Before<'v> {
        let (Some(keys), items) = (self.keys, self.before.items()) else { return self.before.added() };
        if items.is_empty() {
            return self.before.added();
        }
        let key = key_of(keys, new);
        if let Some(old) = items.get(place).filter(|old| key_of(keys, old) == key) {
            return Before::Value(old);
        }
        let by_key = self.by_key.get_or_init(|| {
            // Of several elements with one key, the first one counts.
            items.iter().rev().map(|old| (key_of(keys, old), old)).collect()
        });
        by_key.get(&key).map_or(self.before.added(), |old| Before::Value(old))
    }
}

/// The texts that tell an element apart: of these members, or the element itself without any.
fn key_of<'v>(keys: &[&str], element: &'v Value) -> Vec<Option<&'v str>> {
    match keys {
        [] => vec![element.as_str()],
        keys => keys.iter().map(|key| element.get(*key).and_then(Value::as_str)).collect(),
    }
}

/// Adds an error for each element that an earlier one equals.
fn unique(keys: &[&str], at: &At<'_, '_>, errors: &mut Errors) {
    if at.len() < 2 {
        return;
    }
    let mut seen = HashSet::new();
    for item in at.items() {
        match keys {
            _ if seen.insert(key_of(keys, item.value())) => {}
            [] => errors.duplicate(&item, item.text()),
            _ => errors.duplicate(&item, item.value()),
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

#[cfg(test)]
mod tests;
