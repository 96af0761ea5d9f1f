//! Warnings of custom resources about new finalizers.

use std::collections::BTreeSet;

use super::Remarks;
use crate::fields::{self, ObjectMap};
use crate::gotext;
use crate::kinds::behavior::format::label_key;
use crate::tree::Value;

/// Finalizers of upstream's own, which have no domain.
const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

pub fn of_new(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    of_set(finalizers(object), remarks);
}

pub fn of_change(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let old = finalizers(old);
    of_set(finalizers(new).into_iter().filter(|finalizer| !old.contains(finalizer)), remarks);
}

fn finalizers(object: &ObjectMap) -> BTreeSet<&str> {
    fields::items(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}

fn of_set<'a>(names: impl IntoIterator<Item = &'a str>, remarks: &mut Remarks<'_>) {
    for name in names {
        let mut say =
            |text: &str| remarks.say(format!("metadata.finalizers: {}: {text}", gotext::quote(name)));
        label_key(name).iter().for_each(|message| say(message));
        if name.contains('/') || STANDARD.contains(&name) {
            continue;
        }
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        say(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
}
