//! Validation as kube-openapi does it: every keyword, in its order and its words.
//!
//! Members at which upstream looks in random order are looked at sorted by name.

use super::check::Check;
use super::numbers::Quantity;
use super::outcome::{Kind, ValidationResult};
use super::place::ValuePath;
use super::type_check::{Reading, check_enum, check_type, null};
use super::view::View;
use super::{Additional, SchemaNode, Structural};
use crate::causes::{CauseReason, Causes};
use crate::gotext::quote;
use crate::tree::{Map, Text, Value, work};

/// How often a schema may be held to a value of one object. Upstream does all it is asked to do, for minutes if it must.
const STEPS_MAX: u64 = 20_000_000;

impl Structural {
    /// The errors of a new object.
    pub fn validate(&self, object: &Map) -> Causes {
        self.validate_within(object, STEPS_MAX)
    }

    pub(super) fn validate_within(&self, object: &Map, steps: u64) -> Causes {
        let mut walk = Walk { steps_left: steps, ..Walk::default() };
        let mut found = ValidationResult::default();
        walk.value(&self.root, View::Object(object), &ValuePath::ROOT, &mut found);
        walk.end(found, "")
    }
}

impl SchemaNode {
    /// The errors of a default that stands at a path.
    pub(super) fn validate_default(&self, value: &Value, path: &str) -> Causes {
        let mut walk = Walk { reading: Reading::Structural, ..Walk::default() };
        let mut found = ValidationResult::default();
        walk.value(self, value.into(), &ValuePath::ROOT, &mut found);
        walk.end(found, path)
    }
}

/// Whether rules are not evaluated of an object with such an error.
pub fn blocks_rules(reason: CauseReason) -> bool {
    use CauseReason::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(reason, Required | NotSupported | TooLong | TooMany | TypeInvalid)
}

/// A walk over a value, and the steps that are left to it.
pub struct Walk {
    steps_left: u64,
    reading: Reading,
}

impl Default for Walk {
    fn default() -> Self {
        Self { steps_left: STEPS_MAX, reading: Reading::Declared }
    }
}

impl Walk {
    /// Whether there are steps left: no object may ask for endless work.
    pub fn goes_on(&mut self) -> bool {
        self.takes(1)
    }

    /// Takes so many steps. Whether they were left; if not, none is left afterwards.
    fn takes(&mut self, steps: u64) -> bool {
        let goes_on = self.steps_left >= steps;
        work::count(if goes_on { usize::try_from(steps).unwrap_or(usize::MAX) } else { 1 });
        self.steps_left = self.steps_left.saturating_sub(steps);
        goes_on
    }

    /// The causes, the first of them that not all was looked at.
    pub fn end(&self, found: ValidationResult, path: &str) -> Causes {
        let mut all = ValidationResult::default();
        if self.steps_left == 0 {
            let text = "the object asks for too many checks by its schema, and not all were made";
            all.add_unplaced(|| text.to_owned());
        }
        all.merge(found);
        all.into_causes(path)
    }

    /// Holds a value to a schema.
    pub fn value(
        &mut self,
        schema: &SchemaNode,
        value: View<'_>,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) {
        if !self.goes_on() {
            return;
        }
        if let View::Null = value {
            return null(schema, self.reading, at, found);
        }
        self.before_members(schema, value, at, found);
        match value {
            View::Array(items) => {
                if let Some(of_item) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.value(of_item, item.into(), &at.item(index), found);
                    }
                }
            }
            View::Object(members) => {
                object_size(schema, members, at, found);
                each_member(schema, members, &mut |of_member, name, member, step| {
                    self.value(of_member, member.into(), &step.from(at, name), found);
                });
            }
            _ => {}
        }
        after_members(schema, value, at, found);
    }

    /// The checks that upstream makes before members and items: type, junctors, constraints of a scalar, enumeration of an
    /// object.
    pub fn before_members(
        &mut self,
        schema: &SchemaNode,
        value: View<'_>,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) {
        check_type(schema, self.reading, value, at, found);
        self.junctors(schema, value, at, found);
        match value {
            View::String(text) => self.string(schema, text, at, found),
            View::Number(number) => {
                found.matched += 2;
                Quantity::from(number).check(schema, at, found);
            }
            View::Object(_) => enumerated(schema, value, at, found),
            View::Null | View::Bool(_) | View::Array(_) => {}
        }
    }

    fn string(&mut self, schema: &SchemaNode, text: &str, at: &ValuePath<'_>, found: &mut ValidationResult) {
        found.matched += 1;
        let fails = schema.checks.iter().find_map(|check| self.string_check(check, text));
        if let Some(failure) = fails {
            let words = |place: &str| format!("{place} in body {}", failure.words);
            found.add(failure.kind, at, || quote(text), words);
        }
        let Some(format) = schema.known_format.filter(|format| format.is_of_texts()) else { return };
        found.matched += 1;
        if !format.takes(text) {
            let words =
                |place: &str| format!("{place} in body must be of type {}: {}", schema.format, quote(text));
            found.add(Kind::TypeInvalid, at, || quote(text), words);
        }
    }

    /// The failure of a text in one check of length or pattern, if any; only the first failure is told.
    fn string_check(&mut self, check: &Check, text: &str) -> Option<StringFailure> {
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        match check {
            Check::MaxLength(max) if text.len() as i64 > *max && length() > *max => {
                let words = format!("should be at most {max} chars long");
                Some(StringFailure { kind: Kind::TooLong(*max), words })
            }
            Check::MinLength(min) if length() < *min => Some(StringFailure {
                kind: Kind::Invalid,
                words: format!("should be at least {min} chars long"),
            }),
            Check::Pattern(pattern) => {
                let words = match pattern.compiled() {
                    // The end of the walk tells that this was not looked at.
                    Ok(compiled) if !self.takes(compiled.steps(text.len())) || compiled.is_match(text) => {
                        return None;
                    }
                    Ok(_) => format!("should match '{}'", pattern.text),
                    Err(why) => format!("should match '{}, but pattern is invalid: {why}'", pattern.text),
                };
                Some(StringFailure { kind: Kind::Invalid, words })
            }
            _ => None,
        }
    }
}

