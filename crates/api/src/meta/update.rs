//! Metadata of an object that is about to be changed.

use std::collections::HashSet;

use super::{Metadata, finalizers, is_set, is_terminating, text, validate_common};
use crate::causes::Cause;
use crate::causes::Causes;
use crate::error::{Error, Subject};
use crate::failpoints::{Bug, strikes};
use crate::gotext;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::object_meta;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::resource::Scope;
use crate::tree::Value;

/// The revision that the body expects to replace; `None` if it is empty or 0. A text that is no number gets upstream's
/// 500.
pub fn expected_revision(metadata: &Metadata) -> Result<Option<Revision>, Error> {
    match text(metadata, "resourceVersion") {
        "" => Ok(None),
        _ if strikes(Bug::VersionIgnored) => Ok(None),
        version => {
            let number = gotext::parse_uint(version).map_err(Error::Unclassified)?;
            Ok(Some(Revision(number)).filter(|revision| revision.0 > 0))
        }
    }
}

/// 409 for a PUT whose uid is not the stored one. Checked before the revision.
pub fn check_uid(new: &Metadata, old: &Metadata, resource: &GroupResource, name: &str) -> Result<(), Error> {
    let (wanted, stored) = (text(new, "uid"), text(old, "uid"));
    if wanted.is_empty() || wanted == stored {
        return Ok(());
    }
    Err(Error::Conflict {
        subject: Subject::Resource(resource.clone()),
        name: name.to_owned(),
        reason: format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {stored}"),
    })
}

/// Restores what an update cannot change (apiserver `BeforeUpdate`).
pub fn prepare(new: &mut Metadata, old: &Metadata) {
    restore(new, old, "generation");
    new.shift_remove("selfLink");
    if text(new, "uid").is_empty() {
        restore(new, old, "uid");
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if is_set(old, field) {
            restore(new, old, field);
        }
    }
    let grace = "deletionGracePeriodSeconds";
    if is_set(old, grace) && !is_set(new, grace) {
        restore(new, old, grace);
    }
}

fn restore(new: &mut Metadata, old: &Metadata, field: &str) {
    match old.get(field).filter(|value| !value.is_null()) {
        Some(value) => new.insert(field, value.clone()),
        None => new.shift_remove(field),
    };
}

/// The causes of a 422, after [`prepare`]. A name must only be a path segment, so that old objects stay editable.
pub fn validate(new: &Metadata, old: &Metadata, scope: Scope) -> Causes {
    let mut causes = Causes::default();
    let names = NameFormat::PathSegment;
    match text(new, "name") {
        "" => causes.push(Cause::required("metadata.name", "name or generateName is required")),
        name => object_meta::refuse("metadata.name", name, names.check(name), &mut causes),
    }
    validate_common(new, scope, &mut causes);
    if is_terminating(old) {
        causes.extend(new_finalizers(new, old));
    }
    let immutable =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    causes.extend(immutable.into_iter().filter_map(|field| changed(new, old, field)));
    causes
}

/// Whether storing the object means to delete it: it is terminating, and neither grace period nor finalizers are left.
pub fn completes_deletion(metadata: &Metadata) -> bool {
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    is_terminating(metadata) && grace == 0 && finalizers(metadata).next().is_none()
}

fn new_finalizers(new: &Metadata, old: &Metadata) -> Option<Cause> {
    let known: HashSet<&str> = finalizers(old).collect();
    let mut extra: Vec<&str> = finalizers(new).filter(|name| !known.contains(name)).collect();
    extra.sort_unstable();
    extra.dedup();
    if extra.is_empty() {
        return None;
    }
    let list: Vec<String> = extra.into_iter().map(gotext::quote).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        list.join(", ")
    );
    Some(Cause::forbidden("metadata.finalizers", &why))
}

fn changed(new: &Metadata, old: &Metadata, field: &str) -> Option<Cause> {
    let value = |metadata: &Metadata| match metadata.get(field) {
        None | Some(Value::Null) => Value::Null,
        Some(Value::String(text)) if text.is_empty() => Value::Null,
        Some(value) => value.clone(),
    };
    let (new, old) = (value(new), value(old));
    (new != old)
        .then(|| Cause::invalid(format!("metadata.{field}"), gotext::json(&new), "field is immutable"))
}
