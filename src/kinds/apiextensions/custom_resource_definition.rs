//! CustomResourceDefinitions (apiextensions-apiserver `pkg/apis/apiextensions/validation`).
//!
//! Upstream's internal form holds once what all versions have in common, and errors say where that stands.

pub mod columns;
pub mod declarations;
pub mod expressions;
pub mod names;
pub mod schema;
pub mod structural;

use std::collections::BTreeSet;

use crate::fields;
use crate::fields::ObjectMap;
use crate::gotext::quote;
use crate::kinds::admissionregistration::webhook;
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain};
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::same::{immutable, immutable_text, same};
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::status::{RESET, StatusRule};
use crate::kinds::behavior::strategy::{Hooks, Strategy, Writer};
use crate::kinds::behavior::warnings::KindWarnings;
use crate::patch::apply::fields::field_paths;
use crate::patch::apply::filter::Filter;
use crate::tree::Value;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("customresourcedefinitions", "CustomResourceDefinition")
        .short(&["crd", "crds"])
        .category("api-extensions")
        .sub(&["status"])
        .generation()
        .conditional(),
    strategy: Strategy {
        status: StatusRule::Reset(STATUS),
        status_metadata: RESET,
        hooks: &DefinitionHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &columns::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The zero value of the status type, as `encoding/json` prints it.
const STATUS: &str = r#"{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}"#;

#[derive(Debug)]
struct DefinitionHooks;

impl Hooks for DefinitionHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        remember_stored_version(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, _: &ObjectMap) {
        remember_stored_version(new);
    }

    /// Managers of the status may own labels here, though a write to the status keeps the stored ones.
    fn not_owned_through(&self, part: Part) -> Option<Filter> {
        (part == Part::Status).then(|| Filter::Exclude(field_paths(&[&["spec"]])))
    }
}

const APPROVAL: &str = "api-approved.kubernetes.io";

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

