//! Columns of CustomResourceDefinitions.

use crate::kinds::behavior::columns::cell::{
    NAME, PLAIN, boolean_column, cells, flag, list, name, text, text_column, wide,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::columns::{CREATED_AT, EmptyRows, Printer, created_at};
use crate::tree::Value;

pub static COLUMNS: Printer = Printer {
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
