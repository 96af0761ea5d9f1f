//! Columns of role bindings, of namespaces and of the cluster.

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, list, name, text, text_column, wide,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Role", "Role that is granted."),
        AGE,
        wide(text_column("Users", "Users that get the role.")),
        wide(text_column("Groups", "Groups that get the role.")),
        wide(text_column("ServiceAccounts", "Service accounts that get the role.")),
    ],
    cells: Some(|object, now| {
        let role = &object["roleRef"];
        let subjects = list(&object["subjects"]);
        cells![
            name(object),
            format!("{}/{}", text(&role["kind"]), text(&role["name"])),
            age(object, now),
            subjects_of(subjects, "User"),
            subjects_of(subjects, "Group"),
            subjects_of(subjects, "ServiceAccount"),
        ]
    }),
    ..PLAIN
};

fn subjects_of(subjects: &[Value], kind: &str) -> String {
    join(subjects.iter().filter(|subject| subject["kind"] == kind).map(subject_name), ", ")
}

/// The subject's name, with the namespace if it is a service account.
fn subject_name(subject: &Value) -> String {
    let name = text(&subject["name"]);
    match text(&subject["namespace"]) {
        namespace if subject["kind"] == "ServiceAccount" && !namespace.is_empty() => {
            format!("{namespace}/{name}")
        }
        _ => name.to_owned(),
    }
}
