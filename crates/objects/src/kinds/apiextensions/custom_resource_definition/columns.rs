//! Columns of CustomResourceDefinitions.

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    NAME, PLAIN, boolean_column, flag, is_true, list, text, text_column, wide,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::columns::{CREATED_AT, EmptyRows};
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Scope", "Cluster or Namespaced.").at("spec.scope"),
        text_column("Versions", "Versions that are served.").of(served_versions),
        CREATED_AT,
        wide(text_column("Group", "API group of the resource.").at("spec.group")),
        wide(text_column("Kind", "Kind of the custom objects.").at("spec.names.kind")),
        wide(text_column("ShortNames", "Short names of the resource.").of(short_names)),
        wide(boolean_column("Established", "Whether the resource is being served.").of(established)),
    ],
    empty: EmptyRows::Null,
    ..PLAIN
};

/// `v1(storage),v1beta1`.
fn served_versions(object: &Value, _: Timestamp) -> Value {
    let served = list(&object["spec"]["versions"]).iter().filter(|version| flag(&version["served"]));
    let mut names: Vec<String> = served
        .map(|version| {
            let mark = if flag(&version["storage"]) { "(storage)" } else { "" };
            format!("{}{mark}", text(&version["name"]))
        })
        .collect();
    names.sort_unstable();
    names.join(",").into()
}

fn short_names(object: &Value, _: Timestamp) -> Value {
    join(list(&object["spec"]["names"]["shortNames"]).iter().map(text), ",").into()
}

fn established(object: &Value, _: Timestamp) -> Value {
    is_true(&object["status"]["conditions"], "Established").into()
}
