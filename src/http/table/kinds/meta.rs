//! The API's own bookkeeping: aggregated APIs, custom resource definitions, storage versions.

use super::super::cell::{
    AGE, NAME, PLAIN, age, boolean_column, cells, condition, flag, list, name, optional_text, text,
    text_column, wide,
};
use super::super::text::{join, shortened};
use super::super::{Column, EmptyRows, Printer};
use super::{CREATED_AT, created_at};
use crate::tree::Value;

pub static API_SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text_column("Service", "Service behind the API, or Local."),
        text_column("Available", "Whether the API can be reached."),
        AGE,
    ],
    cells: |object, now| cells![name(object), backend(object), availability(object), age(object, now)],
    ..PLAIN
};

pub static CUSTOM_RESOURCE_DEFINITION: Printer = Printer {
    columns: &[
        NAME,
        text_column("Scope", "Cluster or Namespaced."),
        text_column("Versions", "Versions that are served."),
        CREATED_AT,
        wide(text_column("Group", "API group of the resource.")),
        wide(text_column("Kind", "Kind of the custom objects.")),
        wide(text_column("ShortNames", "Short names of the resource.")),
        wide(boolean_column("Established", "Whether the resource is being served.")),
    ],
    cells: |object, _| {
        let (spec, names) = (&object["spec"], &object["spec"]["names"]);
        cells![
            name(object),
            text(&spec["scope"]),
            served_versions(spec),
            created_at(object),
            text(&spec["group"]),
            text(&names["kind"]),
            join(list(&names["shortNames"]).iter().map(text), ","),
            established(&object["status"]),
        ]
    },
    empty: EmptyRows::Null,
    ..PLAIN
};

pub static STORAGE_VERSION: Printer = Printer {
    columns: &[
        NAME,
        text_column("CommonEncodingVersion", "Version that all servers encode the resource in."),
        text_column("StorageVersions", "Version that each server encodes the resource in."),
        AGE,
    ],
    cells: |object, now| {
        let status = &object["status"];
        cells![
            name(object),
            optional_text(&status["commonEncodingVersion"], "<unset>"),
            shortened(list(&status["storageVersions"]).iter().map(server_version), "<unset>"),
            age(object, now),
        ]
    },
    ..PLAIN
};

pub static STORAGE_VERSION_MIGRATION: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        text_column("Resource", "Resource that is rewritten."),
        text_column("Status", "How far that is."),
    ],
    cells: |object, _| {
        let resource = &object["spec"]["resource"];
        // The dot stays where the group is empty.
        let resource = format!("{}.{}", text(&resource["resource"]), text(&resource["group"]));
        cells![name(object), resource, migration_state(object)]
    },
    ..PLAIN
};

/// The last of these conditions that holds.
fn migration_state(migration: &Value) -> &str {
    let holds = |condition: &&Value| {
        condition["status"] == "True"
            && matches!(text(&condition["type"]), "Running" | "Failed" | "Succeeded")
    };
    let state = list(&migration["status"]["conditions"]).iter().rfind(holds);
    state.map_or("Unknown", |condition| text(&condition["type"]))
}

fn backend(api_service: &Value) -> String {
    let service = &api_service["spec"]["service"];
    if !service.is_object() {
        return "Local".to_owned();
    }
    format!("{}/{}", text(&service["namespace"]), text(&service["name"]))
}

fn availability(api_service: &Value) -> String {
    let Some(available) = condition(&api_service["status"]["conditions"], "Available") else {
        return "Unknown".to_owned();
    };
    match (text(&available["status"]), text(&available["reason"])) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

/// `v1(storage),v1beta1`.
fn served_versions(spec: &Value) -> String {
    let served = list(&spec["versions"]).iter().filter(|version| flag(&version["served"]));
    let mut names: Vec<String> = served
        .map(|version| {
            let mark = if flag(&version["storage"]) { "(storage)" } else { "" };
            format!("{}{mark}", text(&version["name"]))
        })
        .collect();
    names.sort_unstable();
    names.join(",")
}

fn established(status: &Value) -> bool {
    list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn server_version(version: &Value) -> String {
    format!("{}={}", text(&version["apiServerID"]), text(&version["encodingVersion"]))
}
