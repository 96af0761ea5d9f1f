//! Schemas of custom resources: what no schema may say.

mod list_types;
pub mod stored;

use rowplane_cel::rules::FieldPath;

use self::list_types::map_list;
use super::stored::{loose_map_keys, loose_set};
use crate::kinds::apiextensions::custom_resource_definition::expressions::{Expressions, Spot};
use crate::kinds::apiextensions::custom_resource_definition::{Ratcheting, Tolerated, structural};
use crate::kinds::behavior::rules::object_meta;
use crate::kinds::prelude::*;
use crate::schema::builtin;
use crate::schema::structural::DefaultRules;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const METADATA: [&str; 3] = ["metadata", "kind", "apiVersion"];

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Members that a schema may have at its root beside a subresource `status`: names in Go, which upstream lists, and in JSON.
const AT_THE_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// The place of a schema, as far as its validation depends on it.
#[derive(Clone, Copy)]
struct SchemaPosition {
    root: bool,
    in_metadata: bool,
    /// Why there may be no default.
    no_default: Option<&'static str>,
    tolerated: Tolerated,
}

/// `versions[i].schema` of a version, or what stands for those of all versions under the name of the first.
pub fn validate(
    validation: &At<'_, '_>,
    version: &str,
    has_status: bool,
    tolerated: Tolerated,
    kept: &Ratcheting,
    errors: &mut Errors,
) {
    let schema = validation.get("openAPIV3Schema");
    if !schema.is_set() {
        return;
    }
    let before = errors.len();
    if has_status {
        root(validation, &schema, errors);
    }
    if schema.get("nullable").flag() {
        errors.forbidden(&schema.get("nullable"), "nullable cannot be true at the root");
    }
    let unconvertible = structural::unconvertible(schema.value()).filter(|_| !tolerated.unstructured);
    // What rules speak of is known only of a structural schema.
    let mut expressions = None;
    if !tolerated.unstructured && unconvertible.is_none() {
        let before = errors.len();
        structural::validate(&schema, errors);
        if errors.len() == before {
            defaults(&schema, tolerated, errors);
        }
        let is_unlimited = kept.schemas.contains(version);
        let is_sound = errors.len() == before;
        expressions = is_sound.then(|| Expressions::new(&kept.expressions, is_unlimited, errors));
    }
    let place = SchemaPosition { root: true, in_metadata: false, no_default: None, tolerated };
    let spot = expressions.is_some().then(|| Spot::root(schema.value(), true));
    Walk { errors: &mut *errors, expressions: expressions.as_mut() }.node(&schema, place, spot.as_ref());
    if let Some(expressions) = expressions {
        expressions.tell(&schema, errors);
    }
    if let Some(why) = unconvertible.filter(|_| errors.len() == before) {
        errors.invalid(&schema, "", &why);
    }
}

/// Errors of the defaults of a structural schema.
fn defaults(schema: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let types = builtin::types();
    let rules = DefaultRules {
        types: &types,
        may_be_unpruned: tolerated.unpruned_defaults,
        asks_rules: errors.asks_expressions(),
        resource: object_meta::embedded,
    };
    let found = rules.find(schema.value(), &schema.path().to_string());
    if found.passed_over {
        errors.looks_at_expressions();
    }
    if found.no_stack {
        errors.leave_unchecked();
    }
    errors.append_causes(found.causes);
}

/// The status is validated by its own part of the schema, which must say all there is to say.
fn root(validation: &At<'_, '_>, schema: &At<'_, '_>, errors: &mut Errors) {
    if !matches!(schema.get("type").text(), "object" | "") {
        let kind = schema.get("type");
        let at = validation.other("openAPIV3Schema.type", kind.value());
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return errors.invalid(&at, kind.text(), why);
    }
    let allowed = |name: &str| AT_THE_ROOT.iter().any(|(_, json)| *json == name);
    if schema.entries().any(|(name, value)| value.is_set() && !allowed(name)) {
        let names: Vec<&str> = AT_THE_ROOT.iter().map(|(go, _)| *go).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        errors.invalid(schema, schema.value(), &why);
    }
}