const SELECTABLE_FIELDS: usize = 8;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What an old object may keep.
#[derive(Clone, Copy, Default)]
pub struct Tolerated {
    no_schema: bool,
    unstructured: bool,
    odd_types: bool,
    unpruned_defaults: bool,
    loose_sets: bool,
    loose_map_keys: bool,
    unknown_reviews: bool,
    approval: bool,
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let group = fields::text(object, &["spec", "group"]);
    let wanted = format!("{}.{group}", fields::text(object, &["spec", "names", "plural"]));
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text() != wanted {
        errors.invalid(&name, name.text(), "must be spec.names.plural+\".\"+spec.group");
    }
    whole(object, Tolerated::default(), errors);
    if object.get("spec").and_then(|spec| spec.get("preserveUnknownFields")) == Some(&Value::Bool(true)) {
        preserves_unknown(object, errors);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let old_spec = At::member(old, "spec");
    let tolerated = Tolerated {
        no_schema: old_spec
            .get("versions")
            .items()
            .any(|version| !version.dig(&["schema", "openAPIV3Schema"]).is_set()),
        unstructured: schemas(&old_spec).any(|schema| !structural::is_structural(schema)),
        odd_types: schemas(&old_spec).any(schema::has_odd_types),
        unpruned_defaults: schemas(&old_spec).any(schema::has_unpruned_defaults),
        loose_sets: schemas(&old_spec).any(|old| schema::any(old, &schema::loose_set)),
        loose_map_keys: schemas(&old_spec).any(|old| schema::any(old, &schema::loose_map_keys)),
        unknown_reviews: {
            let versions = old_spec.dig(&["conversion", "webhook", "conversionReviewVersions"]);
            !versions.is_empty() && !versions.texts().any(|version| REVIEWS.contains(&version))
        },
        approval: approval(old) == approval(new),
    };
    whole(new, tolerated, errors);
    let spec = At::member(new, "spec");
    let established = fields::items(old, &["status", "conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    if established {
        immutable(&spec.get("scope"), &old_spec.get("scope"), errors);
        immutable_text(&spec.dig(&["names", "kind"]), &old_spec.dig(&["names", "kind"]), errors);
    }
    immutable_text(&spec.get("group"), &old_spec.get("group"), errors);
    immutable_text(&spec.dig(&["names", "plural"]), &old_spec.dig(&["names", "plural"]), errors);
    if spec.get("preserveUnknownFields").flag() && !old_spec.get("preserveUnknownFields").flag() {
        preserves_unknown(new, errors);
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    names::validate(&At::member(new, "status").get("acceptedNames"), errors);
}

fn whole(object: &ObjectMap, tolerated: Tolerated, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    self::spec(&spec, tolerated, errors);
    let status = At::member(object, "status");
    names::validate(&status.get("acceptedNames"), errors);
    stored_versions(&status.get("storedVersions"), &spec.get("versions"), errors);
    if !tolerated.approval {
        approved(object, errors);
    }
}

fn preserves_unknown(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    errors.invalid(
        &spec.get("preserveUnknownFields"),
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    );
}

/// Of all versions.
fn schemas<'v>(spec: &At<'v, '_>) -> impl Iterator<Item = &'v Value> + use<'v> {
    let versions = spec.value().get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    versions.iter().filter_map(|version| version.get("schema")?.get("openAPIV3Schema"))
}

pub fn spec(spec: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let group = spec.get("group");
    let messages = dns1123_subdomain(group.text());
    if group.text().is_empty() {
        errors.required(&group, "");
    } else if !messages.is_empty() {
        errors.invalid(&group, group.text(), &messages.join(","));
    } else if !group.text().contains('.') {
        errors.invalid(&group, group.text(), "should be a domain with at least one dot");
    }
    let scope = spec.get("scope");
    match scope.text() {
        "" => errors.required(&scope, ""),
        text => _ = errors.one_of(&scope, text, &["Cluster", "Namespaced"]),
    }
    versions(spec, tolerated, errors);
    names::required(&spec.get("names"), errors);
    names::validate(&spec.get("names"), errors);
    conversion(&spec.get("conversion"), tolerated, errors);
}

/// What all versions have in common; null if they have not.
fn common<'v>(versions: &At<'v, '_>, member: &str) -> Option<&'v Value> {
    let list = versions.value().as_array()?;
    let first = list.first()?.get(member).unwrap_or(&Value::Null);
    let same = |version: &Value| same(version.get(member).unwrap_or(&Value::Null), first);
    list.iter().all(same).then_some(first)
}

fn versions(spec: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let versions = spec.get("versions");
    let (schema, subresources) = (common(&versions, "schema"), common(&versions, "subresources"));
    let columns = common(&versions, "additionalPrinterColumns");
    let selectable = common(&versions, "selectableFields");
    let has_status = |value: &Value| value.get("status").is_some_and(|status| !status.is_null());
    let mut names = BTreeSet::new();
    let (mut unique, mut stored) = (true, 0);
    if schema.is_none_or(|schema| schema.get("openAPIV3Schema").is_none_or(Value::is_null))
        && !tolerated.no_schema
    {
        for version in versions.items() {
            let schema = version.get("schema");
            let schema = schema.get("openAPIV3Schema");
            if !schema.is_set() {
                errors.required(&schema, "");
            }
        }
    }
    for version in versions.items() {
        stored += usize::from(version.get("storage").flag());
        let name = version.get("name");
        unique &= names.insert(name.text());
        let messages = dns1035_label(name.text());
        if !messages.is_empty() {
            errors.invalid(&name, name.text(), &messages.join(","));
        }
        deprecation(&version, errors);
        if schema.is_none() {
            let status = has_status(subresources.unwrap_or(version.get("subresources").value()));
            schema::validate(&version.get("schema"), status, tolerated, errors);
        }
        if subresources.is_none() {
            names::scale(&version.get("subresources"), errors);
        }
        if columns.is_none() {
            version.get("additionalPrinterColumns").items().for_each(|column| self::column(&column, errors));
        }
        if selectable.is_none() {
            let schema = version.dig(&["schema", "openAPIV3Schema"]);
            let without = "may only be set when `version.schema.openAPIV3Schema` is not included";
            self::selectable(&version.get("selectableFields"), schema.value(), without, errors);
        }
    }
    if !unique {
        errors.invalid(&versions, versions.value(), "must contain unique version names");
    }
    if stored != 1 {
        errors.invalid(
            &versions,
            versions.value(),
            "must have exactly one version marked as storage version",
        );
    }
    let nothing = Value::Null;
    let first = versions.index(0);
    let first = first.get("name");
    let messages = dns1035_label(first.text());
    if !first.text().is_empty() && !messages.is_empty() {
        errors.invalid(&spec.other("version", first.value()), first.text(), &messages.join(","));
    }
    let any_status = versions.items().any(|version| has_status(version.get("subresources").value()));
    schema::validate(&spec.other("validation", schema.unwrap_or(&nothing)), any_status, tolerated, errors);
    names::scale(&spec.other("subresources", subresources.unwrap_or(&nothing)), errors);
    let columns = spec.other("additionalPrinterColumns", columns.unwrap_or(&nothing));
    columns.items().for_each(|column| self::column(&column, errors));
    let schema = schema.and_then(|schema| schema.get("openAPIV3Schema")).unwrap_or(&nothing);
    let without = "may only be set when validations.schema is included";
    let selectable = spec.other("selectableFields", selectable.unwrap_or(&nothing));
    self::selectable(&selectable, schema, without, errors);
}

fn deprecation(version: &At<'_, '_>, errors: &mut Errors) {
    let warning = version.get("deprecationWarning");
    let Some(text) = warning.opt_text() else { return };
    if !version.get("deprecated").flag() {
        return errors.invalid(&warning, text, "can only be set for deprecated versions");
    }
    if text.len() > 256 {
        errors.invalid(&warning, text, "must be <= 256 characters long");
    }
    if text.is_empty() {
        errors.invalid(&warning, text, "must not be an empty string");
    }
    if let Some((index, _)) = text.char_indices().find(|(_, c)| !crate::gotext::is_printable(*c)) {
        let why = "must only contain printable UTF-8 characters; non-printable character found at index";
        errors.invalid(&warning, text, &format!("{why} {index}"));
    }
}

pub fn column(column: &At<'_, '_>, errors: &mut Errors) {
    let (name, kind, format) = (column.get("name"), column.get("type"), column.get("format"));
    if name.text().is_empty() {
        errors.required(&name, "");
    }
    let one_of = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.text().is_empty() {
        errors.required(&kind, &one_of);
    } else if !COLUMN_TYPES.contains(&kind.text()) {
        errors.invalid(&kind, kind.text(), &one_of);
    }
    if !format.text().is_empty() && !COLUMN_FORMATS.contains(&format.text()) {
        errors.invalid(&format, format.text(), &format!("must be one of {}", COLUMN_FORMATS.join(",")));
    }
    let path = column.get("jsonPath");
    let path = path.called("JSONPath");
    if path.text().is_empty() {
        errors.required(&path, "");
    } else {
        names::simple_path(&path, errors);
    }
}

/// `without` is what upstream says if there is no schema.
pub fn selectable(list: &At<'_, '_>, schema: &Value, without: &str, errors: &mut Errors) {
    if !list.is_empty() && schema.is_null() {
        return errors.invalid(list, "", without);
    }
    let mut seen = BTreeSet::new();
    for field in list.items() {
        let path = field.get("jsonPath");
        let text = path.text();
        if text.is_empty() {
            errors.required(&path, "");
            continue;
        }
        if !text.starts_with(['.', '[']) {
            let word = text.split(['.', '[']).next().unwrap_or_default();
            errors.invalid(&path, text, &format!("is an invalid path: expected [ or . but got: {word}"));
            continue;
        }
        let mut steps = text.strip_prefix('.').unwrap_or("").split('.');
        let found = steps.try_fold(schema, |schema, step| schema.get("properties")?.get(step));
        let Some(found) = found else {
            errors.invalid(&path, text, "is an invalid path: does not refer to a valid field");
            continue;
        };
        if text.starts_with(".metadata") {
            errors.invalid(&path, text, "must not point to fields in metadata");
        }
        let kind = found.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["string", "boolean", "integer"].contains(&kind) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.invalid(&path, text, why);
        }
        if !seen.insert(text) {
            errors.duplicate(&path, text);
        }
    }
    if seen.len() > SELECTABLE_FIELDS {
        errors.too_many(list, seen.len(), SELECTABLE_FIELDS);
    }
}

fn conversion(conversion: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    if !conversion.is_set() {
        return;
    }
    let (strategy, hook) = (conversion.get("strategy"), conversion.get("webhook"));
    match strategy.text() {
        "" => errors.required(&strategy, ""),
        text => _ = errors.one_of(&strategy, text, &["None", "Webhook"]),
    }
    let client = conversion.other("webhookClientConfig", hook.get("clientConfig").value());
    let reviews = conversion.other("conversionReviewVersions", hook.get("conversionReviewVersions").value());
    if strategy.text() != "Webhook" {
        for field in [&client, &reviews] {
            if field.is_set() && (field.value().is_object() || !field.is_empty()) {
                errors.forbidden(field, "should not be set when strategy is not set to Webhook");
            }
        }
        return;
    }
    if client.is_set() {
        webhook::client(&client, errors);
    } else {
        errors.required(&client, "required when strategy is set to Webhook");
    }
    if reviews.is_empty() {
        return errors.required(&reviews, "");
    }
    let mut seen = BTreeSet::new();
    for version in reviews.items() {
        if !seen.insert(version.text()) {
            errors.invalid(&version, version.text(), "duplicate version");
            continue;
        }
        errors.in_format(&version, dns1035_label);
    }
    if !tolerated.unknown_reviews && !REVIEWS.iter().any(|known| seen.contains(known)) {
        errors.invalid(&reviews, reviews.value(), "must include at least one of v1, v1beta1");
    }
}

fn stored_versions(stored: &At<'_, '_>, versions: &At<'_, '_>, errors: &mut Errors) {
    if stored.is_empty() {
        return errors.invalid(stored, stored.value(), "must have at least one stored version");
    }
    // A name counts once.
    let mut left: BTreeSet<&str> = stored.texts().collect();
    for version in versions.items() {
        let name = version.get("name").text();
        if !left.remove(name) && version.get("storage").flag() {
            errors.invalid(stored, stored.value(), &format!("must have the storage version {name}"));
        }
    }
    let names: BTreeSet<&str> = versions.items().map(|version| version.get("name").text()).collect();
    for known in stored.items() {
        let name = known.text();
        if !names.contains(name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.invalid(&known, name, &why);
        }
    }
}

#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval(object: &ObjectMap) -> Approval {
    let text = fields::text(object, &["metadata", "annotations", APPROVAL]);
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
            && !rest.starts_with('/')
            && !rest.is_empty()
    });
    match text {
        "" => Approval::Missing,
        _ if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Approved,
        _ => Approval::Invalid,
    }
}