/// Whether a member is one that the schema names, or a key of a map.
#[derive(Clone, Copy)]
pub enum MemberStep {
    Property,
    Key,
}

impl MemberStep {
    pub fn from<'p>(self, at: &'p ValuePath<'p>, name: &'p str) -> ValuePath<'p> {
        match self {
            Self::Property => at.property(name),
            Self::Key => at.key(name),
        }
    }
}

/// Visits the members that have a schema: first the keys of a map, then properties.
pub fn each_member<'s, 'v>(
    schema: &'s SchemaNode,
    members: &'v Map,
    visit: &mut impl FnMut(&'s SchemaNode, &'v str, &'v Value, MemberStep),
) {
    if let Some(of_key) = schema.additional.schema() {
        for (key, value) in sorted(members) {
            if !schema.properties.contains(key) {
                visit(of_key, key, value, MemberStep::Key);
            }
        }
    }
    if schema.properties.len() <= members.len() {
        for (name, property) in schema.properties.iter() {
            if let Some((name, value)) = members.get_key_value(name) {
                visit(property, name, value, MemberStep::Property);
            }
        }
    } else {
        for (name, value) in sorted(members) {
            if let Some(property) = schema.properties.get(name) {
                visit(property, name, value, MemberStep::Property);
            }
        }
    }
}

fn sorted(members: &Map) -> Vec<(&Text, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}

/// The checks that upstream makes after those of members and items.
pub fn after_members(schema: &SchemaNode, value: View<'_>, at: &ValuePath<'_>, found: &mut ValidationResult) {
    match value {
        View::Array(items) => {
            items_count(schema, items.len(), at, found);
            enumerated(schema, value, at, found);
        }
        View::Object(members) => required(schema, members, at, found),
        _ => enumerated(schema, value, at, found),
    }
    found.matched += 1;
}

struct StringFailure {
    kind: Kind,
    words: String,
}

fn items_count(schema: &SchemaNode, count: usize, at: &ValuePath<'_>, found: &mut ValidationResult) {
    let size = i64::try_from(count).unwrap_or(i64::MAX);
    for check in &schema.checks {
        match check {
            Check::MinItems(min) if size < *min => {
                let text = |place: &str| format!("{place} in body should have at least {min} items");
                found.add(Kind::Invalid, at, || size.to_string(), text);
            }
            Check::MaxItems(max) if size > *max => {
                let text = |place: &str| format!("{place} in body should have at most {max} items");
                found.add(Kind::TooMany(*max), at, || size.to_string(), text);
            }
            _ => {}
        }
    }
    found.matched += 2;
}

/// How many members there are, and whether there may be keys that the schema does not name.
pub fn object_size(schema: &SchemaNode, members: &Map, at: &ValuePath<'_>, found: &mut ValidationResult) {
    let size = i64::try_from(members.len()).unwrap_or(i64::MAX);
    for check in &schema.checks {
        match check {
            Check::MinProperties(min) if size < *min => {
                let text = |place: &str| format!("{place} in body should have at least {min} properties");
                found.add(Kind::Invalid, at, || size.to_string(), text);
            }
            Check::MaxProperties(max) if size > *max => {
                let text = |place: &str| format!("{place} in body should have at most {max} properties");
                found.add(Kind::TooMany(*max), at, || size.to_string(), text);
            }
            _ => {}
        }
    }
    if schema.additional == Additional::Allowed(false) {
        for (key, _) in sorted(members).into_iter().filter(|(key, _)| !schema.properties.contains(key)) {
            let text = |place: &str| format!("{place}.{key} in body is a forbidden property");
            found.add(Kind::Invalid, at, || quote(key), text);
        }
    }
}

fn required(schema: &SchemaNode, members: &Map, at: &ValuePath<'_>, found: &mut ValidationResult) {
    for check in &schema.checks {
        let Check::Required(names) = check else { continue };
        for name in names.iter().filter(|name| !members.contains_key(name)) {
            let text = |place: &str| format!("{place} in body is required");
            found.add(Kind::Required, &at.key(name), String::new, text);
        }
    }
    found.matched += 1;
}

fn enumerated(schema: &SchemaNode, value: View<'_>, at: &ValuePath<'_>, found: &mut ValidationResult) {
    found.matched += 1;
    check_enum(schema, value, at, found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;
    use crate::tree::{json, work};

    #[test]
    fn an_object_asks_for_so_many_steps_only() {
        let alternatives: Vec<Value> = (0..100).map(|least| json!({"minimum": least + 10})).collect();
        let items = json!({"type": "integer", "anyOf": alternatives});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "array", "items": items}}});
        let shape =
            Structural::read(schema.as_object().expect("a schema"), &builtin::types()).expect("structural");
        let object = json!({"spec": vec![1; 1000]});
        let object = object.as_object().expect("an object");
        let mut causes = Vec::new();
        let work = work::of(|| causes = shape.validate_within(object, 5000).into_vec());
        assert!(causes.iter().any(|cause| cause.message.ends_with("not all were made")), "{causes:?}");
        assert!(work < 8000, "{work}");
    }
}
