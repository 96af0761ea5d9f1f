//! StorageVersions (`pkg/apis/apiserverinternal/validation`).

use std::collections::{BTreeMap, BTreeSet};

use crate::causes::Cause;
use crate::gotext;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, list, optional_text, text, text_column};
use crate::kinds::behavior::columns::text::shortened;
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain, label_key, regex_text};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("storageversions", "StorageVersion").sub(&["status"]).conditional(),
    strategy: Strategy { names: NameFormat::OfRules, status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    for field in ["generateName", "name"] {
        let name = metadata.get(field);
        errors.in_format_if_given(&name, messages_of_name);
    }
    status(object, object, errors);
}

/// The object has only a status, which an update does not change.
pub fn update(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let mut servers = BTreeSet::new();
    for entry in status.get("storageVersions").items() {
        let server = entry.get("apiServerID");
        errors.distinct_from(&server, &mut servers);
        self::entry(&entry, errors);
    }
    common_version(&status, errors);
    conditions(&status, errors);
}

fn messages_of_name(name: &str) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let of_group = dns1123_subdomain(group).into_iter().map(|message| format!("the group segment {message}"));
    let of_resource =
        dns1035_label(resource).into_iter().map(|message| format!("the resource segment {message}"));
    of_group.chain(of_resource).collect()
}

pub fn entry(entry: &At<'_, '_>, errors: &mut Errors) {
    let server = entry.get("apiServerID");
    errors.in_format(&server, dns1123_subdomain);
    let encoding = entry.get("encodingVersion");
    version(&encoding, errors);
    let decodable = entry.get("decodableVersions");
    for one in decodable.items() {
        version(&one, errors);
    }
    if !decodable.texts().any(|one| one == encoding.text()) {
        let why = format!("decodableVersions must include encodingVersion {}", encoding.text());
        errors.invalid(&decodable, decodable.value(), &why);
    }
    let known: BTreeSet<&str> = decodable.texts().collect();
    for one in entry.get("servedVersions").items() {
        version(&one, errors);
        if !known.contains(one.text()) {
            errors.add(|| {
                let known: Vec<&str> = decodable.texts().collect();
                let why = format!(
                    "individual served version : {} must be included in decodableVersions : [{}]",
                    one.text(),
                    known.join(" ")
                );
                Cause::invalid(one.path().to_string(), gotext::quote(one.text()), &why)
            });
        }
    }
}

fn common_version(status: &At<'_, '_>, errors: &mut Errors) {
    let said = status.get("commonEncodingVersion");
    let entries = status.get("storageVersions");
    let entries = entries.value().as_array().map_or(&[][..], Vec::as_slice);
    match (common(entries), said.opt_text()) {
        (None, Some(text)) => errors.invalid(
            &said,
            text,
            "should be nil if servers do not agree on the same encoding version, or if there is no server \
             reporting the supported versions yet",
        ),
        (Some(actual), None) => {
            errors.invalid(&said, said.value(), &format!("the common encoding version is {actual}"));
        }
        (Some(actual), Some(text)) if actual != text => {
            errors.invalid(&said, text, &format!("the actual common encoding version is {actual}"));
        }
        _ => {}
    }
}

/// Validates the conditions. Upstream's paths lack the word `conditions`.
fn conditions(status: &At<'_, '_>, errors: &mut Errors) {
    let conditions = status.get("conditions");
    let mut seen = BTreeMap::new();
    for (index, condition) in conditions.value().as_array().into_iter().flatten().enumerate() {
        let place = status.index(index);
        let condition = place.holding(condition);
        let kind = condition.get("type");
        if let Some(before) = seen.insert(kind.text().to_owned(), index) {
            let why =
                format!("the type of the condition is not unique, it also appears in conditions[{before}]");
            errors.invalid(&kind, kind.text(), &why);
        }
        for name in [kind, condition.get("status")] {
            match name.text() {
                "" => errors.required(&name, ""),
                text => errors.invalid_each(&name, text, label_key(text)),
            }
        }
        for field in ["reason", "message"] {
            let text = condition.get(field);
            errors.present(&text, "");
        }
    }
}

fn version(at: &At<'_, '_>, errors: &mut Errors) {
    let messages = messages_of_version(at.text());
    if !messages.is_empty() {
        errors.invalid(at, at.text(), &messages.join(","));
    }
}

/// The errors of a version such as `v1` or `apps/v1`.
fn messages_of_version(text: &str) -> Vec<String> {
    let part = |name: &str, text: &str, rule: fn(&str) -> Vec<String>| -> Vec<String> {
        let messages = if text.is_empty() { vec!["must be non-empty".to_owned()] } else { rule(text) };
        messages.into_iter().map(|message| format!("{name} part: {message}")).collect()
    };
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [version] => part("version", version, dns1035_label),
        [group, version] => {
            let mut messages = part("group", group, dns1123_subdomain);
            messages.extend(part("version", version, dns1035_label));
            messages
        }
        _ => {
            let rule = "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
            let label = regex_text(rule, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]);
            vec![format!(
                "an apiVersion is {label} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
            )]
        }
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("CommonEncodingVersion", "Version that all servers encode the resource in.")
            .of(|object, _| optional_text(&object["status"]["commonEncodingVersion"], "<unset>").into()),
        text_column("StorageVersions", "Version that each server encodes the resource in.").of(
            |object, _| {
                shortened(list(&object["status"]["storageVersions"]).iter().map(server_version), "<unset>")
                    .into()
            },
        ),
        AGE,
    ],
    ..PLAIN
};

fn server_version(version: &Value) -> String {
    format!("{}={}", text(&version["apiServerID"]), text(&version["encodingVersion"]))
}

/// The encoding version of all entries; `None` if they differ or if there are none.
pub fn common(entries: &[Value]) -> Option<&str> {
    let first = encoding(entries.first()?)?;
    entries.iter().all(|entry| encoding(entry) == Some(first)).then_some(first)
}

/// The apiVersion in which a server encodes the resource.
pub fn encoding(entry: &Value) -> Option<&str> {
    entry.get("encodingVersion")?.as_str()
}