/// Groups of the community need somebody's word.
fn approved(object: &ObjectMap, errors: &mut Errors) {
    let group = fields::text(object, &["spec", "group"]);
    let own =
        |domain: &str| group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    if !own("k8s.io") && !own("kubernetes.io") {
        return;
    }
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let annotation = annotations.key(APPROVAL);
    let need = format!("protected groups must have approval annotation {}", quote(APPROVAL));
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval(object) {
        Approval::Missing => errors.required(&annotation, &format!("{need}, {see}")),
        Approval::Invalid => {
            let why = format!("{need} with either a URL or a reason starting with \"unapproved\", {see}");
            errors.invalid(&annotation, annotation.text(), &why);
        }
        Approval::Bypassed | Approval::Approved => {}
    }
}

/// The status lists every version in which objects may have been stored.
pub fn remember_stored_version(object: &mut ObjectMap) {
    let storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let version = fields::items(object, &["spec", "versions"]).iter().find(storage);
    let Some(name) = version.and_then(|version| version.get("name")).filter(|name| name.is_string()) else {
        return;
    };
    let mut stored = fields::items(object, &["status", "storedVersions"]).to_vec();
    if !stored.contains(name) {
        stored.push(name.clone());
        fields::object_mut(object, "status").insert("storedVersions", stored.into());
    }
}