struct Walk<'w, 's> {
    errors: &'w mut Errors,
    /// Nothing, if rules are not looked at.
    expressions: Option<&'w mut Expressions<'s>>,
}

impl Walk<'_, '_> {
    /// `spot` is nothing where no rules may stand.
    fn node(&mut self, schema: &At<'_, '_>, place: SchemaPosition, spot: Option<&Spot<'_>>) {
        if !schema.value().is_object() {
            return;
        }
        let before = self.errors.len();
        unsupported(schema, place, self.errors);
        if schema.get("uniqueItems").flag() {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.forbidden(&schema.get("uniqueItems"), why);
        }
        let below = SchemaPosition { root: false, ..place };
        self.members(schema, place, spot);
        self.node(&schema.get("not"), below, None);
        for name in ["allOf", "oneOf", "anyOf"] {
            schema.get(name).items().for_each(|one| self.node(&one, below, None));
        }
        for name in ["definitions", "dependencies"] {
            schema.get(name).entries().for_each(|(_, one)| self.node(&one, below, None));
        }
        let items = schema.get("items");
        let of_items = spot.map(|spot| spot.items(schema, items.value()));
        self.node(&items, below, of_items.as_ref());
        items.items().for_each(|one| self.node(&one, below, None));
        extensions(schema, place.tolerated, self.errors);
        rules(schema, self.errors);
        // What rules say of a schema that is wrong itself, here or below, would help nobody.
        if let (Some(expressions), Some(spot), true) =
            (&mut self.expressions, spot, self.errors.len() == before)
        {
            expressions.look_at(schema, spot);
        }
    }

    fn members(&mut self, schema: &At<'_, '_>, place: SchemaPosition, spot: Option<&Spot<'_>>) {
        let (additional, properties) = (schema.get("additionalProperties"), schema.get("properties"));
        if additional.is_set() {
            if !properties.is_empty() && additional.opt_flag() != Some(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.errors.forbidden(&additional, why);
            }
            let no_default = if place.in_metadata {
                Some("inside additionalProperties applying to object metadata")
            } else {
                place.no_default
            };
            let of_values = spot.map(|spot| spot.values(schema, additional.value()));
            self.node(&additional, SchemaPosition { root: false, no_default, ..place }, of_values.as_ref());
        }
        let embedded = schema.get("x-kubernetes-embedded-resource").flag();
        for (name, property) in properties.entries() {
            let mut below = SchemaPosition { root: false, ..place };
            if (place.root || embedded) && METADATA.contains(&name) {
                below.in_metadata = true;
                if place.root {
                    below.no_default = Some(match name {
                        "metadata" => "in top-level metadata",
                        "kind" => "in top-level kind",
                        _ => "in top-level apiVersion",
                    });
                }
            }
            let of_property = spot.map(|spot| spot.property(schema, name, property.value()));
            self.node(&property, below, of_property.as_ref());
        }
    }
}

fn unsupported(schema: &At<'_, '_>, place: SchemaPosition, errors: &mut Errors) {
    let kind = schema.get("type");
    if !kind.text().is_empty() && !TYPES.contains(&kind.text()) && !place.tolerated.odd_types {
        errors.not_supported(&kind, kind.text(), &TYPES);
    }
    if let Some(why) = place.no_default.filter(|_| schema.get("default").is_set()) {
        errors.forbidden(&schema.get("default"), &format!("must not be set {why}"));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let member = schema.get(name);
        let said = match member.value() {
            Value::Null => false,
            Value::String(text) => !text.is_empty() || name == "$ref",
            Value::Object(entries) => {
                !entries.is_empty() || name == "dependencies" || name == "additionalItems"
            }
            _ => true,
        };
        if said {
            errors.forbidden(&member, &format!("{name} is not supported"));
        }
    }
    if kind.text() == "null" {
        errors.forbidden(&kind, "type cannot be set to null, use nullable as an alternative");
    }
    if !schema.get("items").value().as_array().is_none_or(Vec::is_empty) {
        errors.forbidden(&schema.get("items"), "items must be a schema object and not an array");
    }
    let embedded = schema.get("x-kubernetes-embedded-resource");
    if place.in_metadata && embedded.flag() {
        errors.forbidden(&embedded, "must not be used inside of resource meta");
    }
}

