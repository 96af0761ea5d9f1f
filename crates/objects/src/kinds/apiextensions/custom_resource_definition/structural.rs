//! Structural schemas: every value has one place that says what it is (apiextensions-apiserver `pkg/apiserver/schema`).

use super::conditions::Condition;
use crate::causes::aggregate;
use crate::kinds::prelude::*;
use crate::regexp;

/// The place of a schema, as its errors name it.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Errors of a schema that is not structural, sorted by their texts as upstream sorts them.
pub fn validate(schema: &At<'_, '_>, errors: &mut Errors) {
    let mut found = Errors::default();
    invariants(schema, Level::Root, &mut found);
    complete(schema, schema, &mut found);
    errors.append(found.sorted());
}

pub fn is_structural(schema: &Value) -> bool {
    let mut errors = Errors::default();
    validate(&At::root(schema), &mut errors);
    errors.is_empty() && unconvertible(schema).is_none()
}

/// The type of the condition on schemas that are not structural, which only definitions of old have.
pub const CONDITION: &str = "NonStructuralSchema";

/// The condition; `None` if there is nothing to tell.
pub fn condition(object: &ObjectMap) -> Option<Condition> {
    let spec = At::member(object, "spec");
    let mut errors = Errors::default();
    let preserves = spec.get("preserveUnknownFields");
    if preserves.flag() {
        errors.invalid(&preserves, true, "must be false");
    }
    for version in spec.get("versions").items() {
        let schema = version.dig(&["schema", "openAPIV3Schema"]);
        if !schema.is_set() {
            continue;
        }
        if let Some(why) = unconvertible(schema.value()) {
            let name = version.get("name");
            let message = format!("failed to check validation schema for version {}: {why}", name.text());
            return Some(Condition::unknown(CONDITION, "StructuralError", message));
        }
        validate(&schema, &mut errors);
    }
    let causes = errors.into_causes();
    (!causes.is_empty()).then(|| Condition::new(CONDITION, true, "Violations", aggregate(&causes.into_vec())))
}

/// Why upstream does not even look whether a schema is structural. Nearly all of it is told by the walk over keywords.
pub fn unconvertible(schema: &Value) -> Option<String> {
    let members = schema.as_object()?;
    let is_said = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        _ => true,
    };
    const UNSUPPORTED: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(name, _)| members.get(name).is_some_and(is_said)) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let why = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(why.to_owned());
    }
    if members.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| members.get(name)?.as_array()).flatten();
    let single = ["not", "items", "additionalProperties"].iter().filter_map(|name| members.get(name));
    let properties = members.get("properties").and_then(Value::as_object).into_iter();
    lists.chain(single).chain(properties.flat_map(|all| all.values())).find_map(unconvertible)
}

fn invariants(schema: &At<'_, '_>, level: Level, errors: &mut Errors) {
    if !schema.value().is_object() {
        return;
    }
    let (kind, items, additional) =
        (schema.get("type"), schema.get("items"), schema.get("additionalProperties"));
    let no_schema = !items.is_set() || items.value().as_array().is_some_and(Vec::is_empty);
    if kind.text() == "array" && no_schema {
        errors.required(&items, "must be specified");
    }
    invariants(&items, Level::Item, errors);
    let properties = schema.get("properties");
    properties.entries().for_each(|(_, property)| invariants(&property, Level::Field, errors));
    if additional.is_set() {
        if level == Level::Root {
            errors.forbidden(&additional, "must not be used at the root");
        }
        invariants(&additional, Level::Field, errors);
    }
    let (preserve, embedded, either) = (
        schema.get("x-kubernetes-preserve-unknown-fields"),
        schema.get("x-kubernetes-embedded-resource"),
        schema.get("x-kubernetes-int-or-string"),
    );
    for field in [&preserve, &embedded] {
        if either.flag() && field.flag() {
            errors.invalid(field, true, "must be false if x-kubernetes-int-or-string is true");
        }
    }
    let any_of = schema.get("anyOf");
    let first = schema.get("allOf");
    let skip = Skip {
        any_of: is_int_or_string(any_of.value()),
        first: is_int_or_string(first.index(0).get("anyOf").value()),
    };
    values(schema, skip, errors);
    types(schema, level, errors);
    let checks_metadata = level == Level::Root || embedded.flag();
    for name in ["kind", "apiVersion"] {
        let property = properties.key(name);
        let own = property.get("type");
        if checks_metadata && property.is_set() && own.text() != "string" {
            errors.invalid(&own, own.text(), "must be string");
        }
    }
    let metadata = properties.key("metadata");
    if metadata.is_set() {
        self::metadata(&metadata, checks_metadata, level, errors);
    }
    if embedded.flag() && !preserve.flag() && properties.is_empty() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.required(&properties, why);
    }
}

