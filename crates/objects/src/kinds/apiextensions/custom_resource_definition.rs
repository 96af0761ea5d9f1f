//! CustomResourceDefinitions (apiextensions-apiserver `pkg/apis/apiextensions/validation`).
//!
//! Upstream's internal form holds once what all versions have in common, and errors say where that stands.

mod approval;
mod bundle;
pub mod columns;
pub mod conditions;
pub mod expressions;
pub mod names;
pub mod naming;
mod remarks;
pub mod schema;
mod selectable;
pub mod structural;
mod subschemas;
mod versions;

use std::collections::BTreeSet;

use self::expressions::StoredExpressions;
use self::schema::stored;
use self::versions::versions;
use crate::fields;
use crate::kinds::admissionregistration::webhook;
use crate::kinds::behavior::deletion::Dependents;
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain};
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::rules::same::{immutable, immutable_text, same};
use crate::kinds::behavior::strategy::status::{StatusMetadata, StatusRule};
use crate::kinds::prelude::*;
use crate::patch::apply::fields::field_paths;
use crate::patch::apply::filter::Filter;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("customresourcedefinitions", "CustomResourceDefinition")
        .short(&["crd", "crds"])
        .category("api-extensions")
        .sub(&["status"])
        .generation()
        .conditional(),
    strategy: Strategy {
        status: StatusRule::Reset(STATUS),
        // Upstream means to keep all of it as it is, and keeps nothing.
        status_metadata: StatusMetadata::Open,
        hooks: &DefinitionHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status).without_finalizers(),
    warnings: remarks::WARNINGS,
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

    fn prepare_update(&self, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) {
        remember_stored_version(new);
    }

    /// The first DELETE marks the definition, whatever its options say.
    fn begin_deletion(&self, object: &ObjectMap, _: Dependents, now: &str) -> Option<ObjectMap> {
        let marked = fields::at(object, &["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null());
        (!marked).then(|| conditions::begin_deletion(object, now))
    }

    fn precondition_words(&self) -> Option<&'static str> {
        Some("precondition failed")
    }

    /// A write to the status may change labels and all else of the metadata.
    fn not_owned_through(&self, part: Part) -> Option<Filter> {
        (part == Part::Status).then(|| Filter::Exclude(field_paths(&[&["spec"]])))
    }
}

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Faults that validation tolerates, in most cases because the stored definition has them already.
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
    invalid_bundle: bool,
}

