//! Metadata of an object that is about to be created.

use super::{Metadata, text, validate_common};
use crate::causes::Cause;
use crate::causes::Causes;
use crate::error::Error;
use crate::gotext;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::object_meta;
use crate::schema::resource::Scope;

/// The metadata that the server gives to each new object.
#[derive(Clone, Debug)]
pub struct Stamp<'a> {
    pub uid: &'a str,
    /// RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}

/// Drops what clients may not set, before the fields get an owner (apiserver `WipeObjectMetaSystemFields`).
pub fn wipe(metadata: &mut Metadata) {
    for field in ["uid", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.shift_remove(field);
    }
}

/// 500 for a new object with a resourceVersion; texts that are not a number other than 0 are accepted. Upstream's store
/// makes this check last of all, and a dry run does not reach it.
pub fn refuse_version(version: &str) -> Result<(), Error> {
    if gotext::parse_uint(version).is_ok_and(|version| version != 0) {
        let text = "resourceVersion should not be set on objects to be created";
        return Err(Error::Unclassified(text.to_owned()));
    }
    Ok(())
}

/// Sets or drops the fields that only the server determines.
pub fn prepare(metadata: &mut Metadata, stamp: &Stamp<'_>) {
    for field in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid", stamp.uid.into());
    metadata.insert("creationTimestamp", stamp.now.into());
}

/// Whether the server has to generate a name.
pub fn wants_generated_name(metadata: &Metadata) -> bool {
    text(metadata, "name").is_empty() && !text(metadata, "generateName").is_empty()
}

/// The causes of a 422. The name is generated and the namespace filled in before.
pub fn validate(metadata: &Metadata, scope: Scope, names: NameFormat) -> Causes {
    let mut causes = Causes::default();
    object_meta::names(metadata, names, &mut causes);
    if text(metadata, "name").is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    }
    validate_common(metadata, scope, &mut causes);
    causes
}
