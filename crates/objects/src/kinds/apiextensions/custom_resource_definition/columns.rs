//! Columns of CustomResourceDefinitions.

use crate::kinds::behavior::columns::cell::{
    NAME, PLAIN, boolean_column, flag, list, text, text_column, wide,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::columns::{CREATED_AT, EmptyRows, Printer};
use crate::tree::Value;

pub static COLUMNS: Printer =
    Printer {
        columns: &[
            NAME,
            text_column("Scope", "Cluster or Namespaced.").at("spec.scope"),
            text_column("Versions", "Versions that are served.")
                .of(|object, _| served_versions(&object["spec"]).into()),
            CREATED_AT,
            wide(text_column("Group", "API group of the resource.").at("spec.group")),
            wide(text_column("Kind", "Kind of the custom objects.").at("spec.names.kind")),
            wide(text_column("ShortNames", "Short names of the resource.").of(|object, _| {
                join(list(&object["spec"]["names"]["shortNames"]).iter().map(text), ",").into()
            })),
            wide(
                boolean_column("Established", "Whether the resource is being served.")
                    .of(|object, _| established(&object["status"]).into()),
            ),
        ],
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