/// Parts of the stored definition that the new one may keep, although a new definition could not have them.
#[derive(Default)]
pub struct Ratcheting {
    /// The versions that may have more selectable fields than there may be; no name stands for what all have in common.
    many_fields: BTreeSet<String>,
    /// The versions whose schemas have not changed.
    schemas: BTreeSet<String>,
    expressions: StoredExpressions,
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let group = fields::text(object, &["spec", "group"]);
    let wanted = format!("{}.{group}", fields::text(object, &["spec", "names", "plural"]));
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text() != wanted {
        errors.invalid(&name, name.text(), "must be spec.names.plural+\".\"+spec.group");
    }
    let tolerated = Tolerated { invalid_bundle: true, ..Tolerated::default() };
    whole(object, tolerated, &Ratcheting::default(), errors);
    if object.get("spec").and_then(|spec| spec.get("preserveUnknownFields")) == Some(&Value::Bool(true)) {
        preserves_unknown(object, errors);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let old_spec = At::member(old, "spec");
    let established = conditions::is_true(old, "Established");
    let tolerated = Tolerated {
        no_schema: old_spec
            .get("versions")
            .items()
            .any(|version| !version.dig(&["schema", "openAPIV3Schema"]).is_set()),
        unstructured: schemas(&old_spec).any(|schema| !structural::is_structural(schema)),
        odd_types: schemas(&old_spec).any(stored::has_odd_types),
        unpruned_defaults: schemas(&old_spec).any(stored::has_unpruned_defaults),
        loose_sets: schemas(&old_spec).any(|old| stored::any(old, &stored::loose_set)),
        loose_map_keys: schemas(&old_spec).any(|old| stored::any(old, &stored::loose_map_keys)),
        unknown_reviews: {
            let versions = old_spec.dig(&["conversion", "webhook", "conversionReviewVersions"]);
            !versions.is_empty() && !versions.texts().any(|version| REVIEWS.contains(&version))
        },
        approval: approval::of(old) == approval::of(new),
        invalid_bundle: !established || !bundle::of_conversion_is_valid(old),
    };
    let spec = At::member(new, "spec");
    let mut kept = Ratcheting {
        many_fields: unchanged_many_fields(&spec, &old_spec),
        schemas: unchanged_schemas(&spec, &old_spec),
        ..Ratcheting::default()
    };
    schemas(&old_spec).for_each(|schema| kept.expressions.read(schema));
    whole(new, tolerated, &kept, errors);
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

fn whole(object: &ObjectMap, tolerated: Tolerated, kept: &Ratcheting, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    self::spec(&spec, tolerated, kept, errors);
    let status = At::member(object, "status");
    names::validate(&status.get("acceptedNames"), errors);
    stored_versions(&status.get("storedVersions"), &spec.get("versions"), errors);
    if !tolerated.approval {
        approval::required(object, errors);
    }
}

/// Lists of selectable fields that were too long before, and are as they were.
fn unchanged_many_fields(spec: &At<'_, '_>, old_spec: &At<'_, '_>) -> BTreeSet<String> {
    let (versions, old_versions) = (spec.get("versions"), old_spec.get("versions"));
    let mut many = BTreeSet::new();
    let shared = (common(&versions, "selectableFields"), common(&old_versions, "selectableFields"));
    if let (Some(new), Some(old)) = shared
        && selectable::are_too_many(old)
        && same(new, old)
    {
        many.insert(String::new());
    }
    for version in versions.items() {
        let name = version.get("name").text();
        let fields = version.get("selectableFields").value();
        let is_same = |old: At<'_, '_>| {
            let kept = old.get("selectableFields").value();
            old.get("name").text() == name && selectable::are_too_many(kept) && same(fields, kept)
        };
        if shared.1.is_none() && old_versions.items().any(is_same) {
            many.insert(name.to_owned());
        }
    }
    many
}

/// The versions whose schemas are as they were.
fn unchanged_schemas(spec: &At<'_, '_>, old_spec: &At<'_, '_>) -> BTreeSet<String> {
    let (versions, old_versions) = (spec.get("versions"), old_spec.get("versions"));
    let is_unchanged = |version: &At<'_, '_>| {
        let name = version.get("name").text();
        let old = old_versions.items().find(|old| old.get("name").text() == name);
        old.is_some_and(|old| same(version.get("schema").value(), old.get("schema").value()))
    };
    versions.items().filter(is_unchanged).map(|version| version.get("name").text().to_owned()).collect()
}

fn preserves_unknown(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    errors.invalid(
        &spec.get("preserveUnknownFields"),
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    );
}

/// The schemas of all versions.
fn schemas<'v>(spec: &At<'v, '_>) -> impl Iterator<Item = &'v Value> + use<'v> {
    let versions = spec.value().get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    versions.iter().filter_map(|version| version.get("schema")?.get("openAPIV3Schema"))
}

pub fn spec(spec: &At<'_, '_>, tolerated: Tolerated, kept: &Ratcheting, errors: &mut Errors) {
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
    errors.present_one_of(&scope, &["Cluster", "Namespaced"]);
    versions(spec, tolerated, kept, errors);
    names::required(&spec.get("names"), errors);
    names::validate(&spec.get("names"), errors);
    let (conversion, preserves) = (spec.get("conversion"), spec.get("preserveUnknownFields"));
    let strategy = conversion.get("strategy");
    if preserves.flag() && conversion.is_set() && strategy.text() != "None" {
        errors.invalid(&strategy, strategy.text(), "must be None if spec.preserveUnknownFields is true");
    }
    self::conversion(&conversion, tolerated, errors);
}

/// The value of a member that all versions have in common, which is null if all lack it; `None` if they differ.
fn common<'v>(versions: &At<'v, '_>, member: &str) -> Option<&'v Value> {
    let list = versions.value().as_array()?;
    let first = list.first()?.get(member).unwrap_or(&Value::Null);
    let same = |version: &Value| same(version.get(member).unwrap_or(&Value::Null), first);
    list.iter().all(same).then_some(first)
}

fn conversion(conversion: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    if !conversion.is_set() {
        return;
    }
    let (strategy, hook) = (conversion.get("strategy"), conversion.get("webhook"));
    errors.present_one_of(&strategy, &["None", "Webhook"]);
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
        let bundle = client.get("caBundle");
        if let Err(why) = bundle::check(bundle.text())
            && !tolerated.invalid_bundle
        {
            errors.invalid(&bundle, bundle.text(), &why);
        }
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