fn types(schema: &At<'_, '_>, level: Level, errors: &mut Errors) {
    let kind = schema.get("type");
    let flag = |name: &str| schema.get(name).flag();
    let embedded = flag("x-kubernetes-embedded-resource");
    if embedded && kind.text() != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        if errors.present(&kind, why) {
            errors.invalid(&kind, kind.text(), why)
        }
    } else if kind.text().is_empty()
        && !flag("x-kubernetes-int-or-string")
        && !flag("x-kubernetes-preserve-unknown-fields")
    {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.required(&kind, &format!("must not be empty {place}"));
    }
    let additional = schema.get("additionalProperties");
    if embedded && additional.is_set() {
        errors.forbidden(&additional, "must not be used if x-kubernetes-embedded-resource is set");
    }
    if level == Level::Root && !matches!(kind.text(), "" | "object") {
        errors.invalid(&kind, kind.text(), "must be object at the root");
    }
}

fn metadata(metadata: &At<'_, '_>, checks: bool, level: Level, errors: &mut Errors) {
    let kind = metadata.get("type");
    if checks && kind.text() != "object" {
        errors.invalid(&kind, kind.text(), "must be object");
    }
    if level != Level::Root {
        return;
    }
    let names_only =
        metadata.get("properties").entries().all(|(name, _)| matches!(name, "name" | "generateName"));
    let says_more = metadata.entries().any(|(name, value)| {
        let said = match value.value() {
            Value::Null | Value::Bool(false) => false,
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        };
        said && !matches!(name, "type" | "properties" | "default")
    });
    if says_more || !names_only {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(metadata, why);
    }
}

/// The `anyOf` lists that may name types, since they say "a number or a text".
#[derive(Clone, Copy)]
struct Skip {
    any_of: bool,
    /// The list in the first element of `allOf`.
    first: bool,
}

const NOTHING: Skip = Skip { any_of: false, first: false };

fn is_int_or_string(any_of: &Value) -> bool {
    any_of.as_array().is_some_and(|list| {
        let is = |item: &Value, kind: &str| {
            item.as_object()
                .is_some_and(|item| item.len() == 1 && item.get("type").is_some_and(|own| own == kind))
        };
        matches!(&**list, [one, two] if is(one, "integer") && is(two, "string"))
    })
}

fn values(schema: &At<'_, '_>, skip: Skip, errors: &mut Errors) {
    if !skip.any_of {
        schema.get("anyOf").items().for_each(|one| nested(&one, NOTHING, errors));
    }
    for (index, one) in schema.get("allOf").items().enumerate() {
        nested(&one, Skip { any_of: skip.first && index == 0, first: false }, errors);
    }
    schema.get("oneOf").items().for_each(|one| nested(&one, NOTHING, errors));
    nested(&schema.get("not"), NOTHING, errors);
    let pattern = schema.get("pattern");
    if let Err(why) = regexp::check(pattern.text()) {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.invalid(&pattern, pattern.text(), &why);
    }
}

/// A schema below a junctor (`allOf`, `anyOf`, `oneOf`, `not`) may only restrict values.
fn nested(schema: &At<'_, '_>, skip: Skip, errors: &mut Errors) {
    if !schema.value().is_object() {
        return;
    }
    values(schema, skip, errors);
    nested(&schema.get("items"), NOTHING, errors);
    schema.get("properties").entries().for_each(|(_, property)| nested(&property, NOTHING, errors));
    let (empty, undefined, off) = ("must be empty", "must be undefined", "must be false");
    let members = [
        ("type", empty),
        ("additionalProperties", undefined),
        ("default", undefined),
        ("title", empty),
        ("description", empty),
        ("nullable", off),
        ("x-kubernetes-preserve-unknown-fields", off),
        ("x-kubernetes-embedded-resource", off),
        ("x-kubernetes-int-or-string", off),
        ("x-kubernetes-list-map-keys", empty),
        ("x-kubernetes-list-type", undefined),
        ("x-kubernetes-map-type", undefined),
        ("x-kubernetes-validations", empty),
    ];
    for (name, must) in members {
        let member = schema.get(name);
        let said = match member.value() {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => must == undefined || !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        if said {
            errors.forbidden(&member, &format!("{must} to be structural"));
        }
    }
    let properties = schema.get("properties");
    let metadata = properties.key("metadata");
    if properties.value().get("metadata").is_some() {
        errors.forbidden(&metadata, "must not be specified in a nested context");
    }
}

/// Fields that `values` restricts below its junctors have to be specified by `schema`.
fn complete(values: &At<'_, '_>, schema: &At<'_, '_>, errors: &mut Errors) {
    restricted(&values.get("not"), schema, errors);
    for name in ["allOf", "anyOf", "oneOf"] {
        values.get(name).items().for_each(|one| restricted(&one, schema, errors));
    }
}

fn restricted(values: &At<'_, '_>, schema: &At<'_, '_>, errors: &mut Errors) {
    if !values.value().is_object() {
        return;
    }
    if !schema.is_set() {
        return errors.required(schema, &format!("because it is defined in {}", values.path()));
    }
    complete(values, schema, errors);
    restricted(&values.get("items"), &schema.get("items"), errors);
    let (properties, specified) = (values.get("properties"), schema.get("properties"));
    for (name, property) in properties.entries() {
        let own = specified.key(name);
        if own.is_set() {
            restricted(&property, &own, errors);
        } else {
            errors.required(&own, &format!("because it is defined in {}", property.path()));
        }
    }
}
