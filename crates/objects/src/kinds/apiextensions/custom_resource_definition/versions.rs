//! Versions of a definition, and what each says beside its schema.

use std::collections::BTreeSet;

use super::{Ratcheting, Tolerated, common, names, schema, selectable};
use crate::kinds::behavior::format::dns1035_label;
use crate::kinds::prelude::*;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn versions(spec: &At<'_, '_>, tolerated: Tolerated, kept: &Ratcheting, errors: &mut Errors) {
    let versions = spec.get("versions");
    let (schema, subresources) = (common(&versions, "schema"), common(&versions, "subresources"));
    let columns = common(&versions, "additionalPrinterColumns");
    let selectable = common(&versions, "selectableFields");
    let has_status = |value: &Value| value.get("status").is_some_and(|status| !status.is_null());
    let mut names = BTreeSet::new();
    let (mut unique, mut stored) = (true, 0);
    if schema.is_none_or(|schema| schema.get("openAPIV3Schema").is_none_or(Value::is_null)) {
        let preserves = spec.get("preserveUnknownFields").flag();
        let why = if tolerated.no_schema { "because otherwise all fields are pruned" } else { "" };
        let needs = |version: &At<'_, '_>| match tolerated.no_schema {
            true => version.get("served").flag() && !preserves,
            false => true,
        };
        for version in versions.items().filter(needs) {
            let schema = version.get("schema");
            let schema = schema.get("openAPIV3Schema");
            if !schema.is_set() {
                errors.required(&schema, why);
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
            schema::validate(&version.get("schema"), name.text(), status, tolerated, kept, errors);
        }
        if subresources.is_none() {
            names::scale(&version.get("subresources"), errors);
        }
        if columns.is_none() {
            version.get("additionalPrinterColumns").items().for_each(|column| self::column(&column, errors));
        }
        if selectable.is_none() {
            let own = version.dig(&["schema", "openAPIV3Schema"]);
            // Upstream moves a schema that is equal in all versions to the top, and then no longer finds it in the version.
            let schema_here = if schema.is_none() { own.value() } else { &Value::Null };
            let without = "may only be set when `version.schema.openAPIV3Schema` is not included";
            let fields = version.get("selectableFields");
            let may_be_too_many = kept.many_fields.contains(name.text());
            selectable::validate(&fields, schema_here, without, may_be_too_many, errors);
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
    let validation = spec.other("validation", schema.unwrap_or(&nothing));
    schema::validate(&validation, first.text(), any_status, tolerated, kept, errors);
    names::scale(&spec.other("subresources", subresources.unwrap_or(&nothing)), errors);
    let columns = spec.other("additionalPrinterColumns", columns.unwrap_or(&nothing));
    columns.items().for_each(|column| self::column(&column, errors));
    let schema = schema.and_then(|schema| schema.get("openAPIV3Schema")).unwrap_or(&nothing);
    let without = "may only be set when validations.schema is included";
    let selectable = spec.other("selectableFields", selectable.unwrap_or(&nothing));
    selectable::validate(&selectable, schema, without, kept.many_fields.contains(""), errors);
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
    errors.present(&name, "");
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
    if errors.present(&path, "") {
        names::simple_path(&path, errors);
    }
}