fn extensions(schema: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let preserve = schema.get("x-kubernetes-preserve-unknown-fields");
    if preserve.opt_flag() == Some(false) {
        errors.invalid(&preserve, false, "must be true or undefined");
    }
    let (map, list, keys) = (
        schema.get("x-kubernetes-map-type"),
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-list-map-keys"),
    );
    for (extension, kind, name) in
        [(&map, "object", "x-kubernetes-map-type"), (&list, "array", "x-kubernetes-list-type")]
    {
        let own = schema.get("type");
        if extension.is_set() && own.text() != kind {
            let why = format!("must be {kind} if {name} is specified");
            if errors.present(&own, &why) {
                errors.invalid(&own, own.text(), &why)
            }
        }
    }
    if map.is_set() {
        errors.one_of(&map, map.text(), &["atomic", "granular"]);
    }
    let items = schema.get("items");
    if schema.get("type").text() == "array" && !tolerated.loose_sets {
        loose_set(schema, errors);
    }
    if list.is_set() {
        errors.one_of(&list, list.text(), &["atomic", "set", "map"]);
    }
    if !keys.is_empty() && list.text() != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        if list.is_set() { errors.invalid(&list, list.text(), why) } else { errors.required(&list, why) }
    }
    if list.text() == "map" {
        map_list(&items, &keys, errors);
    }
    if !tolerated.loose_map_keys {
        loose_map_keys(schema, errors);
    }
}

/// Errors of the rules of any schema, also of one that is not structural.
fn rules(schema: &At<'_, '_>, errors: &mut Errors) {
    let rules = schema.get("x-kubernetes-validations");
    let has_path = |rule: At<'_, '_>| !rule.get("fieldPath").text().is_empty();
    // Nobody knows the paths in what is no structural schema.
    let knows_paths = rules.items().any(has_path) && structural::unconvertible(schema.value()).is_none();
    for rule in rules.items() {
        self::rule(&rule, errors);
        let path = rule.get("fieldPath");
        if knows_paths && !path.text().is_empty() && FieldPath::parse(path.text(), schema.value()).is_err() {
            errors.invalid(&path, path.text(), "must be a valid path");
        }
    }
}

fn rule(rule: &At<'_, '_>, errors: &mut Errors) {
    let (text, message) = (rule.get("rule"), rule.get("message"));
    let breaks = |text: &str| text.trim().contains(['\n', '\r']);
    let blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if text.text().trim().is_empty() {
        errors.required(&text, "rule is not specified");
    } else if blank(message.text()) {
        errors.invalid(&message, message.text(), "must be non-empty if specified");
    } else if breaks(message.text()) {
        errors.invalid(&message, message.text(), "must not contain line breaks");
    } else if breaks(text.text()) && message.text().is_empty() {
        errors.required(&message, "message must be specified if rule contains line breaks");
    }
    let expression = rule.get("messageExpression");
    if blank(expression.text()) {
        errors.required(&expression, "messageExpression must be non-empty if specified");
    }
    let reason = rule.get("reason");
    if reason.is_set() {
        errors.one_of(&reason, reason.text(), &REASONS);
    }
    let path = rule.get("fieldPath");
    if blank(path.text()) {
        errors.invalid(&path, path.text(), "must be non-empty if specified");
    }
    if path.text().contains(['\n', '\r']) {
        errors.invalid(&path, path.text(), "must not contain line breaks");
    }
}
